//! The outcome of a command: exit status, output and resource usage.

use std::time::Duration;

use carrel_sandbox::{DeniedCall, Usage};
use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize};

use crate::capture::Captured;
use crate::log_file::LogEnd;

/// A command that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The exit status of its main process.
    pub end: ExitStatus,
    /// The reason for which Carrel stopped it, if it did.
    pub stop: Option<Stop>,
    /// Standard output; with combined output or a terminal, both streams.
    pub stdout: Captured,
    /// Standard error; empty with combined output or a terminal.
    pub stderr: Captured,
    /// The completeness of the log file, if there is one.
    pub log: Option<LogEnd>,
    /// The time from the request to the end of the last process.
    pub wall: Duration,
    /// The resource usage of its processes.
    pub cost: Usage,
    /// The number of processes that still ran when the main one ended. They were ended too.
    pub left_running: usize,
    /// System calls that the sandbox denied, each kind once.
    pub refused: Vec<DeniedCall>,
    /// The sampled limit for which its processes were killed, if any.
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

/// A limit on the sum of a command's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExceededLimit {
    /// Memory.
    Memory,
    /// Processes and threads.
    Processes,
    /// Disk space of files that are open and have no name.
    Disk,
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// Exited with this status.
    Exited(i32),
    /// Ended by this signal.
    Signaled(i32),
    /// Killed together with its init, which could not report.
    Lost,
}

impl ExitStatus {
    pub(crate) fn of(status: WaitStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, Some(signal)) => Self::Signaled(signal),
            (None, None) => Self::Lost,
        }
    }
}

/// The reason for which Carrel stopped a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The deadline passed.
    Deadline,
    /// The caller cancelled it.
    Cancelled,
}
