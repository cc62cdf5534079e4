//! Why a command did not run.

use std::io;
use std::path::{Path, PathBuf};

use carrel_config::NetworkLimitExceeded;
use carrel_domain::{Code, Coded, Tier};
use carrel_exec::{CellError, SpawnError};
use carrel_sandbox::PlanError;
use carrel_shell::{Refusal, arguments::Violation};
use serde_json::{Value, json};

use carrel_workspace::Error;

/// Why a command did not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The workspace cannot be used.
    #[error("could not open the workspace")]
    Workspace(#[source] carrel_fsroot::Error),
    /// The working directory cannot be used.
    #[error("could not start in this directory of the workspace")]
    Directory(#[source] carrel_fsroot::Error),
    /// The preset does not allow it.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// An argument leads out of the workspace.
    #[error(transparent)]
    Argument(#[from] Violation),
    /// It asks for more network than the policy allows.
    #[error(transparent)]
    Network(#[from] NetworkLimitExceeded),
    /// No plan can be made for it.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The walls could not be set up.
    #[error(transparent)]
    Cell(#[from] CellError),
    /// Neither tier could be set up.
    #[error("no sandbox could be set up; tier `full`: {full}; tier `landlock`: {landlock}")]
    NoTier {
        /// Why not the one.
        full: String,
        /// Why not the other.
        landlock: Box<RunError>,
    },
    /// The user that commands are to run as cannot reach the workspace.
    #[error(
        "tier `landlock` runs commands as user {user}, who owns {} and may not pass through {}; \
         run `chmod {mode} {}`, or use tier `full`",
        workspace.display(), above.display(), above.display()
    )]
    Unreachable {
        /// The workspace.
        workspace: PathBuf,
        /// The directory above it that stands in the way.
        above: PathBuf,
        /// The user.
        user: u32,
        /// What has to be granted there.
        mode: &'static str,
    },
    /// A feature is taken as missing.
    #[error("tier `{tier}` needs {feature}, which is missing")]
    Missing {
        /// The tier.
        tier: Tier,
        /// What it needs.
        feature: &'static str,
    },
    /// A command that does nothing did not succeed.
    #[error("a command that does nothing ended with {0:?}")]
    Trial(carrel_exec::ExitStatus),
    /// The command could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// Processes, descriptors or control groups could not be made.
    #[error("could not prepare the command")]
    Resources(#[from] io::Error),
    /// A key for SSH cannot be handed to a command.
    #[error("the SSH key of the credential cannot be used: {reason}")]
    SshKey {
        /// Why not, and what would help.
        reason: &'static str,
    },
    /// There is no place for temporary files.
    #[error("could not prepare {} for temporary files", home.display())]
    Scratch {
        /// Where they were to be.
        home: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// What would run later can no longer be told from the rest.
    #[error(
        "{} holds more than can be looked through for files that would run later, outside the \
         sandbox; what ran has run. Move or remove what is in it, as into a directory of its own \
         one level down, or let the operator set `trust = \"report\"` in policy.toml",
        shown(path)
    )]
    Overfull {
        /// The directory, relative to the workspace.
        path: PathBuf,
    },
    /// Somebody has removed the workspace.
    #[error(
        "{} was removed while a command ran in it; what ran has run. Leave it alone while it is in use",
        workspace.display()
    )]
    Gone {
        /// The workspace.
        workspace: PathBuf,
    },
    /// Files of the workspace could not be looked at.
    #[error(transparent)]
    Files(#[from] Error),
}

impl RunError {
    /// Says that this happened after the better tier had been refused.
    pub(crate) fn after(self, full: &str) -> Self {
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
            Self::Overfull { .. } => Code::RunsLater,
            Self::Gone { .. } => Code::WorkspaceNotFound,
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
            Self::Overfull { path } => json!({ "path": shown(path) }),
            Self::Gone { workspace } => json!({ "path": workspace.to_string_lossy() }),
            Self::Files(error) => error.detail(),
        }
    }
}

/// Names the workspace itself, too.
fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return "the workspace".to_owned();
    }
    path.to_string_lossy().into_owned()
}
