//! The one place where this crate leaves the async threads.

use carrel_domain::Code;
use tokio::sync::oneshot;
use tokio::task::{JoinError, spawn_blocking};

use crate::failure::Failure;

/// Runs file work on a thread that may wait for the disk.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(unfinished(error)))
}

/// Runs file work that leaves something behind. That is dropped on the same thread, when the answer is
/// already on its way.
pub(crate) async fn blocking_and_leaving<T: Send + 'static, L>(
    work: impl FnOnce() -> Result<(T, L), Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (answer, answered) = oneshot::channel();
    let working = spawn_blocking(move || {
        let (done, left) = work()
            .map_or_else(|failure| (Err(failure), None), |(done, left)| (Ok(done), Some(left)));
        // Whoever asked may have gone away; the work is done.
        let _ = answer.send(done);
        drop(left);
    });
    match answered.await {
        Ok(done) => done,
        Err(_) => match working.await {
            Ok(()) => unreachable!("work that ends has answered"),
            Err(error) => Err(unfinished(error)),
        },
    }
}

/// Lets a panic go on in the task of the call, which answers it.
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

    /// Cannot be dropped before somebody says so.
    struct Stubborn(mpsc::Receiver<()>);

    impl Drop for Stubborn {
        fn drop(&mut self) {
            self.0.recv_timeout(Duration::from_secs(20)).expect("the answer came before");
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_what_is_left_behind() {
        let (allow, allowed) = mpsc::channel();
        let answer = blocking_and_leaving(move || Ok((7, Stubborn(allowed)))).await;
        assert_eq!(answer.unwrap(), 7);
        allow.send(()).unwrap();
    }

    #[tokio::test]
    async fn a_failure_and_a_panic_reach_the_caller() {
        let failed = blocking_and_leaving(|| -> Result<((), ()), _> {
            Err(Failure::new(Code::Io, "no disk"))
        });
        assert_eq!(failed.await.unwrap_err().message, "no disk");
        let panicked =
            tokio::spawn(blocking_and_leaving(|| -> Result<((), ()), _> { panic!("a bug") }));
        assert!(panicked.await.unwrap_err().is_panic());
    }
}
