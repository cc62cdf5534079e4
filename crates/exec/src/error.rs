//! Errors of starting a command or a cell.

use std::io;

use carrel_domain::{Code, Coded};
use carrel_sandbox::SetupError;
use serde_json::{Value, json};

use crate::command_spec::CommandSpec;
use crate::protocol::Step;

/// The reason why a command did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program, or the interpreter that it names, does not exist.
    #[error("no such program: {program}")]
    NotFound {
        /// The program as requested.
        program: String,
    },
    /// The program exists and may not be executed.
    #[error("program may not be executed: {program}")]
    PermissionDenied {
        /// The program as requested.
        program: String,
    },
    /// The program was refused for another reason.
    #[error("could not execute {program}")]
    Execute {
        /// The program as requested.
        program: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The working directory could not be entered.
    #[error("could not enter the working directory")]
    Directory(#[source] io::Error),
    /// The last restrictions of the sandbox could not be applied, so the command did not start.
    #[error("could not confine the command")]
    Confine(#[source] io::Error),
    /// A command of a cell had a working directory of the host, or the other way round.
    #[error("the working directory is on the other side of the sandbox")]
    WrongSide,
    /// Pipes, descriptors or processes could not be made.
    #[error("could not make the processes and pipes of a command")]
    Resources(#[source] io::Error),
    /// No terminal could be opened for the command.
    #[error("could not open a terminal for the command")]
    Terminal(#[source] io::Error),
    /// A command with a terminal was given other input.
    #[error("a command with a terminal reads from that, and takes no other input")]
    TerminalInput,
    /// There is no program to run.
    #[error("the command is empty")]
    Empty,
    /// There are too many arguments and variables.
    #[error(
        "the command has {words} arguments and variables, and may have {}",
        CommandSpec::MAX_WORDS
    )]
    TooLong {
        /// The number of arguments and variables.
        words: usize,
    },
    /// An argument or a value contains a NUL byte.
    #[error("an argument or the value of a variable contains a NUL byte")]
    NulByte,
    /// A variable has an impossible name.
    #[error("not a name for an environment variable: {name:?}")]
    InvalidVariable {
        /// The name as requested.
        name: String,
    },
    /// The spawner, or the init of this command, has ended.
    #[error("the process that starts commands is gone")]
    SpawnerGone,
    /// The spawner runs and does not respond.
    #[error("the process that starts commands does not answer")]
    Unresponsive,
}

impl SpawnError {
    pub(crate) fn reported(program: &str, step: Step, errno: i32) -> Self {
        let source = io::Error::from_raw_os_error(errno);
        match (step, source.kind()) {
            (Step::Fork | Step::Prepare, _) => Self::Resources(source),
            (Step::Terminal, _) => Self::Terminal(source),
            (Step::Directory, _) => Self::Directory(source),
            (Step::Confine, _) => Self::Confine(source),
            (Step::Execute, io::ErrorKind::NotFound) => {
                Self::NotFound { program: program.to_owned() }
            }
            (Step::Execute, io::ErrorKind::PermissionDenied) => {
                Self::PermissionDenied { program: program.to_owned() }
            }
            (Step::Execute, _) => Self::Execute { program: program.to_owned(), source },
        }
    }
}

impl Coded for SpawnError {
    fn code(&self) -> Code {
        match self {
            Self::NotFound { .. } => Code::NotFound,
            Self::PermissionDenied { .. } => Code::PermissionDenied,
            Self::Confine(_) => Code::SandboxUnavailable,
            Self::Execute { .. }
            | Self::Directory(_)
            | Self::WrongSide
            | Self::Resources(_)
            | Self::Terminal(_)
            | Self::TerminalInput
            | Self::Empty
            | Self::TooLong { .. }
            | Self::NulByte
            | Self::InvalidVariable { .. }
            | Self::SpawnerGone
            | Self::Unresponsive => Code::SpawnFailed,
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::NotFound { program }
            | Self::PermissionDenied { program }
            | Self::Execute { program, .. } => json!({ "program": program }),
            Self::InvalidVariable { name } => json!({ "name": name }),
            Self::Directory(_)
            | Self::Confine(_)
            | Self::WrongSide
            | Self::Resources(_)
            | Self::Terminal(_)
            | Self::TerminalInput
            | Self::Empty
            | Self::TooLong { .. }
            | Self::NulByte
            | Self::SpawnerGone
            | Self::Unresponsive => json!({}),
        }
    }
}

/// The reason why a cell could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// The kernel refused a part of the plan.
    #[error("the sandbox could not be set up")]
    Refused(#[source] SetupError),
    /// The spawner could not be reached.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

impl Coded for CellError {
    fn code(&self) -> Code {
        match self {
            Self::Refused(_) => Code::SandboxUnavailable,
            Self::Spawn(error) => error.code(),
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Refused(failure) => json!({
                "step": failure.step,
                "object": failure.object,
                "errno": failure.errno,
            }),
            Self::Spawn(error) => error.detail(),
        }
    }
}
