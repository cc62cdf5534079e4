//! The cached disk usage of an open workspace.
//!
//! Counting a workspace walks all of its files, which is too slow to do before every command. A count
//! therefore stays valid until a write may have happened (`expect_changes`), and after that for ten
//! times as long as the walk took, as long as the free space of the disk has not shrunk by what was
//! left of the quota (`carrel_workspace::Watcher` decides that). The count belongs to this process:
//! while a workspace is open here no other process counts it.
//!
//! A walk takes time, and files may be written meanwhile. The number of changes is therefore read
//! before the walk: a change during it makes the result stale at once, never wrongly fresh.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use carrel_domain::sync;
use carrel_runner::{QuotaWatcher, UsageWalk};
use carrel_workspace::{Amount, MeasuredUsage};

use crate::error::ServiceError;

#[derive(Debug)]
pub(crate) struct UsageCache {
    watcher: Mutex<QuotaWatcher>,
    /// The last finished count, and the value of `changes` when its walk began.
    counted: Mutex<(MeasuredUsage, u64)>,
    /// Incremented whenever a write may have happened.
    changes: AtomicU64,
}

/// A walk in progress. Dropping it without `end_count` discards it.
#[derive(Debug)]
pub(crate) struct Counting {
    walk: UsageWalk,
    changes: u64,
}

impl UsageCache {
    pub(crate) fn new(watcher: QuotaWatcher, counted: MeasuredUsage) -> Self {
        Self {
            watcher: Mutex::new(watcher),
            counted: Mutex::new((counted, 0)),
            changes: AtomicU64::new(0),
        }
    }

    pub(crate) fn expect_changes(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the last count, if no write can have happened since its walk began.
    pub(crate) fn unchanged(&self) -> Option<MeasuredUsage> {
        let (counted, changes) = *sync::lock(&self.counted);
        (changes == self.changes.load(Ordering::SeqCst)).then_some(counted)
    }

    /// Starts a count; writes from here on may be missing in it.
    pub(crate) fn begin_count(&self) -> Result<Counting, ServiceError> {
        let changes = self.changes.load(Ordering::SeqCst);
        Ok(Counting { walk: sync::lock(&self.watcher).begin_walk()?, changes })
    }

    pub(crate) fn end_count(&self, Counting { walk, changes }: Counting, counted: MeasuredUsage) {
        *sync::lock(&self.counted) = (counted, changes);
        sync::lock(&self.watcher).end_walk(walk, counted.amount);
    }

    /// Returns an upper bound of the usage, if that is within the quota; `None` if the workspace has to be
    /// counted again to know.
    pub(crate) fn still_fits(&self) -> Result<Option<Amount>, ServiceError> {
        let changed = self.unchanged().is_none();
        Ok(sync::lock(&self.watcher).still_fits(changed)?)
    }
}
