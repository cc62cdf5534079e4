//! The loop as a whole: in a made-up world with faults, and in single steps.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, shows the history that broke a promise, and reads its own settings"
)]

mod simulation;
mod steps;
mod world;
