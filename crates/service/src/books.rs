//! What an open workspace uses, without counting it for every command.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use carrel_workspace::{Amount, Measured, Walk, Watcher};

use crate::error::ServiceError;

/// What an open workspace uses.
///
/// While it is open only this process counts it. A count serves as long as the workspace cannot have
/// passed its quota since: the disk has not lost what was left, and the count is not old. The same holds
/// while a command runs.
#[derive(Debug)]
pub(crate) struct Books {
    watcher: Mutex<Watcher>,
    counted: Mutex<Measured>,
    /// Something may have been written since that count began.
    changed: AtomicBool,
}

impl Books {
    pub(crate) fn new(watcher: Watcher, counted: Measured) -> Self {
        Self {
            watcher: Mutex::new(watcher),
            counted: Mutex::new(counted),
            changed: AtomicBool::new(false),
        }
    }

    /// Says that something writes, or has written.
    pub(crate) fn expect_changes(&self) {
        self.changed.store(true, Ordering::SeqCst);
    }

    /// Returns what was counted, if nothing can have changed since.
    pub(crate) fn unchanged(&self) -> Option<Measured> {
        (!self.changed.load(Ordering::SeqCst)).then(|| *lock(&self.counted))
    }

    /// Says that a count begins. Whatever is written from now on may be missing in it.
    pub(crate) fn begin_count(&self) -> Result<Walk, ServiceError> {
        self.changed.store(false, Ordering::SeqCst);
        Ok(lock(&self.watcher).begin_walk()?)
    }

    /// Says what that count came to.
    pub(crate) fn end_count(&self, walk: Walk, counted: Measured) {
        *lock(&self.counted) = counted;
        lock(&self.watcher).end_walk(walk, counted.amount);
    }

    /// Looks whether the workspace may have grown beyond its quota. Returns what it used at the last
    /// count; nothing if it has to be counted again.
    pub(crate) fn still_fits(&self) -> Result<Option<Amount>, ServiceError> {
        Ok(lock(&self.watcher).still_fits()?)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
