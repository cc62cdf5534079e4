//! Starts, supervises and ends commands.
//!
//! Commands are never forked from the server. A small single-threaded process, the *spawner*, is
//! started first with an empty environment; it forks an *init* for each command, which becomes the
//! parent of everything the command leaves behind and does not end before the whole process tree has.
//! A *cell* is a copy of the spawner inside a sandbox, and serves the same requests there.
//!
//! ```text
//! server ──requests──► spawner ──fork──► init ──fork──► command ──► its children
//!    ▲                                     │
//!    └──────────── control ────────────────┘
//! ```
//!
//! The tree of a fork is an overlay ([`OverlayMount`]), which a child of the spawner mounts in namespaces that
//! the fork's cells join.
//!
//! A command reads and writes files and pipes that the server made, or a terminal, which its init
//! opens inside the sandbox and passes to the server.
//!
//! Nothing outlives its owner. A server that dies closes its sockets, and each init then kills its
//! tree; a spawner that dies makes the kernel send each init a parent-death signal, with the same
//! effect; an init that dies leaves its tree to the spawner, which kills it.
#![forbid(unsafe_code)]

mod capture;
mod cell;
mod cgroups;
mod command_spec;
mod detached;
mod error;
mod helper;
mod hook_command;
mod init_connection;
mod jobs;
mod lazy_spawner;
mod live_output;
mod log_file;
mod log_reader;
mod memory_file;
mod outcome;
mod output_streams;
mod overlay;
mod preforked_cell;
mod protocol;
mod running_command;
mod socket;
mod spawner;
mod spawner_connection;
mod tasks;
mod terminal;

pub use capture::{CaptureLimits, Captured};
pub use cell::{Cell, CellWorkspace};
pub use cgroups::{Cgroup, CgroupReport, Cgroups};
pub use command_spec::{CommandSpec, Directory, Limits, Output, SampledLimits, Stdin};
pub use detached::start_detached;
pub use error::{CellError, OverlayError, SpawnError};
pub use helper::run_helper;
pub use hook_command::{HookCommand, Receipt};
pub use jobs::{
    InvalidJobId, Job, JobError, JobId, JobLimits, JobSlot, JobStatus, Jobs, Owner, Retention,
    WakeReason,
};
pub use lazy_spawner::LazySpawner;
pub use live_output::{LiveOutput, Piece, StreamName};
pub use log_file::{LogEnd, LogFile};
pub use log_reader::{Chunk, Cursor, LogReader, MAX_READ_BYTES, ReadError};
pub use outcome::{ExceededLimit, ExitStatus, Outcome, Stop};
pub use overlay::{OverlayMount, Unmounted};
pub use preforked_cell::PreforkedCell;
pub use running_command::{KillHandle, RunningCommand, Started};
pub use spawner::Spawner;
pub use tasks::{Blocking, blocking, spawn_task};
pub use terminal::{Terminal, TerminalError, TerminalSize};
