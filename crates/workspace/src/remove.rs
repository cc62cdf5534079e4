//! Removes a workspace.
//!
//! Removal is a rename into the root's trash, constant in time; the trash is deleted in the background. A clean-up,
//! which no person ordered for this workspace, moves a tree with unsaved work into the kept part of the trash
//! instead (`kept`). Git is asked after `before_remove`, which may save the work.
//!
//! | step | after a crash | the next create or clean-up |
//! |---|---|---|
//! | take the lock; check for unsaved work if it is a reason to refuse | nothing has changed | the workspace is `ready` |
//! | write the record, `removing`, if there is a hook | a record `removing` and a directory | finishes the removal, and keeps unsaved work as this one would |
//! | run `before_remove` | the same; the hook's processes hold the lock until they end | the same |
//! | check for unsaved work if it is to be kept | the same | the same |
//! | move the directory into the trash or its kept part; fsync the root | a record without a directory | drops the record, or makes the directory anew |
//! | move its home into the trash | a record without a directory | the same |
//! | delete the record | a directory in the trash or its kept part | the next sweep deletes it, or does so when its time is over |

use std::fmt;
use std::path::PathBuf;

use carrel_domain::{Identifier, WorkspaceKey, message_of};
use carrel_fsroot::{Durability, Root};
use futures_util::future::BoxFuture;
use tracing::{info, warn};

use crate::error::Error;
use crate::freeze::FrozenBase;
use crate::git_state::GitState;
use crate::hooks::{Hook, HookSite, Hooks};
use crate::kept::KeptWork;
use crate::lock::{Lock, Mode};
use crate::record::{Record, State};
use crate::workspaces::{RootInner, Workspaces};

/// The workspace to remove, by its identifier or by its absolute path as an earlier run recorded it.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the summary defines both variants")]
pub enum Target {
    Identifier(Identifier),
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

/// A request to remove a workspace.
#[derive(Clone, Debug)]
pub struct Remove {
    /// The workspace.
    pub target: Target,
    /// The treatment of work that is saved nowhere else.
    pub unsaved: UnsavedWork,
}

/// The treatment of unsaved work by a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsavedWork {
    /// It goes with the workspace: a person has decided so.
    Discard,
    /// The removal fails with [`Error::Dirty`] if a git work tree has any.
    Refuse,
    /// The tree is kept and can be restored until its time is over. Files outside of repositories count too.
    Keep,
}

/// A removed workspace: its former path, and its key, which is free again. A directory without a record had no identifier.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the summary defines the fields")]
pub struct Removed {
    pub identifier: Option<Identifier>,
    pub issue_id: Option<String>,
    pub key: WorkspaceKey,
    pub path: PathBuf,
    /// The unsaved work that outlives the workspace.
    pub kept: Option<KeptWork>,
}

/// A workspace that is locked for removal: no process uses or creates it.
#[derive(Debug)]
pub struct RemovalLock {
    pub(crate) key: WorkspaceKey,
    pub(crate) record: Option<Record>,
    pub(crate) directory: Option<Root>,
    pub(crate) lock: Lock,
}

impl RemovalLock {
    /// Returns the record; none if the workspace has none.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    fn is_fork(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.fork.is_some())
    }
}

impl Workspaces {
    /// Runs `before_remove` and moves the workspace into the trash, in constant time.
    /// [`Workspaces::sweep`] deletes it later.
    pub async fn remove(&self, request: Remove, hooks: &Hooks) -> Result<Removed, Error> {
        let target = request.target.clone();
        let result = match self.blocking(move |inner| inner.lock_target(&target)).await {
            Ok(target) => self.remove_locked(target, request.unsaved, hooks).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &result {
            self.log_refused(&request.target, error);
        }
        result
    }

    /// Locks a workspace for removal. It need not exist.
    pub async fn lock_for_removal(&self, identifier: Identifier) -> Result<RemovalLock, Error> {
        self.blocking(move |inner| inner.lock_identifier(&identifier)).await
    }

    /// Removes forks of a base that the caller holds, and thaws it if none is left. Other processes that make or promote
    /// forks of it wait: they would wait for these locks and keep what this needs.
    pub async fn remove_forks(
        &self,
        base: FrozenBase,
        forks: Vec<RemovalLock>,
    ) -> Result<(), Error> {
        self.blocking(move |inner| {
            for fork in forks {
                let removed = inner.remove_frozen(fork, Vec::new())?;
                info!(fork = %removed.key, "Fork removed");
            }
            inner.thaw_without_forks(&base.record.key)
        })
        .await
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
        let issue_id = identifier;
        let issue_identifier = identifier;
        warn!(issue_id, issue_identifier, workspace, error, "Workspace removal refused");
    }

    /// Removes a workspace that is locked for removal.
    pub fn remove_locked<'a>(
        &'a self,
        target: RemovalLock,
        unsaved: UnsavedWork,
        hooks: &'a Hooks,
    ) -> BoxFuture<'a, Result<Removed, Error>> {
        Box::pin(self.remove_checked(target, unsaved, hooks))
    }

    async fn remove_checked(
        &self,
        mut target: RemovalLock,
        unsaved: UnsavedWork,
        hooks: &Hooks,
    ) -> Result<Removed, Error> {
        let key = target.key.clone();
        let record = target.record.clone();
        self.blocking(move |inner| {
            inner.refuse_with_forks(&key)?;
            let Some(record) = record.filter(|record| record.fork.is_some()) else { return Ok(()) };
            inner.finish_before_removal(&record)?;
            if unsaved == UnsavedWork::Discard {
                Ok(())
            } else {
                inner.refuse_changed_fork(&record)
            }
        })
        .await?;
        if unsaved != UnsavedWork::Discard || hooks.has(Hook::BeforeRemove) {
            target.lock.note("removing");
        }
        if let (UnsavedWork::Refuse, Some(directory)) = (unsaved, &target.directory) {
            self.refuse_if_dirty(&target.key, directory, hooks).await?;
        }
        // The directory of a fork is empty: the hook would look at nothing.
        if hooks.has(Hook::BeforeRemove) && target.directory.is_some() && !target.is_fork() {
            target = self.run_before_remove(target, unsaved, hooks).await?;
        }
        let removed = self.remove_unhooked(target, unsaved, hooks).await?;
        let issue_identifier = removed.identifier.as_ref().map(Identifier::as_str);
        let issue_id = removed.issue_id.as_deref().or(issue_identifier);
        let workspace = removed.path.display();
        info!(issue_id, issue_identifier, %workspace, "Workspace removed");
        Ok(removed)
    }

    /// Removes a workspace whose hook has run, or never will.
    pub(crate) async fn remove_unhooked(
        &self,
        target: RemovalLock,
        unsaved: UnsavedWork,
        hooks: &Hooks,
    ) -> Result<Removed, Error> {
        let keeps = unsaved == UnsavedWork::Keep && !self.inner.keep_unsaved.is_zero();
        let reasons = match &target.directory {
            Some(directory) if keeps => self.unsaved_work(directory, hooks.spawner()).await,
            Some(_) | None => Vec::new(),
        };
        self.blocking(move |inner| inner.remove_now(target, reasons)).await
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

    /// Marks the record `removing`, because the hook may destroy the contents, and runs the hook. A failed
    /// hook is logged and does not stop the removal.
    async fn run_before_remove(
        &self,
        target: RemovalLock,
        unsaved: UnsavedWork,
        hooks: &Hooks,
    ) -> Result<RemovalLock, Error> {
        let keeps = unsaved == UnsavedWork::Keep;
        let target = self.blocking(move |inner| Ok(inner.mark_removing(target, keeps))).await?;
        if let (Some(record), Some(directory)) = (&target.record, &target.directory) {
            let lock = &target.lock;
            // The lock for removal keeps forks from being made.
            let site = HookSite {
                workspaces: self,
                record,
                directory,
                lock,
                changes: None,
                attempt: None,
            };
            // The failure has been logged.
            let _ = hooks.run(Hook::BeforeRemove, site).await;
        }
        Ok(target)
    }
}

impl RootInner {
    fn lock_target(&self, target: &Target) -> Result<RemovalLock, Error> {
        let locked = match target {
            Target::Path(path) => {
                let key = self.locate(path)?;
                let lock = self.locks().take(key.as_str(), Mode::Exclusive)?;
                self.removal_lock(key, lock)?
            }
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
        self.removal_lock(key, lock)
    }

    /// Reads the record and opens the directory of a locked key, as far as they exist.
    pub(crate) fn removal_lock(&self, key: WorkspaceKey, lock: Lock) -> Result<RemovalLock, Error> {
        let record = self.records().read(&key)?;
        let directory = self.open_directory(&key)?;
        Ok(RemovalLock { key, record, directory, lock })
    }

    fn mark_removing(&self, mut target: RemovalLock, keep_unsaved: bool) -> RemovalLock {
        if let Some(record) = &mut target.record {
            record.state = State::Removing;
            record.keep_unsaved = keep_unsaved;
            if let Err(error) = self.records().write(record, Durability::Synced) {
                // A full disk must not prevent a removal.
                warn!(key = %target.key, %error, "Workspace could not be marked as being removed");
            }
        }
        target
    }

    /// Moves the directory first: a record without a directory is harmless. With unsaved work it is kept.
    pub(crate) fn remove_now(
        &self,
        target: RemovalLock,
        unsaved: Vec<String>,
    ) -> Result<Removed, Error> {
        let fork = target.record.as_ref().and_then(|record| record.fork.clone());
        let removed = self.remove_frozen(target, unsaved)?;
        fork.map_or(Ok(()), |fork| self.thaw(&fork.base))?;
        Ok(removed)
    }

    /// Removes a workspace, and leaves the base of a fork frozen.
    fn remove_frozen(&self, target: RemovalLock, unsaved: Vec<String>) -> Result<Removed, Error> {
        if let Some(record) = &target.record {
            self.finish_before_removal(record)?;
            // A fork without its directory would pass for one whose work is whole, if the process ends here.
            if record.fork.is_some()
                && let Err(error) = self.mark_ending(&target.key)
            {
                warn!(fork = %target.key, %error, "A fork could not be marked as being removed");
            }
        }
        let kept = match &target.directory {
            Some(directory) if !unsaved.is_empty() => {
                Some(self.keep(&target.key, target.record.clone(), directory, unsaved)?)
            }
            Some(directory) => {
                self.discard(&target.key, directory)?;
                None
            }
            None => None,
        };
        self.discard_beside(&target.key)?;
        self.usage_cache().remove(&target.key)?;
        self.records().remove(&target.key)?;
        self.forget_freeze(&target.key)?;
        let path = self.location(&target.key).workspace;
        let (identifier, issue_id) =
            target.record.map(|record| (record.identifier, record.issue_id)).unzip();
        Ok(Removed { identifier, issue_id: issue_id.flatten(), key: target.key, path, kept })
    }
}
