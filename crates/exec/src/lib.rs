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
//! A command reads and writes files and pipes that the server made, or a terminal, which its init
//! opens on the command's side of the walls and hands to the server.
//!
//! Nothing outlives its owner. A server that dies closes its sockets, and each init then kills its
//! tree; a spawner that dies sends each init a parent-death signal, with the same effect; an init
//! that dies leaves its tree to the spawner, which kills it.
#![forbid(unsafe_code)]

mod capture;
mod cell;
mod cgroups;
mod control;
mod detached;
mod error;
mod helper;
mod jobs;
mod lazy_spawner;
mod link;
mod live_output;
mod log;
mod login;
mod memory_file;
mod outcome;
mod preforked_cell;
mod protocol;
mod reader;
mod running;
mod socket;
mod spawner;
mod spec;
mod streams;
mod terminal;

pub use capture::{CaptureLimits, Captured};
pub use cell::Cell;
pub use cgroups::{Cgroup, CgroupReport, Cgroups};
pub use detached::start_detached;
pub use error::{CellError, SpawnError};
pub use helper::run_helper;
pub use jobs::{
    InvalidJobId, Job, JobError, JobId, JobLimits, JobSlot, JobStatus, Jobs, Keep, Owner, Wake,
};
pub use lazy_spawner::LazySpawner;
pub use live_output::{LiveOutput, Piece, StreamName};
pub use log::{LogEnd, LogFile};
pub use login::{HookCommand, Receipt};
pub use outcome::{ExceededLimit, ExitStatus, Outcome, ResourceUsage, Stop};
pub use preforked_cell::PreforkedCell;
pub use reader::{Chunk, Cursor, LogReader, MAX_READ_BYTES, ReadError};
pub use running::{KillHandle, Running, Started};
pub use spawner::Spawner;
pub use spec::{CommandSpec, Directory, Limits, Output, SampledLimits, Stdin};
pub use terminal::{Terminal, TerminalError, TerminalSize};
