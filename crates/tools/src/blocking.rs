//! The one place where this crate leaves the async threads.

use carrel_domain::Code;

use crate::failure::Failure;

/// Runs file work on a thread that may wait for the disk.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // The panic goes on in the task of the call, which answers it.
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Failure::new(Code::Cancelled, "the server stops")),
    }
}
