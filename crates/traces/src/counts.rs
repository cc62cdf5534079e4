//! What became of the spans of this process.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static ON: AtomicBool = AtomicBool::new(false);
static SENT: AtomicU64 = AtomicU64::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);

/// What became of the spans of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// A collector has them.
    pub sent: u64,
    /// They found no room, or no collector took them in time.
    pub lost: u64,
}

/// Says that spans are collected from here on.
pub fn switch_on() {
    ON.store(true, Ordering::Relaxed);
}

pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Counts spans that a collector has.
pub fn sent(spans: u64) {
    SENT.fetch_add(spans, Ordering::Relaxed);
}

/// Counts spans that nobody will see.
pub fn lost(spans: u64) {
    LOST.fetch_add(spans, Ordering::Relaxed);
}

/// Returns what was counted; nothing if no spans are collected.
pub fn counts() -> Option<Counts> {
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    is_on().then(|| Counts { sent: read(&SENT), lost: read(&LOST) })
}
