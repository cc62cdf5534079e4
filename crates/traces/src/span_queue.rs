//! The bounded queue between the layer and the exporter.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::export_counts;
use crate::finished_span::FinishedSpan;

/// Spans in one export request.
pub const MAX_BATCH: usize = 512;

/// Spans that wait for export. Further ones are dropped, so that a collector that is away costs a
/// bounded amount of memory.
pub const MAX_WAITING: usize = 4096;

/// Finished spans that wait for export. Clones share one queue.
#[derive(Clone, Debug, Default)]
pub struct SpanQueue {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    spans: Mutex<VecDeque<FinishedSpan>>,
    full_batch: Notify,
}

impl SpanQueue {
    /// Adds a span, or counts it as dropped if the queue is full. Never waits.
    pub(crate) fn push(&self, span: FinishedSpan) {
        let mut spans = self.spans();
        if spans.len() >= MAX_WAITING {
            return export_counts::record_dropped(1);
        }
        spans.push_back(span);
        let waiting = spans.len();
        drop(spans);
        // The exporter polls by its own interval and is woken early only for a full batch.
        if waiting == MAX_BATCH {
            self.inner.full_batch.notify_one();
        }
    }

    /// Removes the oldest spans, at most [`MAX_BATCH`].
    pub fn take(&self) -> Vec<FinishedSpan> {
        let mut spans = self.spans();
        let count = spans.len().min(MAX_BATCH);
        spans.drain(..count).collect()
    }

    /// Waits until at least [`MAX_BATCH`] spans are queued.
    pub async fn full_batch(&self) {
        if self.spans().len() < MAX_BATCH {
            self.inner.full_batch.notified().await;
        }
    }

    fn spans(&self) -> MutexGuard<'_, VecDeque<FinishedSpan>> {
        self.inner.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
