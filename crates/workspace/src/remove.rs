//! Removing a workspace.

use std::fmt;
use std::path::PathBuf;

use carrel_domain::{Identifier, WorkspaceKey, message_of};
use carrel_fsroot::{Durability, Root};
use tracing::{info, warn};

use crate::blocking::blocking;
use crate::error::Error;
use crate::git_state::GitState;
use crate::hooks::{Hook, Hooks, Site};
use crate::lock::{Lock, Mode};
use crate::record::{Record, State};
use crate::workspaces::{Inner, Workspaces};

/// Which workspace to remove.
#[derive(Clone, Debug)]
pub enum Target {
    /// The one of this identifier.
    Identifier(Identifier),
    /// The one at this absolute path, as an earlier run remembered it.
    Path(PathBuf),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identifier(identifier) => identifier.fmt(f),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

/// How to remove a workspace.
#[derive(Clone, Debug)]
pub struct Remove {
    /// Which one.
    pub target: Target,
    /// Whether unsaved work in a git work tree stands in the way.
    pub keep_if_dirty: bool,
}

/// A workspace that is gone.
#[derive(Clone, Debug)]
pub struct Removed {
    /// What it was for; unknown when it had no record.
    pub identifier: Option<Identifier>,
    /// The tracker's own id of the issue, where it was known.
    pub issue_id: Option<String>,
    /// Its key, which is free again.
    pub key: WorkspaceKey,
    /// Where it was.
    pub path: PathBuf,
}

/// A workspace that is locked for removal: nobody uses it, and nobody makes it.
#[derive(Debug)]
pub struct RemovalLock {
    pub(crate) key: WorkspaceKey,
    pub(crate) record: Option<Record>,
    pub(crate) directory: Option<Root>,
    lock: Lock,
}

/// What stands where a workspace is or was.
pub(crate) struct Look {
    pub(crate) record: Option<Record>,
    pub(crate) directory: Option<Root>,
}

impl Look {
    pub(crate) fn into_removal_lock(self, key: WorkspaceKey, lock: Lock) -> RemovalLock {
        RemovalLock { key, record: self.record, directory: self.directory, lock }
    }
}

impl Workspaces {
    /// Runs `before_remove` and moves the workspace into the trash. Returns at once
    /// whatever its size; [`Workspaces::sweep`] deletes it later.
    pub async fn remove(&self, request: Remove, hooks: &Hooks) -> Result<Removed, Error> {
        let (inner, target) = (self.inner.clone(), request.target.clone());
        let result = match blocking(move || inner.lock_target(&target)).await {
            Ok(target) => self.remove_locked(target, request.keep_if_dirty, hooks).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &result {
            self.log_refused(&request.target, error);
        }
        result
    }

    /// Locks a workspace that is to be removed. It need not be there.
    pub async fn lock_for_removal(&self, identifier: Identifier) -> Result<RemovalLock, Error> {
        let inner = self.inner.clone();
        blocking(move || inner.lock_identifier(&identifier)).await
    }

    fn log_refused(&self, target: &Target, error: &Error) {
        let error = &message_of(error);
        let (identifier, path) = match target {
            Target::Path(path) => (None, Some(path.clone())),
            Target::Identifier(identifier) => {
                let key = self.key(identifier).ok();
                (Some(identifier.as_str()), key.map(|key| self.inner.location(&key).workspace))
            }
        };
        let workspace = path.map(|path| path.display().to_string());
        let (issue_id, issue_identifier) = (identifier, identifier);
        warn!(issue_id, issue_identifier, workspace, error, "Workspace removal refused");
    }

    /// Removes a workspace that is locked already.
    pub async fn remove_locked(
        &self,
        mut target: RemovalLock,
        keep_if_dirty: bool,
        hooks: &Hooks,
    ) -> Result<Removed, Error> {
        if keep_if_dirty || hooks.has(Hook::BeforeRemove) {
            target.lock.note("removing");
        }
        if let (true, Some(directory)) = (keep_if_dirty, &target.directory) {
            self.refuse_if_dirty(&target.key, directory, hooks).await?;
        }
        if hooks.has(Hook::BeforeRemove) && target.directory.is_some() {
            target = self.run_before_remove(target, hooks).await?;
        }
        let inner = self.inner.clone();
        let removed = blocking(move || inner.remove_now(target)).await?;
        let issue_identifier = removed.identifier.as_ref().map(Identifier::as_str);
        let issue_id = removed.issue_id.as_deref().or(issue_identifier);
        let workspace = removed.path.display();
        info!(issue_id, issue_identifier, %workspace, "Workspace removed");
        Ok(removed)
    }

    async fn refuse_if_dirty(
        &self,
        key: &WorkspaceKey,
        directory: &Root,
        hooks: &Hooks,
    ) -> Result<(), Error> {
        let states = self.repositories(directory, hooks.spawner()).await?;
        let reasons: Vec<String> = states.iter().flat_map(GitState::unsaved).collect();
        if reasons.is_empty() {
            return Ok(());
        }
        Err(Error::Dirty { key: key.to_string(), reasons })
    }

    /// Writes down that removal has begun, because the hook may take things apart.
    /// A failed hook is logged and does not stop the removal.
    async fn run_before_remove(
        &self,
        target: RemovalLock,
        hooks: &Hooks,
    ) -> Result<RemovalLock, Error> {
        let inner = self.inner.clone();
        let target = blocking(move || Ok::<_, Error>(inner.mark_removing(target))).await?;
        if let (Some(record), Some(directory)) = (&target.record, &target.directory) {
            let context = self.hook_context(record, None);
            let site = Site { context, directory, lock: &target.lock, inner: &self.inner };
            // Logged where it happened.
            let _ = hooks.run(Hook::BeforeRemove, site).await;
        }
        Ok(target)
    }
}

impl Inner {
    fn lock_target(&self, target: &Target) -> Result<RemovalLock, Error> {
        let locked = match target {
            Target::Path(path) => self.lock_key(self.locate(path)?)?,
            Target::Identifier(identifier) => self.lock_identifier(identifier)?,
        };
        if locked.record.is_none() && locked.directory.is_none() {
            let root = self.root.path().to_owned();
            return Err(Error::NotFound { name: target.to_string(), root });
        }
        Ok(locked)
    }

    fn lock_identifier(&self, identifier: &Identifier) -> Result<RemovalLock, Error> {
        let (key, lock) = self.lock_of(identifier, Mode::Exclusive)?;
        self.look(&key).map(|look| look.into_removal_lock(key, lock))
    }

    fn lock_key(&self, key: WorkspaceKey) -> Result<RemovalLock, Error> {
        let lock = self.locks().take(key.as_str(), Mode::Exclusive)?;
        self.look(&key).map(|look| look.into_removal_lock(key, lock))
    }

    /// Looks at record and directory of a workspace.
    pub(crate) fn look(&self, key: &WorkspaceKey) -> Result<Look, Error> {
        Ok(Look { record: self.records().read(key)?, directory: self.open_directory(key)? })
    }

    fn mark_removing(&self, mut target: RemovalLock) -> RemovalLock {
        if let Some(record) = &mut target.record {
            record.state = State::Removing;
            if let Err(error) = self.records().write(record, Durability::Synced) {
                // A full disk must not keep anybody from making room.
                warn!(key = %target.key, %error, "Workspace could not be marked as being removed");
            }
        }
        target
    }

    /// Moves the directory away first: a record without a directory is harmless.
    pub(crate) fn remove_now(&self, target: RemovalLock) -> Result<Removed, Error> {
        if let Some(directory) = &target.directory {
            self.discard(&target.key, directory)?;
        }
        self.accounts().forget(&target.key)?;
        self.records().remove(&target.key)?;
        let path = self.location(&target.key).workspace;
        let (identifier, issue_id) =
            target.record.map(|record| (record.identifier, record.issue_id)).unzip();
        Ok(Removed { identifier, issue_id: issue_id.flatten(), key: target.key, path })
    }
}
