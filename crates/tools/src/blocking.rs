//! File work on blocking threads; no other module of this crate leaves the async threads.

use carrel_domain::{Code, Failure};
use tokio::sync::oneshot;
use tokio::task::JoinError;

/// Runs file work on a thread that may wait for the disk. A panic goes on in the caller's task.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    carrel_exec::blocking(work).await.unwrap_or_else(|error| Err(unfinished(error)))
}

/// Runs file work, and drops the second part of its result on the blocking thread after the first was
/// sent. For an edit that part is an open file whose inode the drop frees; `files/edit.rs` has the numbers.
pub(crate) async fn blocking_then_drop<T: Send + 'static, L>(
    work: impl FnOnce() -> Result<(T, L), Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (sender, receiver) = oneshot::channel();
    let working = carrel_exec::blocking(move || {
        let (done, rest) = work()
            .map_or_else(|failure| (Err(failure), None), |(done, rest)| (Ok(done), Some(rest)));
        // The caller may be gone; the work is done.
        let _ = sender.send(done);
        drop(rest);
    });
    match receiver.await {
        Ok(done) => done,
        Err(_) => match working.await {
            Ok(()) => unreachable!("work that ends has sent its result"),
            Err(error) => Err(unfinished(error)),
        },
    }
}

/// A resource that a blocking thread holds until this is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    _release: std::sync::mpsc::Sender<()>,
}

/// The point at which a blocking thread has the resource and waits.
#[derive(Debug)]
pub(crate) struct HoldPoint {
    ready: oneshot::Sender<()>,
    released: std::sync::mpsc::Receiver<()>,
}

impl HoldPoint {
    /// Blocks until the [`Hold`] is dropped.
    pub(crate) fn wait(self) {
        if self.ready.send(()).is_ok() {
            // The other end is dropped and never sends.
            let _ = self.released.recv();
        }
    }
}

/// Takes a resource on a blocking thread and keeps it there while async work goes on, for guards that must
/// not be held across an await. `take` calls [`HoldPoint::wait`] when it has the resource.
pub(crate) async fn hold(
    take: impl FnOnce(HoldPoint) -> Result<(), Failure> + Send + 'static,
) -> Result<Hold, Failure> {
    let (ready, is_ready) = oneshot::channel();
    let (release, released) = std::sync::mpsc::channel();
    let working = carrel_exec::blocking(move || take(HoldPoint { ready, released }));
    match is_ready.await {
        Ok(()) => Ok(Hold { _release: release }),
        Err(_) => match working.await {
            Ok(Err(failure)) => Err(failure),
            Ok(Ok(())) => unreachable!("a thread that has the resource says so"),
            Err(error) => Err(unfinished(error)),
        },
    }
}

fn unfinished(error: JoinError) -> Failure {
    if error.is_panic() {
        std::panic::resume_unwind(error.into_panic());
    }
    Failure::new(Code::Cancelled, "the server stops")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Blocks its drop until the test allows it.
    struct SlowDrop(mpsc::Receiver<()>);

    impl Drop for SlowDrop {
        fn drop(&mut self) {
            self.0.recv_timeout(Duration::from_secs(20)).expect("the result came before");
        }
    }

    #[tokio::test]
    async fn the_result_does_not_wait_for_the_drop() {
        let (allow, allowed) = mpsc::channel();
        let result = blocking_then_drop(move || Ok((7, SlowDrop(allowed)))).await;
        assert_eq!(result.unwrap(), 7);
        allow.send(()).unwrap();
    }

    #[tokio::test]
    async fn a_resource_is_held_until_the_hold_is_dropped() {
        let mutex = std::sync::Arc::new(std::sync::Mutex::new(()));
        let resource = std::sync::Arc::clone(&mutex);
        let taken = hold(move |point| {
            let _guard = resource.lock().unwrap();
            point.wait();
            Ok(())
        });
        let taken = taken.await.unwrap();
        assert!(mutex.try_lock().is_err());
        drop(taken);
        drop(mutex.lock().unwrap());
        let failed = super::hold(|_| Err(Failure::new(Code::Io, "no lock")));
        assert_eq!(failed.await.unwrap_err().message, "no lock");
    }

    #[tokio::test]
    async fn a_failure_and_a_panic_reach_the_caller() {
        let failed = blocking_then_drop(|| -> Result<((), ()), _> {
            Err(Failure::new(Code::Io, "no disk"))
        });
        assert_eq!(failed.await.unwrap_err().message, "no disk");
        let panicked =
            tokio::spawn(blocking_then_drop(|| -> Result<((), ()), _> { panic!("a bug") }));
        assert!(panicked.await.unwrap_err().is_panic());
    }
}
