//! The loop as a whole: in a made-up world with faults, and in single steps.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, shows the history that broke a promise, and reads its own settings"
)]

mod budgets;
mod defects;
mod items;
mod orders;
mod restart;
mod simulation;
mod stage;
mod steps;
mod world;
