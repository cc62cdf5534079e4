//! The loop as a whole: in a made-up world with faults, in single steps, and on real files (`drive`).
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, shows the history that broke a promise, and reads its own settings"
)]

mod budgets;
mod conformance;
mod defects;
mod drive;
mod items;
mod orders;
mod restart;
mod seen;
mod simulation;
mod stage;
mod steps;
mod world;
