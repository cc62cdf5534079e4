//! A workspace in use.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use carrel_domain::{Identifier, WorkspaceKey};
use carrel_fsroot::Root;

use crate::blocking::blocking;
use crate::condition::Condition;
use crate::error::{CwdReason, Error};
use crate::hooks::{Hook, Hooks, Site};
use crate::lock::{Lock, Mode};
use crate::quota::Amount;
use crate::record::Record;
use crate::remove::Look;
use crate::usage::Freshness;
use crate::workspaces::{Inner, Workspaces};

/// How long a workspace counts as used just now, so that this is not written down again.
const USED_NOW: Duration = Duration::from_secs(10);

/// A workspace in use. While it exists nobody can remove the workspace.
#[derive(Debug)]
pub struct Workspace {
    workspaces: Workspaces,
    record: Record,
    directory: Root,
    lock: Lock,
}

impl Workspaces {
    /// Takes a ready workspace into use.
    pub async fn open(&self, identifier: &Identifier) -> Result<Workspace, Error> {
        let (workspaces, identifier) = (self.clone(), identifier.clone());
        blocking(move || workspaces.open_blocking(&identifier)).await
    }

    fn open_blocking(self, identifier: &Identifier) -> Result<Workspace, Error> {
        let (key, lock) = self.inner.lock_of(identifier, Mode::Shared)?;
        let Look { record: Some(record), directory: Some(directory) } = self.inner.look(&key)?
        else {
            return Err(self.inner.not_found(identifier));
        };
        if Condition::of(&record, Some(&directory)) != Condition::Ready {
            return Err(self.inner.not_found(identifier));
        }
        let now = self.inner.clock.now();
        if record.last_used_at.age(now) < USED_NOW {
            return Ok(Workspace { workspaces: self, record, directory, lock });
        }
        let used = self.inner.update(&key, |record| record.last_used_at = now);
        // On a full disk a workspace can still be used, not least to make room in it.
        let record = used.ok().flatten().unwrap_or(record);
        Ok(Workspace { workspaces: self, record, directory, lock })
    }

    /// Takes the ready workspace at an absolute path into use.
    pub async fn open_at(&self, path: &Path) -> Result<Workspace, Error> {
        let (workspaces, path) = (self.clone(), path.to_owned());
        blocking(move || {
            let key = workspaces.locate(&path)?;
            let record = workspaces.inner.records().read(&key)?;
            let identifier = record.map(|record| record.identifier);
            let missing = || Error::InvalidCwd {
                reason: CwdReason::OutsideWorkspaceRoot,
                location: workspaces.inner.location(&key),
            };
            let identifier = identifier.ok_or_else(missing)?;
            workspaces.open_blocking(&identifier)
        })
        .await
    }

    /// Checks a directory that a command is about to start in, and names its workspace.
    pub fn check_cwd(&self, path: &Path) -> Result<WorkspaceKey, Error> {
        self.inner.check_cwd(path)
    }

    /// Finds the workspace that an absolute path names.
    pub fn locate(&self, path: &Path) -> Result<WorkspaceKey, Error> {
        self.inner.locate(path)
    }
}

impl Inner {
    /// Looks whether a directory is still the one at its location, and returns that one.
    pub(crate) fn check_still_there(
        &self,
        key: &WorkspaceKey,
        directory: &Root,
    ) -> Result<Root, Error> {
        self.check_cwd(&self.location(key).workspace)?;
        let there = self.open_directory(key).ok().flatten();
        let there = there.ok_or_else(|| self.cwd_error(key, CwdReason::PathUnreadable))?;
        if there.identity().ok() == directory.identity().ok() {
            return Ok(there);
        }
        Err(self.cwd_error(key, CwdReason::Replaced))
    }

    pub(crate) fn cwd_error(&self, key: &WorkspaceKey, reason: CwdReason) -> Error {
        Error::InvalidCwd { reason, location: self.location(key) }
    }
}

impl Workspace {
    /// Runs `before_run` or `after_run` and remembers how it went.
    ///
    /// A failed `before_run` is the caller's error. A failed `after_run` is logged
    /// and changes nothing: the run it followed is over.
    pub async fn run_hook(
        &self,
        hook: Hook,
        hooks: &Hooks,
        attempt: Option<u32>,
    ) -> Result<(), Error> {
        if !hooks.has(hook) {
            return Ok(());
        }
        self.launch_directory()?;
        let inner = &self.workspaces.inner;
        let context = self.workspaces.hook_context(&self.record, attempt);
        let site = Site { context, directory: &self.directory, lock: &self.lock, inner };
        let ran = hooks.run(hook, site).await;
        if let Some(run) = ran.run {
            let (inner, key, now) = (inner.clone(), self.record.key.clone(), inner.clock.now());
            let remember = move |record: &mut Record| {
                record.last_used_at = now;
                record.remember(run);
            };
            blocking(move || inner.update(&key, remember)).await?;
        }
        match hook {
            Hook::AfterRun => Ok(()),
            Hook::AfterCreate | Hook::BeforeRun | Hook::BeforeRemove => Ok(ran.result?),
        }
    }

    /// Prepares the workspace for commands, after a last check of its path and its quota, and
    /// returns its usage.
    ///
    /// From here on its contents may change at any time: no cached count serves until
    /// [`Workspace::touch`].
    pub async fn mark_in_use(&self) -> Result<Amount, Error> {
        self.launch_directory()?;
        let key = &self.record.key;
        let measured = self.workspaces.check_quota(key, Freshness::Cached).await?;
        self.workspaces.mark_in_use(key).await?;
        Ok(measured.map(|measured| measured.amount).unwrap_or_default())
    }

    /// Returns the root that holds the workspace.
    pub fn root(&self) -> &Path {
        self.workspaces.path()
    }

    /// Notes that the workspace has just changed.
    pub async fn touch(&self) -> Result<(), Error> {
        self.workspaces.touch(&self.record.key).await
    }

    /// Returns the record as it was when the workspace was opened.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Returns the directory.
    pub fn files(&self) -> &Root {
        &self.directory
    }

    /// Returns a descriptor that keeps others from removing the workspace for as long as it is open.
    pub fn lock_descriptor(&self) -> io::Result<OwnedFd> {
        self.lock.share()
    }

    /// Returns the directory for a command to start in, after a last look at the path.
    ///
    /// The command starts in the directory that was checked, whatever happens to
    /// its name in the meantime.
    pub fn launch_directory(&self) -> Result<OwnedFd, Error> {
        let inner = &self.workspaces.inner;
        inner.check_still_there(&self.record.key, &self.directory).map(Into::into)
    }
}
