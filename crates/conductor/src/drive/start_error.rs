//! Errors of [`super::Conductor::open`] and of a reload.

use carrel_domain::{Code, Coded};
use carrel_store::StoreError;
use carrel_tracker::TrackerError;
use serde_json::{Value, json};

/// The reason for which a conductor cannot start, or cannot apply a changed workflow file.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the object and the cause")]
pub enum StartError {
    /// Another conductor of the same scope has the lock of the data directory.
    #[error(
        "another carrel run works on {scope} with the data directory {path}{}",
        holder.as_ref().map(|holder| format!(" ({holder})")).unwrap_or_default()
    )]
    InUse {
        scope: String,
        path: String,
        /// The other process, if its lock file names it.
        holder: Option<String>,
    },
    /// Another conductor of the same scope has the tenure, maybe on another machine.
    #[error(
        "another carrel run works on {scope} with the same database: {by}; stop it first, or name another \
         database in DATABASE_URL"
    )]
    Held {
        scope: String,
        /// The other conductor's process, machine and data directory.
        by: String,
    },
    #[error("the data directory cannot be used")]
    Data(#[from] carrel_fsroot::Error),
    #[error("could not start a thread")]
    Thread(#[source] std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The root of the workspaces cannot be used.
    #[error(transparent)]
    Workspace(#[from] carrel_workspace::Error),
    #[error("the tracker cannot be used: {}", .0.message)]
    Tracker(TrackerError),
    /// The changed workflow file names another scope than the conductor has.
    #[error("the workflow file names the issues of {to} instead of {from}; restart to change that")]
    OtherScope { from: String, to: String },
    /// The workflow file was loaded without its conductor part.
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
