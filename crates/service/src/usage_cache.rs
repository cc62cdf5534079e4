//! What an open workspace uses, without counting it for every command.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use carrel_domain::sync;
use carrel_runner::{QuotaWatcher, UsageWalk};
use carrel_workspace::{Amount, MeasuredUsage};

use crate::error::ServiceError;

/// What an open workspace uses.
///
/// While it is open only this process counts it. A count serves until something was written, and then for
/// ten times as long as it took, if the disk has not lost what was left of the quota.
#[derive(Debug)]
pub(crate) struct UsageCache {
    watcher: Mutex<QuotaWatcher>,
    /// The last count that was finished, and how many changes there had been when it began.
    counted: Mutex<(MeasuredUsage, u64)>,
    /// How often something may have been written.
    changes: AtomicU64,
}

/// A count that is being made.
#[derive(Debug)]
pub(crate) struct Counting {
    walk: UsageWalk,
    changes: u64,
}

impl UsageCache {
    pub(crate) fn new(watcher: QuotaWatcher, counted: MeasuredUsage) -> Self {
        let (watcher, counted) = (Mutex::new(watcher), Mutex::new((counted, 0)));
        Self { watcher, counted, changes: AtomicU64::new(0) }
    }

    /// Says that something writes, or has written.
    pub(crate) fn expect_changes(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns what was counted, if nothing can have changed since.
    pub(crate) fn unchanged(&self) -> Option<MeasuredUsage> {
        let (counted, changes) = *sync::lock(&self.counted);
        (changes == self.changes.load(Ordering::SeqCst)).then_some(counted)
    }

    /// Begins a count. Whatever is written from now on may be missing in it. One that does not end
    /// was none.
    pub(crate) fn begin_count(&self) -> Result<Counting, ServiceError> {
        let changes = self.changes.load(Ordering::SeqCst);
        Ok(Counting { walk: sync::lock(&self.watcher).begin_walk()?, changes })
    }

    /// Says what that count came to.
    pub(crate) fn end_count(&self, Counting { walk, changes }: Counting, counted: MeasuredUsage) {
        *sync::lock(&self.counted) = (counted, changes);
        sync::lock(&self.watcher).end_walk(walk, counted.amount);
    }

    /// Looks whether the workspace may have grown beyond its quota. Returns what it may use at most; nothing
    /// if it has to be counted again.
    pub(crate) fn still_fits(&self) -> Result<Option<Amount>, ServiceError> {
        let changed = self.unchanged().is_none();
        Ok(sync::lock(&self.watcher).still_fits(changed)?)
    }
}
