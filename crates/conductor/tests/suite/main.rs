//! The loop as a whole: in a made-up world with faults, in single steps, and on real files (`drive`).
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, shows the history that broke a promise, and reads its own settings"
)]

mod budgets;
mod conformance;
mod decide_harness;
mod defects;
mod drive;
mod items;
mod operator_commands;
mod progress;
mod restart;
mod simulated_world;
mod simulation;
mod steps;
mod views;
