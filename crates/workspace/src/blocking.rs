//! The one function by which this crate and `runner` leave the async threads.

use crate::error::Error;

/// Runs file work on a blocking thread. If that thread panics, the result is [`Error::Interrupted`].
pub async fn blocking<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    carrel_exec::blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::Interrupted(error.to_string()).into()))
}
