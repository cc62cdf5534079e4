//! What to run, and where its input and output go.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use carrel_domain::ByteSize;
use serde::{Deserialize, Serialize};

use crate::capture::CaptureLimits;
use crate::error::SpawnError;
use crate::log::LogFile;

/// A command to run.
#[derive(Debug)]
pub struct CommandSpec {
    /// The program and its arguments. A program without a slash is looked up in the `PATH` of
    /// `environment`.
    pub argv: Vec<OsString>,
    /// The complete environment; nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory. A descriptor opened with `O_PATH` is enough.
    pub directory: OwnedFd,
    /// What the command reads.
    pub stdin: Stdin,
    /// How much of what it writes is kept.
    pub output: Output,
    /// More descriptors for the command, numbered from [`CommandSpec::FIRST_INHERITED`].
    pub inherited: Vec<OwnedFd>,
    /// Descriptors that stay open until nothing of the command is left, such as one that holds a lock.
    pub held: Vec<OwnedFd>,
    /// What each process of the command may use.
    pub limits: Limits,
    /// After this time the command is stopped.
    pub deadline: Option<Duration>,
    /// How long processes that are asked to end have until they are killed.
    pub grace: Duration,
    /// Where all output goes as well.
    pub log: Option<LogFile>,
}

/// What each process of a command may use. What is absent is as the server has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory for data; more is refused to the process.
    pub data: Option<ByteSize>,
    /// Time on a processor, in whole seconds; a process that uses more is ended.
    pub cpu: Option<Duration>,
}

/// What a command reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// The end of the file, at once.
    Empty,
    /// These bytes, then the end of the file.
    Bytes(Vec<u8>),
}

/// How much of what a command writes is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Both streams are one, in the order in which they were written.
    Combined(CaptureLimits),
    /// The streams are kept apart.
    Separate {
        /// Limits for stdout.
        stdout: CaptureLimits,
        /// Limits for stderr.
        stderr: CaptureLimits,
    },
}

impl CommandSpec {
    /// The number of the first inherited descriptor. Shells and scripts use numbers far below.
    pub const FIRST_INHERITED: u32 = 100;

    /// The grace unless another is set.
    pub const DEFAULT_GRACE: Duration = Duration::from_millis(500);

    /// Describes a command with an empty environment, no input, combined output and no deadline.
    pub fn new(argv: Vec<OsString>, directory: OwnedFd) -> Self {
        Self {
            argv,
            environment: Vec::new(),
            directory,
            stdin: Stdin::Empty,
            output: Output::Combined(CaptureLimits::default()),
            inherited: Vec::new(),
            held: Vec::new(),
            limits: Limits::default(),
            deadline: None,
            grace: Self::DEFAULT_GRACE,
            log: None,
        }
    }

    /// Returns the name of the program for messages.
    pub(crate) fn program(&self) -> String {
        self.argv.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Refuses what no program can be given.
    pub(crate) fn check(&self) -> Result<(), SpawnError> {
        if self.argv.first().is_none_or(|program| program.is_empty()) {
            return Err(SpawnError::Empty);
        }
        let mut values = self.environment.iter().map(|(_, value)| value);
        if self.argv.iter().any(has_nul) || values.any(has_nul) {
            return Err(SpawnError::NulByte);
        }
        match self.environment.iter().find(|(name, _)| !is_variable_name(name)) {
            Some((name, _)) => {
                Err(SpawnError::InvalidVariable { name: name.to_string_lossy().into_owned() })
            }
            None => Ok(()),
        }
    }
}

fn has_nul(string: impl AsRef<OsStr>) -> bool {
    string.as_ref().as_bytes().contains(&0)
}

fn is_variable_name(name: &OsStr) -> bool {
    !name.is_empty() && !name.as_bytes().contains(&b'=') && !has_nul(name)
}
