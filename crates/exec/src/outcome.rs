//! How a command ended and what it cost.

use std::time::Duration;

use carrel_domain::ByteSize;
use carrel_sandbox::{DeniedCall, Usage};
use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize};

use crate::capture::Captured;
use crate::log::LogEnd;

/// Everything there is to say about a command that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How its main process ended.
    pub end: ExitStatus,
    /// Why Carrel stopped it, if it did.
    pub stop: Option<Stop>,
    /// What it wrote to stdout; with combined output or a terminal, to either stream.
    pub stdout: Captured,
    /// What it wrote to stderr; nothing with combined output or a terminal.
    pub stderr: Captured,
    /// How the log file ended, if one was asked for.
    pub log: Option<LogEnd>,
    /// The time from the request to the end of the last process.
    pub wall: Duration,
    /// What its processes used.
    pub cost: ResourceUsage,
    /// How many processes were still running when the main one ended. They were ended too.
    pub left_running: usize,
    /// System calls that it was refused, each kind once.
    pub refused: Vec<DeniedCall>,
    /// What its processes together used too much of, so that they were killed.
    pub excess: Option<ExceededLimit>,
}

impl Outcome {
    /// Returns whether the command ended by itself with status zero.
    pub fn succeeded(&self) -> bool {
        self.stop.is_none() && self.excess.is_none() && self.end == ExitStatus::Exited(0)
    }

    /// Returns whether the command was stopped at its deadline.
    pub fn timed_out(&self) -> bool {
        self.stop == Some(Stop::Deadline)
    }
}

/// What the processes of a command used too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExceededLimit {
    /// Memory.
    Memory,
    /// Processes and threads.
    Processes,
    /// Room on the disk, by files that have no name any more.
    Disk,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
    /// It was killed because its supervisor disappeared, so nobody could see how.
    Lost,
}

impl ExitStatus {
    /// Reads what `wait` says about a process that is over.
    pub(crate) fn of(status: WaitStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, Some(signal)) => Self::Signaled(signal),
            (None, None) => Self::Lost,
        }
    }
}

/// Why Carrel stopped a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// Its deadline passed.
    Deadline,
    /// It was cancelled.
    Cancelled,
}

/// What the processes of a command used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// CPU time spent in the programs.
    pub user: Duration,
    /// CPU time spent in the kernel on their behalf.
    pub system: Duration,
    /// The largest resident memory of any single process, at least that of the init it was
    /// forked from.
    pub peak_memory: ByteSize,
    /// Bytes that storage had to read.
    pub read: ByteSize,
    /// Bytes that storage was given to write.
    pub written: ByteSize,
}

impl From<Usage> for ResourceUsage {
    fn from(usage: Usage) -> Self {
        let Usage { user, system, peak_memory, read, written } = usage;
        Self { user, system, peak_memory, read, written }
    }
}
