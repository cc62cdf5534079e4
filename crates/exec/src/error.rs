//! Errors of starting a command or a cell.

use std::io;

use carrel_domain::{Code, Coded};
use carrel_sandbox::SetupError;
use serde_json::{Value, json};

use crate::command_spec::CommandSpec;
use crate::protocol::Step;

/// The reason why a command did not start. A command that started and failed is an outcome, not an error.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum SpawnError {
    #[error("no such program: {program}")]
    NotFound { program: String },
    #[error("program may not be executed: {program}")]
    PermissionDenied { program: String },
    #[error("could not execute {program}")]
    Execute {
        program: String,
        #[source]
        source: io::Error,
    },
    #[error("could not enter the working directory")]
    Directory(#[source] io::Error),
    #[error("could not confine the command")]
    Confine(#[source] io::Error),
    #[error("the working directory is on the other side of the sandbox")]
    WrongSide,
    #[error("could not make the processes and pipes of a command")]
    Resources(#[source] io::Error),
    #[error("could not open a terminal for the command")]
    Terminal(#[source] io::Error),
    #[error("a command with a terminal reads from that, and takes no other input")]
    TerminalInput,
    #[error("the command is empty")]
    Empty,
    #[error(
        "the command has {words} arguments and variables, and may have {}",
        CommandSpec::MAX_WORDS
    )]
    TooLong { words: usize },
    #[error("an argument or the value of a variable contains a NUL byte")]
    NulByte,
    #[error("not a name for an environment variable: {name:?}")]
    InvalidVariable { name: String },
    #[error("the process that starts commands is gone")]
    SpawnerGone,
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
        if let Self::NotFound { program }
        | Self::PermissionDenied { program }
        | Self::Execute { program, .. } = self
        {
            json!({ "program": program })
        } else if let Self::InvalidVariable { name } = self {
            json!({ "name": name })
        } else {
            json!({})
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
            Self::Refused(failure) => failure_detail(failure),
            Self::Spawn(error) => error.detail(),
        }
    }
}

/// The reason why an overlay could not be mounted.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// An overlay is mounted on these layers, or a cell that showed it has not ended yet.
    #[error("the layers are in use")]
    InUse,
    /// The layers were mounted before and not synced, so they may be incomplete if the machine has stopped
    /// since. [`carrel_sandbox::UsedLayers::Accept`] mounts them again.
    #[error("the layers were mounted before")]
    UsedBefore,
    /// The kernel refused the mount.
    #[error("the overlay could not be mounted")]
    Refused(#[source] SetupError),
    /// The spawner could not be reached.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

impl Coded for OverlayError {
    fn code(&self) -> Code {
        match self {
            Self::InUse => Code::WorkspaceBusy,
            Self::UsedBefore | Self::Refused(_) => Code::SandboxUnavailable,
            Self::Spawn(error) => error.code(),
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::InUse | Self::UsedBefore => json!({}),
            Self::Refused(failure) => failure_detail(failure),
            Self::Spawn(error) => error.detail(),
        }
    }
}

fn failure_detail(failure: &SetupError) -> Value {
    json!({ "step": failure.step, "object": failure.object, "errno": failure.errno })
}
