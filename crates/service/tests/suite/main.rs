//! The tests of the service, with real workspaces, commands and a real store.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests build the state that agents and people leave behind, and fail by panicking"
)]

/// The bus over Redis.
mod bus;
/// Cancellation, and workers that stop or die.
mod cancellation;
/// Event streams.
mod event_stream;
/// Several processes that share a store and a Redis.
mod multi_process;
/// A Redis server for one test.
mod redis;
/// Steps and the status of their task.
mod steps;
/// The fixture of most tests.
mod test_environment;
/// Workspaces that are removed and created while they are used.
mod workspaces;
