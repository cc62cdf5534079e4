//! Errors of running a command.

use std::io;
use std::path::{Path, PathBuf};

use carrel_config::NetworkLimitExceeded;
use carrel_domain::{Code, Coded, Tier};
use carrel_exec::{CellError, SpawnError};
use carrel_sandbox::PlanError;
use carrel_shell::{Refusal, arguments::Violation};
use serde_json::{Value, json};

use carrel_workspace::Error;

/// The reason why a command did not run, or why its workspace could not be checked afterwards.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The workspace cannot be opened or read.
    #[error("could not open the workspace")]
    Workspace(#[source] carrel_fsroot::Error),
    /// The working directory cannot be opened.
    #[error("could not start in this directory of the workspace")]
    Directory(#[source] carrel_fsroot::Error),
    /// The preset refuses the command line.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// An argument leads out of the workspace.
    #[error(transparent)]
    Argument(#[from] Violation),
    /// The request needs more network than the policy allows.
    #[error(transparent)]
    Network(#[from] NetworkLimitExceeded),
    /// No sandbox plan can be made for it.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The cell could not be set up.
    #[error(transparent)]
    Cell(#[from] CellError),
    /// Neither tier could be set up.
    #[error("no sandbox could be set up; tier `full`: {full}; tier `landlock`: {landlock}")]
    NoTier {
        /// The failure of tier `full`.
        full: String,
        /// The failure of tier `landlock`.
        landlock: Box<RunError>,
    },
    /// The user of the commands cannot reach the workspace.
    #[error(
        "tier `landlock` runs commands as user {user}, who owns {} and may not pass through {}; \
         run `chmod {mode} {}`, or use tier `full`",
        workspace.display(), above.display(), above.display()
    )]
    Unreachable {
        /// The workspace.
        workspace: PathBuf,
        /// The directory above it whose permission is missing.
        above: PathBuf,
        /// The user id of the commands.
        user: u32,
        /// The missing permission, as `chmod` takes it.
        mode: &'static str,
    },
    /// The tier needs a feature that is disabled.
    #[error("tier `{tier}` needs {feature}, which is missing")]
    Missing {
        /// The tier.
        tier: Tier,
        /// The feature.
        feature: &'static str,
    },
    /// The diagnosis ran a command that does nothing, and it failed.
    #[error("a command that does nothing ended with {0:?}")]
    Trial(carrel_exec::ExitStatus),
    /// The command could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// Processes, descriptors or control groups could not be made.
    #[error("could not prepare the command")]
    Resources(#[from] io::Error),
    /// An SSH key cannot be given to a command.
    #[error("the SSH key of the credential cannot be used: {reason}")]
    SshKey {
        /// The reason, and a remedy.
        reason: &'static str,
    },
    /// The directory for temporary files could not be made.
    #[error("could not prepare {} for temporary files", home.display())]
    Scratch {
        /// The directory.
        home: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The trust check cannot look through all watched files.
    #[error(
        "{} holds more than can be looked through for files that would run later, outside the \
         sandbox; what ran has run. Move or remove what is in it, as into a directory of its own \
         one level down, or let the operator set `trust = \"report\"` in policy.toml",
        shown(path)
    )]
    TooManyWatchedFiles {
        /// The directory, relative to the workspace.
        path: PathBuf,
    },
    /// The workspace was removed while it was in use.
    #[error(
        "{} was removed while a command ran in it; what ran has run. Leave it alone while it is in use",
        workspace.display()
    )]
    WorkspaceRemoved {
        /// The workspace.
        workspace: PathBuf,
    },
    /// An operation on the workspace failed.
    #[error(transparent)]
    Files(#[from] Error),
}

impl RunError {
    /// Adds the failure of tier `full` to that of tier `landlock`.
    pub(crate) fn after_full_tier(self, full: &str) -> Self {
        Self::NoTier { full: full.to_owned(), landlock: Box::new(self) }
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
            | Self::Trial(_) => Code::SandboxUnavailable,
            Self::Spawn(error) => error.code(),
            Self::Resources(_) | Self::SshKey { .. } => Code::SpawnFailed,
            Self::Scratch { .. } => Code::Io,
            Self::TooManyWatchedFiles { .. } => Code::RunsLater,
            Self::WorkspaceRemoved { .. } => Code::WorkspaceNotFound,
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
            Self::Network(error) => json!({ "asked": error.requested, "limit": error.limit }),
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
