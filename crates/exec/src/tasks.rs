//! Tasks whose work is boxed.
//!
//! Tokio's code for a task is compiled for each type of work, which adds two to four kilobytes to the program. Most tasks
//! begin seldom, so that they are of one type here.

use std::any::Any;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::task::{JoinError, JoinHandle, spawn_blocking};

type Returned = Box<dyn Any + Send>;

/// Work on a blocking thread. It goes on if this is dropped.
#[derive(Debug)]
#[must_use = "the work may fail"]
pub struct Blocking<T> {
    running: JoinHandle<Returned>,
    returns: PhantomData<fn() -> T>,
}

/// Starts work on a blocking thread. The result is an error if it panics, or if the runtime ends before it begins.
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    let work: Box<dyn FnOnce() -> Returned + Send> = Box::new(|| Box::new(work()));
    Blocking { running: spawn_blocking(work), returns: PhantomData }
}

impl<T: 'static> Future for Blocking<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let returned = ready!(Pin::new(&mut self.running).poll(context));
        Poll::Ready(returned.map(|value| *value.downcast().expect("work returns its own type")))
    }
}

/// Starts a task in the background.
pub fn spawn_task<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let work: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(work);
    tokio::spawn(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_returns_its_value_or_its_panic() {
        assert_eq!(blocking(|| String::from("done")).await.unwrap(), "done");
        let panicked = blocking(|| -> u8 { panic!("a bug") }).await.unwrap_err();
        assert_eq!(panicked.into_panic().downcast_ref(), Some(&"a bug"));
    }

    #[tokio::test]
    async fn work_begins_before_it_is_waited_for() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let other = blocking(move || receiver.recv().unwrap());
        let sending = blocking(move || sender.send(7).unwrap());
        assert_eq!(other.await.unwrap(), 7);
        sending.await.unwrap();
    }
}
