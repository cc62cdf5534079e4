//! What the service promises, with real workspaces, commands and a real store.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests build the state that agents and people leave behind, and fail by panicking"
)]

/// Ending a task early, and workers that stop or vanish.
mod ending;
/// Following what happens.
mod following;
/// What most tests begin with.
mod lab;
/// Steps and what becomes of the task.
mod steps;
