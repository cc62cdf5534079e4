//! What to run, and where its input and output go.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use carrel_domain::ByteSize;
use serde::{Deserialize, Serialize};

use crate::capture::CaptureLimits;
use crate::error::SpawnError;
use crate::log::LogFile;
use crate::terminal::TerminalSize;

/// A command to run.
#[derive(Debug)]
pub struct CommandSpec {
    /// The program and its arguments. A program without a slash is looked up in the `PATH` of
    /// `environment`.
    pub argv: Vec<OsString>,
    /// The complete environment; nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub directory: Directory,
    /// What the command reads, unless it has a terminal.
    pub stdin: Stdin,
    /// How much of what it writes is kept.
    pub output: Output,
    /// More descriptors for the command, numbered from [`CommandSpec::FIRST_INHERITED`].
    pub inherited: Vec<OwnedFd>,
    /// Descriptors that stay open until nothing of the command is left, such as one that holds a lock.
    pub held: Vec<OwnedFd>,
    /// Files of control groups that the command joins by writing its process id there.
    pub groups: Vec<OwnedFd>,
    /// What each process of the command may use.
    pub limits: Limits,
    /// What all of them together may use, as far as looking from time to time can tell.
    pub watch: SampledLimits,
    /// After this time the command is stopped.
    pub deadline: Option<Duration>,
    /// How long processes that are asked to end have until they are killed.
    pub grace: Duration,
    /// Where all output goes as well.
    pub log: Option<LogFile>,
}

/// Where a command starts.
#[derive(Debug)]
pub enum Directory {
    /// A directory of the host, for a command of the host. A descriptor opened with `O_PATH` is
    /// enough.
    Opened(OwnedFd),
    /// A directory of a cell's workspace, relative to it, for a command of that cell.
    Inside(PathBuf),
}

impl From<OwnedFd> for Directory {
    fn from(directory: OwnedFd) -> Self {
        Self::Opened(directory)
    }
}

/// What each process of a command may use. What is absent is as the server has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory for data; more is refused to the process.
    pub data: Option<ByteSize>,
    /// Time on a processor, in whole seconds; a process that uses more is ended.
    pub cpu: Option<Duration>,
    /// The size of a file that it writes; a process that writes on is ended.
    pub file_size: Option<ByteSize>,
    /// Descriptors that it may have open.
    pub open_files: Option<u64>,
    /// Processes that its user may have, which is for a user of its own only.
    pub processes: Option<u64>,
    /// Memory that it may leave in a file when it crashes.
    pub core: Option<ByteSize>,
}

/// What a command reads.
#[derive(Debug, Default)]
pub enum Stdin {
    /// The end of the file, at once.
    #[default]
    Empty,
    /// These bytes, then the end of the file.
    Bytes(Vec<u8>),
    /// What this descriptor, which is no directory, gives.
    Opened(OwnedFd),
}

/// Where a command writes to, and how much of that is kept.
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
    /// Both streams and the input are a terminal, which controls the command's session. What is
    /// written there has its line ends changed, and what is typed is shown, as terminals do.
    ///
    /// The command has no other input; see [`crate::Running::terminal`]. `TERM` is not set.
    Terminal {
        /// The size that it has at first.
        size: TerminalSize,
        /// Limits for what is read from it.
        limits: CaptureLimits,
    },
}

impl Output {
    /// Returns the size of the terminal, if there is one.
    pub(crate) fn terminal(&self) -> Option<TerminalSize> {
        match self {
            Self::Combined(_) | Self::Separate { .. } => None,
            Self::Terminal { size, .. } => Some(*size),
        }
    }
}

/// What all processes of a command together may use, where no control group limits them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledLimits {
    /// Memory that is no file's.
    pub memory: Option<ByteSize>,
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Room on the disk of a cell's workspace, or else of the host's root directory, for files that
    /// have no name any more.
    pub disk: Option<ByteSize>,
}

impl SampledLimits {
    /// Returns whether there is anything to look at.
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
    /// The number of the first inherited descriptor. Shells and scripts use numbers far below.
    pub const FIRST_INHERITED: u32 = 100;

    /// How many arguments and variables a command may have. The kernel limits their length.
    pub const MAX_WORDS: usize = 1 << 15;

    /// The grace unless another is set.
    pub const DEFAULT_GRACE: Duration = Duration::from_millis(500);

    /// Describes a command of the host with an empty environment, no input, combined output and no
    /// deadline.
    pub fn new(argv: Vec<OsString>, directory: OwnedFd) -> Self {
        Self::starting_in(argv, Directory::Opened(directory))
    }

    /// Describes a command of a cell in the same way.
    pub fn inside(argv: Vec<OsString>, directory: PathBuf) -> Self {
        Self::starting_in(argv, Directory::Inside(directory))
    }

    /// Describes a command that starts in either kind of directory in the same way.
    pub fn starting_in(argv: Vec<OsString>, directory: Directory) -> Self {
        Self {
            argv,
            environment: Vec::new(),
            directory,
            stdin: Stdin::Empty,
            output: Output::Combined(CaptureLimits::default()),
            inherited: Vec::new(),
            held: Vec::new(),
            groups: Vec::new(),
            limits: Limits::default(),
            watch: SampledLimits::default(),
            deadline: None,
            grace: Self::DEFAULT_GRACE,
            log: None,
        }
    }

    /// Returns the name of the program for messages.
    pub(crate) fn program(&self) -> String {
        self.argv.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Refuses what no program can be given, and input that nobody would read.
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
