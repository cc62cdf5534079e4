//! What the service promises, with real workspaces, commands and a real store.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests build the state that agents and people leave behind, and fail by panicking"
)]

/// What processes tell each other over Redis.
mod bus;
/// Ending a task early, and workers that stop or vanish.
mod ending;
/// Following what happens.
mod following;
/// What most tests begin with.
mod lab;
/// A Redis of a test's own.
mod redis;
/// Several processes that share a store and a Redis.
mod several;
/// Workspaces that come and go while they are used.
mod spaces;
/// Steps and what becomes of the task.
mod steps;
