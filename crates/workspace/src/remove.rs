//! Removing a workspace.

use std::path::PathBuf;

use carrel_domain::{Choice, Identifier, WorkspaceKey};
use carrel_fsroot::{Durability, Root};
use tracing::{info, warn};

use crate::blocking::blocking;
use crate::error::Error;
use crate::hooks::{Hook, Hooks};
use crate::lock::{Lock, Mode, WAIT};
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

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

/// A workspace that is locked for removal.
struct Doomed {
    key: WorkspaceKey,
    record: Option<Record>,
    directory: Option<Root>,
    _lock: Lock,
}

impl Workspaces {
    /// Runs `before_remove` and moves the workspace into the trash. Returns at once
    /// whatever its size; [`Workspaces::sweep`] deletes it later.
    pub async fn remove(&self, request: Remove, hooks: &Hooks) -> Result<Removed, Error> {
        let asked = request.target.to_string();
        let result = self.remove_unlogged(request, hooks).await;
        match &result {
            Ok(removed) => {
                let issue_identifier = removed.identifier.as_ref().map(Identifier::as_str);
                let issue_id = removed.issue_id.as_deref().or(issue_identifier);
                let workspace = removed.path.display();
                info!(issue_id, issue_identifier, %workspace, "Workspace removed");
            }
            Err(error) => warn!(workspace = asked, %error, "Workspace removal refused"),
        }
        result
    }

    async fn remove_unlogged(&self, request: Remove, hooks: &Hooks) -> Result<Removed, Error> {
        let inner = self.inner.clone();
        let target = request.target;
        let mut doomed = blocking(move || inner.doom(&target)).await?;
        if let (true, Some(directory)) = (request.keep_if_dirty, &doomed.directory) {
            self.refuse_if_dirty(&doomed.key, directory, hooks).await?;
        }
        if hooks.has(Hook::BeforeRemove) && doomed.directory.is_some() {
            doomed = self.run_before_remove(doomed, hooks).await?;
        }
        let inner = self.inner.clone();
        blocking(move || inner.bury(doomed)).await
    }

    async fn refuse_if_dirty(
        &self,
        key: &WorkspaceKey,
        directory: &Root,
        hooks: &Hooks,
    ) -> Result<(), Error> {
        let reasons: Vec<String> = hooks
            .repositories(directory)
            .await?
            .into_iter()
            .flat_map(|state| state.unsaved())
            .collect();
        if reasons.is_empty() {
            return Ok(());
        }
        Err(Error::Dirty { key: key.to_string(), reasons })
    }

    /// Writes down that removal has begun, because the hook may take things apart.
    /// A failed hook is logged and does not stop the removal.
    async fn run_before_remove(&self, doomed: Doomed, hooks: &Hooks) -> Result<Doomed, Error> {
        let inner = self.inner.clone();
        let doomed = blocking(move || inner.mark_removing(doomed)).await?;
        if let (Some(record), Some(directory)) = (&doomed.record, &doomed.directory) {
            let context = self.hook_context(record, None, None);
            // Logged where it happened.
            let _ = hooks.run(Hook::BeforeRemove, &context, directory, &self.inner).await;
        }
        Ok(doomed)
    }
}

impl Inner {
    fn doom(&self, target: &Target) -> Result<Doomed, Error> {
        let key = match target {
            Target::Path(path) => self.locate(path)?,
            Target::Identifier(identifier) => match self.choose(identifier)? {
                Choice::Held(key) | Choice::Free(key) => key,
            },
        };
        let lock = self.locks().take(key.as_str(), Mode::Exclusive, WAIT, "removing")?;
        let record = self.records().read(&key)?;
        let directory = self.open_directory(&key)?;
        match target {
            Target::Identifier(identifier) if record.is_none() && directory.is_none() => {
                Err(self.not_found(identifier))
            }
            _ => Ok(Doomed { key, record, directory, _lock: lock }),
        }
    }

    fn mark_removing(&self, mut doomed: Doomed) -> Result<Doomed, Error> {
        if let Some(record) = &mut doomed.record {
            record.state = State::Removing;
            self.records().write(record, Durability::Synced)?;
        }
        Ok(doomed)
    }

    /// Moves the directory away first: a record without a directory is harmless.
    fn bury(&self, doomed: Doomed) -> Result<Removed, Error> {
        if doomed.directory.is_some() {
            self.discard(&doomed.key)?;
        }
        self.accounts().forget(&doomed.key)?;
        self.records().remove(&doomed.key)?;
        let path = self.place(&doomed.key).workspace;
        let (identifier, issue_id) =
            doomed.record.map(|record| (record.identifier, record.issue_id)).unzip();
        Ok(Removed { identifier, issue_id: issue_id.flatten(), key: doomed.key, path })
    }

    /// Finishes a removal that a crash interrupted, if nobody is at it.
    pub(crate) fn finish_removal(&self, key: &WorkspaceKey) -> Result<bool, Error> {
        let Some(lock) = self.locks().attempt(key.as_str(), Mode::Exclusive, "removing")? else {
            return Ok(false);
        };
        let record = self.records().read(key)?;
        let directory = self.open_directory(key)?;
        self.bury(Doomed { key: key.clone(), record, directory, _lock: lock }).map(|_| true)
    }
}
