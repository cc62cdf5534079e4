//! Panics of tools become failures of their calls.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use carrel_domain::{Code, Failure};
use futures_util::FutureExt as _;
use tracing::error;

/// Polls a tool's work and turns a panic into a failure, so that the server and other calls go on.
pub(super) async fn catch_panic<R>(
    tool: &str,
    work: impl Future<Output = Result<R, Failure>>,
) -> Result<R, Failure> {
    // State that tools share is behind locks that survive a panic.
    let caught = AssertUnwindSafe(work).catch_unwind();
    caught.await.unwrap_or_else(|panic| {
        let reason = message_of_panic(&*panic);
        error!(tool, reason, "a tool panicked");
        let message = format!("{tool} failed because of a defect in Carrel: {reason}");
        Err(Failure::new(Code::Internal, message))
    })
}

fn message_of_panic(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown reason")
}
