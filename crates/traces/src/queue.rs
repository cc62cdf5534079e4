//! Spans that are over and wait to be sent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::counts;
use crate::span::Span;

/// Spans that one request carries.
pub const MAX_BATCH: usize = 512;

/// Spans that wait. Further ones are lost: memory is for the work, not for the tale of it.
pub const MAX_WAITING: usize = 4096;

/// Spans that are over and wait to be sent. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    spans: Mutex<VecDeque<Span>>,
    full_batch: Notify,
}

impl Queue {
    /// Adds a span, or counts it as lost. Never waits.
    pub(crate) fn push(&self, span: Span) {
        let mut spans = self.spans();
        if spans.len() >= MAX_WAITING {
            return counts::lost(1);
        }
        spans.push_back(span);
        let waiting = spans.len();
        drop(spans);
        // Whoever sends looks by itself now and then, and is woken only for what cannot wait.
        if waiting == MAX_BATCH {
            self.inner.full_batch.notify_one();
        }
    }

    /// Takes the oldest spans, as many as one request carries.
    pub fn take(&self) -> Vec<Span> {
        let mut spans = self.spans();
        let count = spans.len().min(MAX_BATCH);
        spans.drain(..count).collect()
    }

    /// Waits until there is more than one request carries.
    pub async fn full_batch(&self) {
        if self.spans().len() < MAX_BATCH {
            self.inner.full_batch.notified().await;
        }
    }

    fn spans(&self) -> MutexGuard<'_, VecDeque<Span>> {
        self.inner.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
