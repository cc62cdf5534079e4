//! Wake-ups of a task by itself, answered without the scheduler.
//!
//! hyper wakes its own connection whenever a handler takes a part of a request's body. A task that is woken while
//! it runs goes to the end of its worker's queue, for which the runtime wakes a second worker; that one then often
//! steals the connection. For a small request this costs more than the request. [`InlineWake`] polls again at
//! once instead.

use std::{
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// Polls in a row without the scheduler, so that a future which always wakes itself leaves others their turn.
const MAX_POLLS: usize = 4;

/// The future is not being polled: a wake-up goes to the scheduler.
const IDLE: u8 = 0;

/// The future is being polled.
const POLLING: u8 = 1;

/// The future is being polled and was woken meanwhile.
const WOKEN: u8 = 2;

/// Runs a future whose wake-ups during a poll are answered by the next poll.
pub(crate) async fn with_inline_wake<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let state = Arc::new(InlineWake { phase: AtomicU8::new(IDLE), task: Mutex::new(None) });
    let waker = Waker::from(Arc::clone(&state));
    std::future::poll_fn(move |context| state.poll(&waker, context, future.as_mut())).await
}

/// The waker of the inner future.
struct InlineWake {
    phase: AtomicU8,
    /// The waker of the task.
    task: Mutex<Option<Waker>>,
}

impl InlineWake {
    fn poll<F: Future>(
        &self,
        waker: &Waker,
        context: &mut Context<'_>,
        mut future: Pin<&mut F>,
    ) -> Poll<F::Output> {
        self.register(context.waker());
        for _ in 0..MAX_POLLS {
            self.phase.store(POLLING, Ordering::Release);
            let polled = future.as_mut().poll(&mut Context::from_waker(waker));
            if polled.is_ready() || self.phase.swap(IDLE, Ordering::AcqRel) == POLLING {
                return polled;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn register(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *task {
            Some(registered) => registered.clone_from(waker),
            None => *task = Some(waker.clone()),
        }
    }
}

impl Wake for InlineWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let woken =
            self.phase.compare_exchange(POLLING, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if woken == Err(IDLE) {
            let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(task) = &*task {
                task.wake_by_ref();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts the wake-ups that reach the scheduler.
    #[derive(Default)]
    struct Scheduler(AtomicUsize);

    impl Wake for Scheduler {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Wakes itself so many times before it is ready, and counts its polls.
    fn self_waking(times: usize, polls: &AtomicUsize) -> impl Future<Output = ()> + '_ {
        std::future::poll_fn(move |context| {
            if polls.fetch_add(1, Ordering::SeqCst) == times {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }

    fn poll_once(future: Pin<&mut impl Future<Output = ()>>) -> (Poll<()>, usize) {
        let scheduler = Arc::new(Scheduler::default());
        let polled = future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(&scheduler))));
        (polled, scheduler.0.load(Ordering::SeqCst))
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again_at_once() {
        let polls = AtomicUsize::new(0);
        let mut future = pin!(with_inline_wake(self_waking(2, &polls)));
        assert_eq!(poll_once(future.as_mut()), (Poll::Ready(()), 0));
        assert_eq!(polls.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_future_that_never_stops_waking_itself_goes_back_to_the_scheduler() {
        let polls = AtomicUsize::new(0);
        let mut future = pin!(with_inline_wake(self_waking(usize::MAX, &polls)));
        assert_eq!(poll_once(future.as_mut()), (Poll::Pending, 1));
        assert_eq!(polls.load(Ordering::SeqCst), MAX_POLLS);
    }

    #[tokio::test]
    async fn a_wake_up_from_elsewhere_reaches_the_task() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let waiting = tokio::spawn(with_inline_wake(receiver));
        tokio::task::yield_now().await;
        sender.send(7).expect("the task waits");
        assert_eq!(waiting.await.expect("no panic"), Ok(7));
    }
}
