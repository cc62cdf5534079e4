//! The claim of a command on the tree of its workspace.

use std::os::fd::OwnedFd;

use carrel_domain::{WorkspaceAccess, WorkspaceKey};
use carrel_workspace::{ChangeRight, Error};

use crate::error::RunError;
use crate::request::RunRequest;
use crate::runner::{RunnerInner, SandboxMode};
use crate::workspace_handle::WorkspaceHandle;

/// The right of a command to change its workspace, or the reason why it has none.
#[derive(Debug, Default)]
pub(crate) struct ChangeClaim {
    /// Held until its last process has ended: no fork of the workspace is made meanwhile.
    pub(crate) lock: Option<OwnedFd>,
    /// The forks for which the workspace is frozen.
    pub(crate) frozen: Vec<WorkspaceKey>,
}

impl RunnerInner {
    /// Claims the right to change the workspace for a command that wants it. While the workspace is frozen for forks
    /// the command runs with a read-only tree.
    pub(crate) fn claim_changes(
        &self,
        workspace: &WorkspaceHandle,
        request: &mut RunRequest,
    ) -> Result<ChangeClaim, RunError> {
        if request.access == WorkspaceAccess::ReadOnly {
            return Ok(ChangeClaim::default());
        }
        match workspace.right_to_change()? {
            None => Ok(ChangeClaim::default()),
            Some(ChangeRight::Granted(lock)) => {
                Ok(ChangeClaim { lock: Some(lock), frozen: Vec::new() })
            }
            // Without a sandbox nothing would keep it from writing.
            Some(ChangeRight::Frozen(forks)) if self.options.sandbox == SandboxMode::Off => {
                let key = workspace.path().file_name().unwrap_or_default();
                Err(Error::Frozen { key: key.to_string_lossy().into_owned(), forks }.into())
            }
            Some(ChangeRight::Frozen(frozen)) => {
                request.access = WorkspaceAccess::ReadOnly;
                Ok(ChangeClaim { lock: None, frozen })
            }
        }
    }
}
