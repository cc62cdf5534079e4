//! What agents promise, whatever their kind, held against scripted ones behind real walls.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests build what an operator has, look at what an agent leaves, and fail by panicking"
)]

/// Plain commands.
mod command;
/// A root with a workspace, and sessions in it.
mod lab;
/// How agents are started and ended.
mod launch;
