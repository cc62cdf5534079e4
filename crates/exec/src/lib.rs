//! Starts, supervises and ends commands.
//!
//! Commands are never forked from the server. A small single-threaded process, the *spawner*, is
//! started first with an empty environment; it forks an *init* for each command, which becomes the
//! parent of everything the command leaves behind and does not end before the whole tree is gone.
//!
//! ```text
//! server ──requests──► spawner ──fork──► init ──fork──► command ──► its children
//!    ▲                                     │
//!    └──────────── control ────────────────┘
//! ```
//!
//! Nothing outlives its owner. A server that dies closes its sockets, and each init then kills its
//! tree; a spawner that dies sends each init a parent-death signal, with the same effect; an init
//! that dies leaves its tree to the spawner, which kills it.
#![forbid(unsafe_code)]

mod capture;
mod control;
mod detached;
mod error;
mod helper;
mod link;
mod log;
mod login;
mod memory_file;
mod outcome;
mod protocol;
mod running;
mod socket;
mod spawner;
mod spec;
mod streams;

pub use capture::{CaptureLimits, Captured};
pub use detached::start_detached;
pub use error::SpawnError;
pub use helper::run_helper;
pub use log::{LogEnd, LogFile};
pub use login::{HookCommand, Receipt};
pub use outcome::{Cost, End, Outcome, Stop};
pub use running::Running;
pub use spawner::Spawner;
pub use spec::{CommandSpec, Limits, Output, Stdin};
