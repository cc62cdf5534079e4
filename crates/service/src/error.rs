//! Why the service could not do what was asked.

use carrel_domain::{ByteSize, Code, Coded, TaskId, TaskStatus, WorkspaceId};
use carrel_store::StoreError;
use serde_json::{Value, json};

use crate::credentials::CredentialError;
use crate::request::InvalidRequest;

/// Why the service could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The request is not what it should be.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    /// The store could not do its part.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The workspace could not be used.
    #[error(transparent)]
    Workspace(#[from] carrel_workspace::Error),
    /// The workspace could not be opened for commands.
    #[error(transparent)]
    Run(#[from] carrel_runner::RunError),
    /// A credential could not be kept or used.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// There is nothing to seal credentials with.
    #[error("this server keeps no credentials; the operator sets CARREL_CREDENTIAL_KEY")]
    NoCredentialKey,
    /// The disk has less left than has to stay free.
    #[error(
        "the disk of the workspaces has {free} left, and {floor} stay free; nothing is begun until there is more"
    )]
    LowSpace {
        /// What is left.
        free: ByteSize,
        /// What has to stay free.
        floor: ByteSize,
    },
    /// There is no such workspace.
    #[error("no such workspace: {id}")]
    NoWorkspace {
        /// The id.
        id: WorkspaceId,
    },
    /// The workspace has work to do.
    #[error("tasks of workspace {id} wait or run")]
    WorkspaceBusy {
        /// The id.
        id: WorkspaceId,
    },
    /// There is no such task, or not for whoever asks.
    #[error("no such task: {id}")]
    NoTask {
        /// The id.
        id: TaskId,
    },
    /// The task is over.
    #[error("task {id} is already {status}")]
    Finished {
        /// The id.
        id: TaskId,
        /// Where it stands for ever.
        status: TaskStatus,
    },
    /// The key came before with another request.
    #[error("idempotency key {key:?} was used for another request")]
    Mismatch {
        /// The key.
        key: String,
    },
    /// So many tasks wait that no more are taken.
    #[error("{limit} tasks of workspace {id} wait already")]
    Full {
        /// The workspace.
        id: WorkspaceId,
        /// How many may wait.
        limit: u64,
    },
    /// Workers could not be told of a task, and the operator wants submissions to fail then.
    #[error("{reason}")]
    NotEnqueued {
        /// The task, which has failed.
        id: TaskId,
        /// Why they could not be told.
        reason: String,
    },
}

impl Coded for ServiceError {
    fn code(&self) -> Code {
        match self {
            Self::Invalid(_) => Code::InvalidRequest,
            Self::Store(error) => error.code(),
            Self::Workspace(error) => error.code(),
            Self::Run(error) => error.code(),
            Self::Credential(error) => error.code(),
            Self::NoCredentialKey => Code::SecretUnknown,
            Self::LowSpace { .. } => Code::DiskFull,
            Self::NoWorkspace { .. } => Code::WorkspaceNotFound,
            Self::WorkspaceBusy { .. } => Code::WorkspaceBusy,
            Self::NoTask { .. } => Code::TaskNotFound,
            Self::Finished { .. } => Code::TaskFinished,
            Self::Mismatch { .. } => Code::IdempotencyMismatch,
            Self::Full { .. } => Code::Overloaded,
            Self::NotEnqueued { .. } => Code::QueueUnavailable,
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Invalid(error) => json!({ "field": error.field }),
            Self::Store(error) => error.detail(),
            Self::Workspace(error) => error.detail(),
            Self::Run(error) => error.detail(),
            Self::Credential(error) => error.detail(),
            Self::NoCredentialKey => json!({}),
            Self::LowSpace { free, floor } => {
                json!({ "free_bytes": free.as_u64(), "floor_bytes": floor.as_u64() })
            }
            Self::NoWorkspace { id } | Self::WorkspaceBusy { id } => json!({ "workspace_id": id }),
            Self::NoTask { id } | Self::NotEnqueued { id, .. } => json!({ "task_id": id }),
            Self::Finished { id, status } => json!({ "task_id": id, "status": status }),
            Self::Mismatch { key } => json!({ "idempotency_key": key }),
            Self::Full { id, limit } => json!({ "workspace_id": id, "limit": limit }),
        }
    }
}
