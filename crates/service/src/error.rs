//! The errors of the service.

use carrel_domain::{ByteSize, Code, Coded, TaskId, TaskStatus, WorkspaceId};
use carrel_store::StoreError;
use serde_json::{Value, json};

use crate::credentials::CredentialError;
use crate::request::InvalidRequest;

/// An operation of the service that failed.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The request is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The workspace could not be created, counted or removed.
    #[error(transparent)]
    Workspace(#[from] carrel_workspace::Error),
    /// The workspace could not be opened for commands.
    #[error(transparent)]
    Run(#[from] carrel_runner::RunError),
    /// A credential could not be stored or used.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The server has no key to seal credentials with.
    #[error("this server stores no credentials; the operator has to set CARREL_CREDENTIAL_KEY")]
    NoCredentialKey,
    /// The disk has less free space than the reserve.
    #[error(
        "the disk of the workspaces has {free} free, less than the reserve of {reserve}; free some space, or wait"
    )]
    LowSpace {
        /// The free space.
        free: ByteSize,
        /// The free-space reserve.
        reserve: ByteSize,
    },
    /// The workspace does not exist.
    #[error("no such workspace: {id}")]
    NoWorkspace {
        /// The requested id.
        id: WorkspaceId,
    },
    /// The workspace has queued or running tasks.
    #[error("workspace {id} has queued or running tasks")]
    WorkspaceBusy {
        /// The workspace.
        id: WorkspaceId,
    },
    /// The task does not exist, or not in this workspace.
    #[error("no such task: {id}")]
    NoTask {
        /// The requested id.
        id: TaskId,
    },
    /// The task is terminal and cannot be cancelled.
    #[error("task {id} is already {status}")]
    Finished {
        /// The task.
        id: TaskId,
        /// The terminal status.
        status: TaskStatus,
    },
    /// The idempotency key was used for a request with another body.
    #[error("idempotency key {key:?} was used for another request")]
    Mismatch {
        /// The idempotency key.
        key: String,
    },
    /// The queue of the workspace is full.
    #[error("workspace {id} has {limit} queued tasks already")]
    Full {
        /// The workspace.
        id: WorkspaceId,
        /// The most queued tasks of a workspace.
        limit: u64,
    },
    /// The hint for a task could not be sent, and the operator chose to fail such submissions.
    #[error("{reason}")]
    NotEnqueued {
        /// The task, which has failed.
        id: TaskId,
        /// The error of the bus.
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
            Self::LowSpace { free, reserve } => {
                json!({ "free_bytes": free.as_u64(), "floor_bytes": reserve.as_u64() })
            }
            Self::NoWorkspace { id } | Self::WorkspaceBusy { id } => json!({ "workspace_id": id }),
            Self::NoTask { id } | Self::NotEnqueued { id, .. } => json!({ "task_id": id }),
            Self::Finished { id, status } => json!({ "task_id": id, "status": status }),
            Self::Mismatch { key } => json!({ "idempotency_key": key }),
            Self::Full { id, limit } => json!({ "workspace_id": id, "limit": limit }),
        }
    }
}
