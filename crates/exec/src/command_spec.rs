//! The description of a command for a spawner.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use carrel_domain::ByteSize;
use serde::{Deserialize, Serialize};

use crate::capture::CaptureLimits;
use crate::error::SpawnError;
use crate::log_file::LogFile;
use crate::terminal::TerminalSize;

/// A command to run.
#[derive(Debug)]
pub struct CommandSpec {
    /// The program and its arguments. A program without a slash is looked up in the `PATH` of
    /// `environment`.
    pub argv: Vec<OsString>,
    /// The complete environment; nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory.
    pub directory: Directory,
    /// Standard input, unless the command has a terminal.
    pub stdin: Stdin,
    /// The capture of its output.
    pub output: Output,
    /// Further descriptors, numbered from [`CommandSpec::FIRST_INHERITED`].
    pub inherited: Vec<OwnedFd>,
    /// Descriptors that the init holds until the last process has ended, such as a lock.
    pub held: Vec<OwnedFd>,
    /// The files of control groups by which the command joins them.
    pub cgroups: Vec<OwnedFd>,
    /// Limits of each process.
    pub limits: Limits,
    /// Limits of all processes together, enforced by sampling.
    pub sampled: SampledLimits,
    /// The time, counted from the request, after which the command is stopped.
    pub deadline: Option<Duration>,
    /// The time between `SIGTERM` and `SIGKILL`.
    pub grace: Duration,
    /// A file that receives the whole output.
    pub log: Option<LogFile>,
}

/// A working directory.
#[derive(Debug)]
pub enum Directory {
    /// A directory of the host, for a command of the host. `O_PATH` is enough.
    Opened(OwnedFd),
    /// A path relative to a cell's workspace, for a command of that cell.
    Inside(PathBuf),
}

impl From<OwnedFd> for Directory {
    fn from(directory: OwnedFd) -> Self {
        Self::Opened(directory)
    }
}

/// The rlimits of each process. Absent ones are the server's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Data memory (`RLIMIT_DATA`); allocations beyond it fail.
    pub data: Option<ByteSize>,
    /// CPU time in whole seconds; a process beyond it is ended.
    pub cpu: Option<Duration>,
    /// The size of a written file; a process that writes on is ended.
    pub file_size: Option<ByteSize>,
    /// Open descriptors.
    pub open_files: Option<u64>,
    /// Processes of its user. Only for commands with a user of their own.
    pub processes: Option<u64>,
    /// The size of a core dump.
    pub core: Option<ByteSize>,
}

/// The standard input of a command.
#[derive(Debug, Default)]
pub enum Stdin {
    /// End of file at once.
    #[default]
    Empty,
    /// These bytes, then end of file.
    Bytes(Vec<u8>),
    /// This descriptor, which must not be a directory.
    Opened(OwnedFd),
}

/// The output of a command, and the part of it that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Both streams in one, in the order of writing.
    Combined(CaptureLimits),
    /// The streams apart.
    Separate {
        /// Limits for stdout.
        stdout: CaptureLimits,
        /// Limits for stderr.
        stderr: CaptureLimits,
    },
    /// Both streams and the input are a terminal, which controls the command's session. The terminal
    /// converts line ends and echoes input.
    ///
    /// The command has no other input; see [`crate::RunningCommand::terminal`]. `TERM` is not set.
    Terminal {
        /// The initial size.
        size: TerminalSize,
        /// Limits for its output.
        limits: CaptureLimits,
    },
}

impl Output {
    pub(crate) fn terminal(&self) -> Option<TerminalSize> {
        match self {
            Self::Combined(_) | Self::Separate { .. } => None,
            Self::Terminal { size, .. } => Some(*size),
        }
    }
}

/// Limits of all processes of a command together, where no control group enforces them. The init samples
/// them, so a fast tree can overshoot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledLimits {
    /// Memory that is not file cache.
    pub memory: Option<ByteSize>,
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Disk space of files without a name, on the file system of the cell's workspace or of the host's
    /// root directory.
    pub disk: Option<ByteSize>,
}

impl SampledLimits {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Limits {
    /// No limits but those of the server.
    pub const NONE: Self = Self {
        data: None,
        cpu: None,
        file_size: None,
        open_files: None,
        processes: None,
        core: None,
    };
}

impl CommandSpec {
    /// The number of the first inherited descriptor, far above the numbers that shells and scripts use.
    pub const FIRST_INHERITED: u32 = 100;

    /// The most arguments and variables. The kernel limits their length.
    pub const MAX_WORDS: usize = 1 << 15;

    /// The grace unless another is set.
    pub const DEFAULT_GRACE: Duration = Duration::from_millis(500);

    /// Returns a command of the host with an empty environment, no input, combined output and no
    /// deadline.
    pub fn new(argv: Vec<OsString>, directory: OwnedFd) -> Self {
        Self::starting_in(argv, Directory::Opened(directory))
    }

    /// Returns a command in a directory of either kind with the same defaults.
    pub fn starting_in(argv: Vec<OsString>, directory: Directory) -> Self {
        Self {
            argv,
            environment: Vec::new(),
            directory,
            stdin: Stdin::Empty,
            output: Output::Combined(CaptureLimits::default()),
            inherited: Vec::new(),
            held: Vec::new(),
            cgroups: Vec::new(),
            limits: Limits::default(),
            sampled: SampledLimits::default(),
            deadline: None,
            grace: Self::DEFAULT_GRACE,
            log: None,
        }
    }

    pub(crate) fn program(&self) -> String {
        self.argv.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Rejects an empty command, NUL bytes, invalid names, too many words, and input beside a terminal.
    pub(crate) fn check(&self) -> Result<(), SpawnError> {
        if self.argv.first().is_none_or(|program| program.is_empty()) {
            return Err(SpawnError::Empty);
        }
        if self.output.terminal().is_some() && !matches!(self.stdin, Stdin::Empty) {
            return Err(SpawnError::TerminalInput);
        }
        let words = self.argv.len() + self.environment.len();
        if words > Self::MAX_WORDS {
            return Err(SpawnError::TooLong { words });
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
