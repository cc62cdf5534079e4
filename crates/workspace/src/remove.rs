//! Removing a workspace.

use std::fmt;
use std::path::PathBuf;

use carrel_domain::{Identifier, WorkspaceKey, message_of};
use carrel_fsroot::{Durability, Root};
use tracing::{info, warn};

use crate::blocking::blocking;
use crate::error::Error;
use crate::git::GitState;
use crate::hooks::{Hook, Hooks, Site};
use crate::lock::{Lock, Mode};
use crate::manager::{Inner, Workspaces};
use crate::record::{Record, State};

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
pub struct Doomed {
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
    pub(crate) fn into_doomed(self, key: WorkspaceKey, lock: Lock) -> Doomed {
        Doomed { key, record: self.record, directory: self.directory, lock }
    }
}

impl Workspaces {
    /// Runs `before_remove` and moves the workspace into the trash. Returns at once
    /// whatever its size; [`Workspaces::sweep`] deletes it later.
    pub async fn remove(&self, request: Remove, hooks: &Hooks) -> Result<Removed, Error> {
        let (inner, target) = (self.inner.clone(), request.target.clone());
        let result = match blocking(move || inner.doom(&target)).await {
            Ok(doomed) => self.remove_doomed(doomed, request.keep_if_dirty, hooks).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &result {
            self.log_refused(&request.target, error);
        }
        result
    }

    /// Locks a workspace that is to be removed. It need not be there.
    pub async fn doom(&self, identifier: Identifier) -> Result<Doomed, Error> {
        let inner = self.inner.clone();
        blocking(move || inner.doom_identifier(&identifier)).await
    }

    fn log_refused(&self, target: &Target, error: &Error) {
        let error = &message_of(error);
        let (identifier, path) = match target {
            Target::Path(path) => (None, Some(path.clone())),
            Target::Identifier(identifier) => {
                let key = self.key(identifier).ok();
                (Some(identifier.as_str()), key.map(|key| self.inner.place(&key).workspace))
            }
        };
        let workspace = path.map(|path| path.display().to_string());
        let (issue_id, issue_identifier) = (identifier, identifier);
        warn!(issue_id, issue_identifier, workspace, error, "Workspace removal refused");
    }

    /// Removes a workspace that is locked already.
    pub async fn remove_doomed(
        &self,
        mut doomed: Doomed,
        keep_if_dirty: bool,
        hooks: &Hooks,
    ) -> Result<Removed, Error> {
        if keep_if_dirty || hooks.has(Hook::BeforeRemove) {
            doomed.lock.note("removing");
        }
        if let (true, Some(directory)) = (keep_if_dirty, &doomed.directory) {
            self.refuse_if_dirty(&doomed.key, directory, hooks).await?;
        }
        if hooks.has(Hook::BeforeRemove) && doomed.directory.is_some() {
            doomed = self.run_before_remove(doomed, hooks).await?;
        }
        let inner = self.inner.clone();
        let removed = blocking(move || inner.bury(doomed)).await?;
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
        let states = self.repositories(directory, hooks.commands()).await?;
        let reasons: Vec<String> = states.iter().flat_map(GitState::unsaved).collect();
        if reasons.is_empty() {
            return Ok(());
        }
        Err(Error::Dirty { key: key.to_string(), reasons })
    }

    /// Writes down that removal has begun, because the hook may take things apart.
    /// A failed hook is logged and does not stop the removal.
    async fn run_before_remove(&self, doomed: Doomed, hooks: &Hooks) -> Result<Doomed, Error> {
        let inner = self.inner.clone();
        let doomed = blocking(move || Ok::<_, Error>(inner.mark_removing(doomed))).await?;
        if let (Some(record), Some(directory)) = (&doomed.record, &doomed.directory) {
            let context = self.hook_context(record, None);
            let site = Site { context, directory, lock: &doomed.lock, inner: &self.inner };
            // Logged where it happened.
            let _ = hooks.run(Hook::BeforeRemove, site).await;
        }
        Ok(doomed)
    }
}

impl Inner {
    fn doom(&self, target: &Target) -> Result<Doomed, Error> {
        let doomed = match target {
            Target::Path(path) => self.lock_for_removal(self.locate(path)?)?,
            Target::Identifier(identifier) => self.doom_identifier(identifier)?,
        };
        if doomed.record.is_none() && doomed.directory.is_none() {
            let root = self.root.path().to_owned();
            return Err(Error::NotFound { name: target.to_string(), root });
        }
        Ok(doomed)
    }

    fn doom_identifier(&self, identifier: &Identifier) -> Result<Doomed, Error> {
        let (key, lock) = self.lock_of(identifier, Mode::Exclusive)?;
        self.look(&key).map(|look| look.into_doomed(key, lock))
    }

    fn lock_for_removal(&self, key: WorkspaceKey) -> Result<Doomed, Error> {
        let lock = self.locks().take(key.as_str(), Mode::Exclusive)?;
        self.look(&key).map(|look| look.into_doomed(key, lock))
    }

    /// Looks at record and directory of a workspace.
    pub(crate) fn look(&self, key: &WorkspaceKey) -> Result<Look, Error> {
        Ok(Look { record: self.records().read(key)?, directory: self.open_directory(key)? })
    }

    fn mark_removing(&self, mut doomed: Doomed) -> Doomed {
        if let Some(record) = &mut doomed.record {
            record.state = State::Removing;
            if let Err(error) = self.records().write(record, Durability::Synced) {
                // A full disk must not keep anybody from making room.
                warn!(key = %doomed.key, %error, "Workspace could not be marked as being removed");
            }
        }
        doomed
    }

    /// Moves the directory away first: a record without a directory is harmless.
    pub(crate) fn bury(&self, doomed: Doomed) -> Result<Removed, Error> {
        if let Some(directory) = &doomed.directory {
            self.discard(&doomed.key, directory)?;
        }
        self.accounts().forget(&doomed.key)?;
        self.records().remove(&doomed.key)?;
        let path = self.place(&doomed.key).workspace;
        let (identifier, issue_id) =
            doomed.record.map(|record| (record.identifier, record.issue_id)).unzip();
        Ok(Removed { identifier, issue_id: issue_id.flatten(), key: doomed.key, path })
    }
}
