//! Errors of running a command.

use std::io;
use std::path::{Path, PathBuf};

use carrel_domain::{Code, Coded, NetworkDenied, Tier};
use carrel_exec::{CellError, OverlayError, SpawnError};
use carrel_sandbox::PlanError;
use carrel_shell::{Refusal, arguments::Violation};
use serde_json::{Value, json};

use carrel_workspace::Error;

/// The reason why a command did not run, or why its workspace could not be checked afterwards.
///
/// Only `TooManyWatchedFiles` and `WorkspaceRemoved` are about a command that has run; `Workspace` and
/// `Files` may be.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum RunError {
    #[error("could not open the workspace")]
    Workspace(#[source] carrel_fsroot::Error),
    #[error("could not start in this directory of the workspace")]
    Directory(#[source] carrel_fsroot::Error),
    #[error("{}", .0.message)]
    Refused(Refusal),
    #[error(transparent)]
    Argument(#[from] Violation),
    #[error(transparent)]
    Network(#[from] NetworkDenied),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Cell(#[from] CellError),
    #[error("no sandbox could be set up; tier `full`: {full}; tier `landlock`: {landlock}")]
    NoTier { full: String, landlock: Box<RunError> },
    #[error(
        "tier `landlock` runs commands as user {user}, who owns {} and may not pass through {}; \
         run `chmod {mode} {}`, or use tier `full`",
        workspace.display(), above.display(), above.display()
    )]
    Unreachable { workspace: PathBuf, above: PathBuf, user: u32, mode: &'static str },
    #[error("tier `{tier}` needs {feature}, which is missing")]
    Missing { tier: Tier, feature: &'static str },
    #[error("a command that does nothing ended with {0:?}")]
    Trial(carrel_exec::ExitStatus),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("could not prepare the command")]
    Resources(#[from] io::Error),
    #[error("the SSH key of the credential cannot be used: {reason}")]
    SshKey { reason: &'static str },
    #[error("could not prepare {} for temporary files", home.display())]
    Scratch {
        home: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "{} holds more than can be looked through for files that would run later, outside the \
         sandbox; what ran has run. Move or remove what is in it, as into a directory of its own \
         one level down, or let the operator set `trust = \"report\"` in policy.toml",
        shown(path)
    )]
    TooManyWatchedFiles { path: PathBuf },
    #[error(
        "{} was removed while a command ran in it; what ran has run. Leave it alone while it is in use",
        workspace.display()
    )]
    WorkspaceRemoved { workspace: PathBuf },
    #[error("commands or sessions use the fork {}", fork.display())]
    ForkInUse { fork: PathBuf },
    #[error(
        "the machine was started anew since the fork {} was made, and nothing of a fork is safe from that; \
         remove it and fork the base again. What was recorded of it is among the snapshots",
        fork.display()
    )]
    ForkLost { fork: PathBuf },
    #[error("the fork {} is an overlay, which needs the sandbox in tier `full`", fork.display())]
    ForkWithoutSandbox { fork: PathBuf },
    #[error("the tree of the fork could not be mounted")]
    Overlay(#[from] OverlayError),
    #[error(transparent)]
    Files(#[from] Error),
}

impl RunError {
    /// Returns whether the tier that a cell was made in has no loopback of its own.
    pub(crate) fn is_lack_of_loopback(&self) -> bool {
        match self {
            Self::Plan(PlanError::Loopback) => true,
            Self::NoTier { landlock, .. } => landlock.is_lack_of_loopback(),
            _ => false,
        }
    }
}

impl Coded for RunError {
    fn code(&self) -> Code {
        match self {
            Self::Workspace(error) | Self::Directory(error) => error.code(),
            Self::Refused(_) => Code::CommandRefused,
            Self::Argument(error) => error.code(),
            Self::Network(error) => error.code(),
            Self::Plan(error) => error.code(),
            Self::Cell(error) => error.code(),
            Self::NoTier { .. }
            | Self::Missing { .. }
            | Self::Unreachable { .. }
            | Self::Trial(_)
            | Self::ForkWithoutSandbox { .. } => Code::SandboxUnavailable,
            Self::Spawn(error) => error.code(),
            Self::Resources(_) | Self::SshKey { .. } => Code::SpawnFailed,
            Self::Scratch { .. } => Code::Io,
            Self::TooManyWatchedFiles { .. } => Code::RunsLater,
            Self::WorkspaceRemoved { .. } => Code::WorkspaceNotFound,
            Self::ForkInUse { .. } => Code::WorkspaceBusy,
            Self::ForkLost { .. } => Code::ForkConflict,
            Self::Overlay(error) => error.code(),
            Self::Files(error) => error.code(),
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Workspace(error) | Self::Directory(error) => error.detail(),
            Self::Refused(refusal) => json!({
                "rule": refusal.rule,
                "command": refusal.command,
                "position": refusal.position,
            }),
            Self::Argument(error) => error.detail(),
            Self::Network(error) => error.detail(),
            Self::Plan(error) => error.detail(),
            Self::Cell(error) => error.detail(),
            Self::NoTier { full, landlock } => {
                json!({ "full": full, "landlock": landlock.to_string() })
            }
            Self::Missing { tier, feature } => json!({ "tier": tier, "feature": feature }),
            Self::Unreachable { above, .. } => json!({ "path": above.to_string_lossy() }),
            Self::Spawn(error) => error.detail(),
            Self::Resources(_) | Self::SshKey { .. } | Self::Trial(_) => json!({}),
            Self::Scratch { home, .. } => json!({ "path": home.to_string_lossy() }),
            Self::TooManyWatchedFiles { path } => json!({ "path": shown(path) }),
            Self::WorkspaceRemoved { workspace } => json!({ "path": workspace.to_string_lossy() }),
            Self::ForkInUse { fork }
            | Self::ForkLost { fork }
            | Self::ForkWithoutSandbox { fork } => json!({ "path": fork.to_string_lossy() }),
            Self::Overlay(error) => error.detail(),
            Self::Files(error) => error.detail(),
        }
    }
}

/// Formats a path relative to the workspace, which itself has an empty one.
fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return "the workspace".to_owned();
    }
    path.to_string_lossy().into_owned()
}
