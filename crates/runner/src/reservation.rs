//! Reservations of a workspace's quota, for uploads that are written piece by piece.

use carrel_domain::sync;
use std::sync::{Arc, Mutex};

use crate::quota_watcher::QuotaWatcher;
use carrel_workspace::Amount;

/// A part of a quota that is reserved for later writes. Dropping it releases the unused rest.
#[derive(Debug)]
pub struct Reservation {
    /// None without a quota.
    pub(crate) watcher: Option<Arc<Mutex<QuotaWatcher>>>,
    pub(crate) left: Amount,
}

impl Reservation {
    /// Takes over the rest of another reservation.
    pub fn extend(&mut self, mut other: Self) {
        self.left = self.left.plus(std::mem::take(&mut other.left));
    }

    /// Returns the unused rest.
    pub fn left(&self) -> Amount {
        self.left
    }

    /// Turns a part into usage, because it is on the disk now and counted by walks.
    pub fn used(&mut self, amount: Amount) {
        let used = self.left.min(amount);
        self.left = self.left.minus(used);
        self.update(|watcher| watcher.use_reserved(used));
    }

    fn update(&self, change: impl FnOnce(&mut QuotaWatcher)) {
        if let Some(watcher) = &self.watcher {
            change(&mut sync::lock(watcher));
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.update(|watcher| watcher.release(self.left));
    }
}
