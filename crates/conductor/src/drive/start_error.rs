//! Why a conductor cannot begin.

use carrel_domain::{Code, Coded};
use carrel_store::StoreError;
use carrel_tracker::TrackerError;
use serde_json::{Value, json};

/// Why a conductor cannot begin, or cannot go on with changed settings.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another conductor works off the same issues.
    #[error(
        "another carrel run works off {scope} with the data directory {path}{}",
        holder.as_ref().map(|holder| format!(" ({holder})")).unwrap_or_default()
    )]
    InUse {
        /// Which issues.
        scope: String,
        /// The data directory.
        path: String,
        /// Who it is, if that is known.
        holder: Option<String>,
    },
    /// Another conductor works off the same issues, maybe on another machine.
    #[error(
        "another carrel run works off {scope} with the same database: {by}; end it first, or name another \
         database in DATABASE_URL"
    )]
    Held {
        /// Which issues.
        scope: String,
        /// Who it is.
        by: String,
    },
    /// The data directory cannot be used.
    #[error("the data directory cannot be used")]
    Data(#[from] carrel_fsroot::Error),
    /// A thread could not be started.
    #[error("could not start a thread")]
    Thread(#[source] std::io::Error),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The root of the workspaces cannot be used.
    #[error(transparent)]
    Workspace(#[from] carrel_workspace::Error),
    /// The tracker cannot be used.
    #[error("the tracker cannot be used: {}", .0.message)]
    Tracker(TrackerError),
    /// The file names other issues than those that are being worked off.
    #[error("the workflow file names the issues of {to} instead of {from}; restart to change that")]
    OtherScope {
        /// Whose issues are worked off.
        from: String,
        /// Whose issues the file names.
        to: String,
    },
    /// The file says nothing about trackers and agents.
    #[error("the workflow file was not read for a conductor")]
    NoConductor,
}

impl Coded for StartError {
    fn code(&self) -> Code {
        match self {
            Self::InUse { .. } | Self::Held { .. } => Code::WorkspaceBusy,
            Self::Data(error) => error.code(),
            Self::Thread(_) => Code::SpawnFailed,
            Self::Store(error) => error.code(),
            Self::Workspace(error) => error.code(),
            Self::Tracker(_) | Self::OtherScope { .. } | Self::NoConductor => Code::WorkflowInvalid,
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::InUse { scope, path, .. } => json!({ "scope": scope, "path": path }),
            Self::Held { scope, by } => json!({ "scope": scope, "holder": by }),
            Self::Store(error) => error.detail(),
            Self::Workspace(error) => error.detail(),
            Self::OtherScope { from, to } => json!({ "from": from, "to": to }),
            Self::Data(error) => error.detail(),
            Self::Thread(_) | Self::Tracker(_) | Self::NoConductor => json!({}),
        }
    }
}
