//! A call in the task of its connection.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A running call that outlives the connection which waits for it. Dropping it before its end moves the rest
/// of its work to a task, so that a tool always reaches its own end: its command is stopped, its audit event
/// written.
pub(crate) struct InlineCall<T: Send + 'static> {
    work: Option<BoxFuture<'static, T>>,
    calls: TaskTracker,
    /// Cancelled by the drop, where a client cancels a call by going away.
    cancelled_by_drop: Option<CancellationToken>,
}

impl<T: Send + 'static> InlineCall<T> {
    /// Wraps a call that goes on unchanged if its connection is lost. Its task is counted in `calls`.
    pub(crate) fn resumable(work: BoxFuture<'static, T>, calls: TaskTracker) -> Self {
        Self { work: Some(work), calls, cancelled_by_drop: None }
    }

    /// Wraps a call that is cancelled if its connection is lost.
    pub(crate) fn cancelled_by_drop(
        work: BoxFuture<'static, T>,
        calls: TaskTracker,
        cancel: CancellationToken,
    ) -> Self {
        Self { work: Some(work), calls, cancelled_by_drop: Some(cancel) }
    }
}

impl<T: Send + 'static> Future for InlineCall<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let work = self.work.as_mut().expect("a call is not polled after its end");
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for InlineCall<T> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        if let Some(cancel) = &self.cancelled_by_drop {
            cancel.cancel();
        }
        // Without a runtime the process itself is ending.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.calls.spawn_on(work, &runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn a_call_whose_connection_is_lost_runs_to_its_end() {
        let (ended, end) = oneshot::channel();
        let calls = TaskTracker::new();
        let work = async move {
            tokio::task::yield_now().await;
            ended.send(()).expect("the test waits");
        };
        drop(InlineCall::resumable(Box::pin(work), calls.clone()));
        end.await.expect("the call has ended");
        calls.close();
        calls.wait().await;
    }

    #[tokio::test]
    async fn a_stateless_call_whose_connection_is_lost_is_cancelled() {
        let (cancel, calls) = (CancellationToken::new(), TaskTracker::new());
        let seen = cancel.clone();
        let work = async move { seen.cancelled().await };
        drop(InlineCall::cancelled_by_drop(Box::pin(work), calls.clone(), cancel));
        calls.close();
        calls.wait().await;
    }

    #[tokio::test]
    async fn a_call_that_has_ended_leaves_no_task() {
        let (cancel, calls) = (CancellationToken::new(), TaskTracker::new());
        let work = Box::pin(std::future::ready(7));
        let call = InlineCall::cancelled_by_drop(work, calls.clone(), cancel.clone());
        assert_eq!((call.await, cancel.is_cancelled(), calls.len()), (7, false, 0));
    }
}
