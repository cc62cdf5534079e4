//! Room that is set aside for what is written later.

use std::sync::{Arc, Mutex};

use crate::quota_watcher::QuotaWatcher;
use carrel_domain::sync;
use carrel_workspace::Amount;

/// Room that is set aside. No count takes it for free before it was used; dropping it gives the rest back.
#[derive(Debug)]
pub struct Reservation {
    /// None where there is no limit.
    pub(crate) room: Option<Arc<Mutex<QuotaWatcher>>>,
    pub(crate) left: Amount,
}

impl Reservation {
    /// Adds what another one has left.
    pub fn extend(&mut self, mut other: Self) {
        self.left = self.left.plus(std::mem::take(&mut other.left));
    }

    /// Returns what was not used yet.
    pub fn left(&self) -> Amount {
        self.left
    }

    /// Says that so much of it is on the disk, where it is counted.
    pub fn used(&mut self, amount: Amount) {
        let used = self.left.min(amount);
        self.left = self.left.minus(used);
        self.tell(|watcher| watcher.has_used(used));
    }

    fn tell(&self, what: impl FnOnce(&mut QuotaWatcher)) {
        if let Some(room) = &self.room {
            what(&mut sync::lock(room));
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.tell(|watcher| watcher.give_back(self.left));
    }
}
