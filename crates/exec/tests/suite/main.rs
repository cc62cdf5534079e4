//! Runs real processes through a real spawner.
//!
//! - `starting`: what a command is given, and how a start fails;
//! - `output`: what is kept of what a command prints;
//! - `live`: output while it arrives, and readers that are slow;
//! - `logs`: logs that are read with a cursor;
//! - `jobs`: commands in the background;
//! - `ending`: exit, deadline, cancellation, and what a command leaves behind;
//! - `survival`: nothing outlives a helper or the server, whichever process is killed;
//! - `load`: many commands, and commands that fork a lot;
//! - `login`: hooks behind a login shell;
//! - `cells`, `overlays`: commands in cells, and in forks of a workspace;
//! - `terminals`, `cell_terminals`: commands with a terminal, on the host and in cells.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "tests look at the system from outside")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cell_terminals;
mod cells;
mod ending;
mod jobs;
mod live;
mod load;
mod login;
mod logs;
mod output;
mod overlays;
mod processes;
mod starting;
mod support;
mod survival;
mod terminals;
mod typist;
