//! A workspace in use.
//!
//! [`Workspace`] shares the workspace's lock, so that it cannot be removed, and holds its directory by a
//! descriptor. Commands start in that directory, after a check that it is still the one at its path.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use carrel_domain::{Identifier, WorkspaceKey};
use carrel_exec::LazySpawner;
use carrel_fsroot::Root;
use tracing::{debug, warn};

use crate::blocking::blocking;
use crate::error::{CwdReason, Error};
use crate::freeze::ChangeRight;
use crate::git_state::Fingerprint;
use crate::hooks::{Hook, HookSite, Hooks};
use crate::lock::{Lock, Mode};
use crate::quota::Amount;
use crate::record::{Record, State};
use crate::remove::RemovalLock;
use crate::usage::Freshness;
use crate::workspaces::{RootInner, Workspaces};

/// The age of `last_used_at` below which opening a workspace does not write its record again.
pub(crate) const LAST_USED_PRECISION: Duration = Duration::from_secs(10);

/// A workspace in use. It cannot be removed while this exists.
#[derive(Debug)]
pub struct Workspace {
    workspaces: Workspaces,
    record: Record,
    directory: Root,
    lock: Lock,
}

impl Workspaces {
    /// Opens a ready workspace and shares its lock, waiting for a process that creates or removes it. One
    /// that is missing or incomplete is [`Error::NotFound`].
    pub async fn open(&self, identifier: &Identifier) -> Result<Workspace, Error> {
        let workspaces = self.clone();
        let identifier = identifier.clone();
        blocking(move || workspaces.open_blocking(&identifier)).await
    }

    fn open_blocking(self, identifier: &Identifier) -> Result<Workspace, Error> {
        let inner = &self.inner;
        let (key, lock) = inner.lock_of(identifier, Mode::Shared)?;
        let Some(mut record) = inner.records().read(&key)? else {
            return Err(inner.not_found(identifier));
        };
        inner.refuse_broken(&record)?;
        let directory = inner.open_directory(&key)?.filter(|_| record.state == State::Ready);
        let Some(directory) = directory else { return Err(inner.not_found(identifier)) };
        if let (Some(fork), Some(_)) = (&record.fork, inner.unfinished_promotion(&key)?) {
            let (fork, base) = (key.to_string(), fork.base.to_string());
            return Err(Error::PromotionInterrupted { fork, base });
        }
        if inner.frozen_since(&key)?.is_some() {
            inner.finish_promotion(&key, &directory)?;
        }
        let now = inner.clock.now();
        if record.last_used_at.age(now) >= LAST_USED_PRECISION {
            let used = inner.update(&key, |record| record.last_used_at = now);
            // A full disk must not keep a workspace from being opened, and files deleted in it.
            record = used.ok().flatten().unwrap_or(record);
        }
        Ok(Workspace { workspaces: self, record, directory, lock })
    }

    /// Opens a workspace that the caller has locked for removal; none without a record and a directory. It has a
    /// share of that lock.
    pub fn open_locked(&self, locked: &RemovalLock) -> Result<Option<Workspace>, Error> {
        let (Some(record), Some(directory)) = (&locked.record, &locked.directory) else {
            return Ok(None);
        };
        let directory =
            directory.try_clone().map_err(Error::files("could not open the workspace"))?;
        let lock =
            locked.lock.duplicate().map_err(|error| Error::Interrupted(error.to_string()))?;
        Ok(Some(Workspace { workspaces: self.clone(), record: record.clone(), directory, lock }))
    }

    /// Opens the ready workspace at an absolute path, as [`Workspaces::open`] does.
    pub async fn open_at(&self, path: &Path) -> Result<Workspace, Error> {
        let workspaces = self.clone();
        let path = path.to_owned();
        blocking(move || {
            let inner = &workspaces.inner;
            let key = inner.locate(&path)?;
            let missing = || inner.cwd_error(&key, CwdReason::OutsideWorkspaceRoot);
            let identifier = inner.records().read(&key)?.ok_or_else(missing)?.identifier;
            workspaces.open_blocking(&identifier)
        })
        .await
    }

    /// Checks a working directory for a command, and returns the key of its workspace.
    pub fn check_cwd(&self, path: &Path) -> Result<WorkspaceKey, Error> {
        self.inner.check_cwd(path)
    }

    /// Returns the key of the workspace at an absolute path.
    pub fn locate(&self, path: &Path) -> Result<WorkspaceKey, Error> {
        self.inner.locate(path)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // A fork expires by its last use, and a command in it may have run for long.
        if self.record.fork.is_some() {
            let now = self.workspaces.inner.clock.now();
            if let Err(error) = self.workspaces.inner.note_use(&self.record.key, now) {
                debug!(key = %self.record.key, %error, "could not note the last use of a fork");
            }
        }
    }
}

impl RootInner {
    /// Checks that an open directory is still the one at its path, and returns the latter.
    pub(crate) fn check_not_replaced(
        &self,
        key: &WorkspaceKey,
        directory: &Root,
    ) -> Result<Root, Error> {
        self.check_cwd(&self.location(key).workspace)?;
        let current = self.open_directory(key).ok().flatten();
        let current = current.ok_or_else(|| self.cwd_error(key, CwdReason::PathUnreadable))?;
        if current.identity().ok() == directory.identity().ok() {
            return Ok(current);
        }
        Err(self.cwd_error(key, CwdReason::Replaced))
    }

    pub(crate) fn cwd_error(&self, key: &WorkspaceKey, reason: CwdReason) -> Error {
        Error::InvalidCwd { reason, location: self.location(key) }
    }
}

impl Workspace {
    /// Runs `before_run` or `after_run` and records the result.
    ///
    /// A failed `before_run` is an error. A failed `after_run` is only logged: the run before it is over. Neither runs
    /// while the workspace is frozen for forks, and no fork is made before its last process has ended.
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
        let Self { workspaces, record, directory, lock } = self;
        let changes = match workspaces.with_key(&record.key, RootInner::right_to_change).await? {
            ChangeRight::Granted(held) => Some(held),
            ChangeRight::Frozen(forks) => {
                let frozen = Error::Frozen { key: record.key.to_string(), forks };
                warn!(hook = hook.as_str(), workspace = %record.key, error = %frozen, "Workspace hook not run");
                return if hook == Hook::AfterRun { Ok(()) } else { Err(frozen) };
            }
        };
        let site = HookSite { workspaces, record, directory, lock, changes, attempt };
        let ran = hooks.run(hook, site).await;
        if let Some(run) = ran.run {
            let now = workspaces.inner.clock.now();
            let add = move |record: &mut Record| {
                record.last_used_at = now;
                record.add_hook_run(run);
            };
            workspaces.with_key(&record.key, |inner, key| inner.update(key, add)).await?;
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

    pub(crate) fn inner(&self) -> &RootInner {
        &self.workspaces.inner
    }

    /// Returns the workspaces of the root that holds it.
    pub fn workspaces(&self) -> &Workspaces {
        &self.workspaces
    }

    /// Returns the root that holds the workspace.
    pub fn root(&self) -> &Path {
        self.workspaces.path()
    }

    /// Marks the cached usage as outdated.
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

    /// Returns the fingerprint of the contents. Git is asked without using any setting of a repository.
    pub async fn fingerprint(&self, spawner: &LazySpawner) -> Result<Fingerprint, Error> {
        self.workspaces.fingerprint(&self.directory, spawner).await
    }

    /// Returns a share of the lock: the workspace cannot be removed while the descriptor is open anywhere.
    pub fn lock_descriptor(&self) -> io::Result<OwnedFd> {
        self.lock.share()
    }

    /// Returns the working directory for a command, after a last check of the path.
    ///
    /// The command starts in the directory that was checked, even if its path is replaced afterwards.
    pub fn launch_directory(&self) -> Result<OwnedFd, Error> {
        let inner = &self.workspaces.inner;
        inner.check_not_replaced(&self.record.key, &self.directory).map(Into::into)
    }
}
