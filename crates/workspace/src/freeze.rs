//! Frozen workspaces: the bases of forks, in which nothing is written while a fork lives.
//!
//! The tree of a fork shows the files of its base that the fork did not change, so a write in the base would appear
//! in the middle of the fork's work. A base is frozen by an empty file, `.carrel/frozen/KEY`, whose change time says
//! since when; the records of the forks say for whom. Every writer of Carrel looks at that file under a lock, so
//! none can begin before the freeze and write after it:
//!
//! | writer | lock |
//! |---|---|
//! | a command that may change the tree, `before_run` and `after_run` | shares `KEY+changes` until its last process has ended |
//! | a tool that changes files | the write lock of the workspace, for each change |
//!
//! [`Workspaces::freeze`] takes `KEY+changes` alone without waiting, so it fails while such a command runs, and the
//! caller passes through the write lock once after it. A writer outside of Carrel is not held back; promotion
//! finds what it changed by the change times of the files.
//!
//! A crash between freezing and the first fork leaves a frozen base without forks, which the next writer thaws.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use carrel_domain::{Identifier, WorkspaceKey};
use carrel_fsroot::Root;

use crate::error::Error;
use crate::fork::{Fork, ForkKind};
use crate::lock::{self, FIRST_PAUSE, Lock, MAX_PAUSE, Mode};
use crate::record::{Record, State};
use crate::workspace::Workspace;
use crate::workspaces::{RootInner, Workspaces};

pub(crate) const FROZEN: &str = "frozen";

/// The purpose in the name of the lock under which forks of a base are made and removed.
const FORKING: &str = "fork";

/// The time that a command which is over has to end.
const END_TIME: Duration = Duration::from_millis(500);

/// A base that is frozen, or was found frozen, by the holder. Forks of it can be made.
#[derive(Debug)]
pub struct FrozenBase {
    pub(crate) record: Record,
    pub(crate) directory: Root,
    /// Keeps the base from being removed.
    _lock: Lock,
    /// Keeps other processes from thawing it.
    _turn: Lock,
}

/// The right of a command to change a workspace.
#[derive(Debug)]
pub enum ChangeRight {
    /// It may, and holds this descriptor until its last process has ended.
    Granted(OwnedFd),
    /// The workspace is frozen for these forks.
    Frozen(Vec<WorkspaceKey>),
}

impl FrozenBase {
    /// Returns the record of the base.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Returns the directory of the base.
    pub fn directory(&self) -> &Root {
        &self.directory
    }
}

impl Workspaces {
    /// Freezes a workspace for forks that the caller makes next. It fails while a command may change the tree.
    ///
    /// The caller then takes the write lock of the workspace and releases it, so that a change in progress is over.
    pub fn freeze(&self, base: &Identifier) -> Result<FrozenBase, Error> {
        let inner = &self.inner;
        let (key, lock) = inner.lock_of(base, Mode::Shared)?;
        let (Some(record), Some(directory)) =
            (inner.records().read(&key)?, inner.open_directory(&key)?)
        else {
            return Err(inner.not_found(base));
        };
        if record.state != State::Ready {
            return Err(inner.not_found(base));
        }
        if let Some(fork) = &record.fork {
            return Err(Error::ForkOfFork { key, base: fork.base.clone() });
        }
        let turn = inner.locks().take(&lock::shared_name(FORKING, &key), Mode::Exclusive)?;
        if !inner.is_frozen(&key)? {
            // The processes of a command that is over take a moment to end.
            let attempt = || inner.locks().attempt(&changes_lock(&key), Mode::Exclusive);
            let changes = lock::poll_for(END_TIME, (FIRST_PAUSE, MAX_PAUSE), attempt)?;
            let _changes = changes.ok_or_else(|| Error::Changing { key: key.to_string() })?;
            let file = marker(&key);
            let made = inner.root.own.open_or_create(&file, 0o600);
            made.map_err(Error::files("could not freeze the workspace"))?;
            inner.sync_own(Path::new(FROZEN))?;
        }
        Ok(FrozenBase { record, directory, _lock: lock, _turn: turn })
    }

    /// Returns the time since which a workspace is frozen; none if it is not.
    pub fn frozen_since(&self, key: &WorkspaceKey) -> Result<Option<SystemTime>, Error> {
        self.inner.frozen_since(key)
    }

    /// Returns the records of the forks of a workspace, in the order of their keys.
    pub fn forks_of(&self, key: &WorkspaceKey) -> Result<Vec<Record>, Error> {
        self.inner.forks_of(key)
    }

    /// Returns the records of all forks of the root, in the order of their keys.
    pub fn all_forks(&self) -> Result<Vec<Record>, Error> {
        self.inner.forks_where(|_| true)
    }

    /// Returns the records of the forks that a workspace is frozen for.
    pub fn overlays_of(&self, key: &WorkspaceKey) -> Result<Vec<Record>, Error> {
        self.inner.overlays_of(key)
    }
}

impl Workspace {
    /// Returns the keys of the forks for which the workspace is frozen; none if it is not.
    pub fn frozen_for(&self) -> Result<Vec<WorkspaceKey>, Error> {
        self.inner().frozen_for(&self.record().key)
    }

    /// Fails if the workspace is frozen. The caller holds the write lock.
    pub fn refuse_frozen(&self) -> Result<(), Error> {
        self.inner().refuse_with_forks(&self.record().key)
    }

    /// Asks for the right to change the tree, for a command.
    pub fn right_to_change(&self) -> Result<ChangeRight, Error> {
        self.inner().right_to_change(&self.record().key)
    }
}

impl RootInner {
    pub(crate) fn right_to_change(&self, key: &WorkspaceKey) -> Result<ChangeRight, Error> {
        // Before the look at the marker: a freeze from now on is refused.
        let lock = self.locks().take(&changes_lock(key), Mode::Shared)?;
        let forks = self.frozen_for(key)?;
        if !forks.is_empty() {
            return Ok(ChangeRight::Frozen(forks));
        }
        let held = lock.share().map_err(|error| Error::Interrupted(error.to_string()))?;
        Ok(ChangeRight::Granted(held))
    }

    fn is_frozen(&self, key: &WorkspaceKey) -> Result<bool, Error> {
        self.frozen_since(key).map(|since| since.is_some())
    }

    pub(crate) fn frozen_since(&self, key: &WorkspaceKey) -> Result<Option<SystemTime>, Error> {
        match self.root.own.link_metadata(&marker(key)) {
            Err(error) if error.is_not_found() => Ok(None),
            found => {
                let found = found.map_err(Error::files("could not look for forks"))?;
                Ok(Some(found.changed))
            }
        }
    }

    /// Returns whether a workspace is frozen for forks, as far as that can be told.
    pub(crate) fn has_forks(&self, key: &WorkspaceKey) -> bool {
        self.frozen_for(key).is_ok_and(|forks| !forks.is_empty())
    }

    pub(crate) fn forks_of(&self, key: &WorkspaceKey) -> Result<Vec<Record>, Error> {
        self.forks_where(|fork| fork.base == *key)
    }

    fn forks_where(&self, is_meant: impl Fn(&Fork) -> bool) -> Result<Vec<Record>, Error> {
        let mut forks = Vec::new();
        for other in self.records().keys()? {
            let record = self.records().read(&other)?;
            let is_fork = |record: &Record| record.fork.as_ref().is_some_and(&is_meant);
            forks.extend(record.filter(is_fork));
        }
        Ok(forks)
    }

    fn overlays_of(&self, key: &WorkspaceKey) -> Result<Vec<Record>, Error> {
        let mut forks = self.forks_of(key)?;
        let is_overlay =
            |fork: &Record| fork.fork.as_ref().is_some_and(|fork| fork.kind == ForkKind::Overlay);
        // One that is being removed is of no use any more, and its base not held for it.
        forks.retain(|fork| is_overlay(fork) && fork.state != State::Removing);
        Ok(forks)
    }

    /// Returns the forks that a workspace is frozen for. Thaws one that a crash left frozen.
    fn frozen_for(&self, key: &WorkspaceKey) -> Result<Vec<WorkspaceKey>, Error> {
        if !self.is_frozen(key)? {
            return Ok(Vec::new());
        }
        let forks = self.overlays_of(key)?;
        if !forks.is_empty() {
            return Ok(forks.into_iter().map(|fork| fork.key).collect());
        }
        // A process that makes the first fork holds the lock, and has no record yet.
        match self.locks().attempt(&lock::shared_name(FORKING, key), Mode::Exclusive)? {
            Some(_turn) => {
                if let Some(directory) = self.open_directory(key)? {
                    self.finish_promotion(key, &directory)?;
                }
                self.thaw_without_forks(key).map(|()| Vec::new())
            }
            None => Err(Error::Changing { key: key.to_string() }),
        }
    }

    /// Fails for a workspace that has forks.
    pub(crate) fn refuse_with_forks(&self, key: &WorkspaceKey) -> Result<(), Error> {
        let forks = self.frozen_for(key)?;
        if forks.is_empty() {
            return Ok(());
        }
        Err(Error::Frozen { key: key.to_string(), forks })
    }

    /// Thaws a base unless it has forks left.
    pub(crate) fn thaw(&self, key: &WorkspaceKey) -> Result<(), Error> {
        let _turn = self.locks().take(&lock::shared_name(FORKING, key), Mode::Exclusive)?;
        self.thaw_without_forks(key)
    }

    pub(crate) fn thaw_without_forks(&self, key: &WorkspaceKey) -> Result<(), Error> {
        // All records are read only where there may be forks: one of them may be damaged.
        if !self.is_frozen(key)? || !self.overlays_of(key)?.is_empty() {
            return Ok(());
        }
        match self.root.own.remove_file(&marker(key)) {
            Err(error) if !error.is_not_found() => {
                Err(Error::files("could not thaw the workspace")(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Deletes the lock and the marker of a workspace that is removed.
    pub(crate) fn forget_freeze(&self, key: &WorkspaceKey) -> Result<(), Error> {
        self.thaw_without_forks(key)?;
        let name = changes_lock(key);
        if self.locks().exists(&name) { self.locks().remove_idle(&name) } else { Ok(()) }
    }
}

/// Returns the name of the lock that commands share which may change a workspace. No key contains `+`.
fn changes_lock(key: &WorkspaceKey) -> String {
    format!("{key}+changes")
}

fn marker(key: &WorkspaceKey) -> PathBuf {
    Path::new(FROZEN).join(key.as_str())
}
