//! Counters of exported and dropped spans, for the whole process.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static ENABLED: AtomicBool = AtomicBool::new(false);
static EXPORTED: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// The number of spans since the start of the process, by their fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportCounts {
    /// Spans that a collector accepted.
    pub exported: u64,
    /// Spans that found the queue full, or that no collector accepted in time.
    pub dropped: u64,
}

/// Marks tracing as enabled. Before this, [`crate::current_context`] returns `None` without a look at
/// the subscriber.
pub fn enable() {
    ENABLED.store(true, Ordering::Relaxed);
}

pub(crate) fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// Adds to the spans that a collector accepted.
pub fn record_exported(spans: u64) {
    EXPORTED.fetch_add(spans, Ordering::Relaxed);
}

/// Adds to the spans that no collector will receive.
pub fn record_dropped(spans: u64) {
    DROPPED.fetch_add(spans, Ordering::Relaxed);
}

/// Returns the counters, or `None` if tracing was never enabled.
pub fn export_counts() -> Option<ExportCounts> {
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    is_enabled().then(|| ExportCounts { exported: read(&EXPORTED), dropped: read(&DROPPED) })
}
