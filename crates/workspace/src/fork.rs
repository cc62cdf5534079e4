//! Forks: workspaces whose tree begins as that of another, their base.
//!
//! What a fork changes is kept in layers beside the workspaces, `.carrel/forks/KEY`, and the base stays as it is.
//! The directory of a fork in the root is empty: the sandbox shows the merged tree there, to the fork's commands and,
//! through a descriptor, to the server. A fork is a workspace otherwise: it has a record, a lock, a home, snapshots
//! and a quota of its own, which counts the layers.
//!
//! | step of making | after a crash |
//! |---|---|
//! | write the record, `creating`; fsync | a broken fork |
//! | make the empty directory and the layers; fsync the root | a broken fork |
//! | put kept work into it, if it is to begin with some | a broken fork |
//! | write the record, `ready`; fsync | a fork |
//!
//! Overlays take fewer steps, which several of them share; see `fork_many`.
//!
//! The base is frozen before the first step, and thawed when its last fork is gone, whole or broken. A broken one
//! has nothing to lose: removal and the next clean-up remove it. A fork of which only the empty directory is missing
//! has all its work in the layers, and gets another one when it is created again.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use carrel_domain::{Identifier, KeyChoice, MAX_FORKS, Timestamp, WorkspaceKey};
use carrel_fork::{CopyOptions, Layers, Limits, Readiness};
use carrel_fsroot::{Durability, Root};
use rustix::fs::{FlockOperation, Mode as OpenMode, OFlags, flock, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use crate::create::{Create, Created, Creation};
use crate::error::Error;
use crate::freeze::FrozenBase;
use crate::lock::{FIRST_PAUSE, Lock, MAX_PAUSE, Mode, poll};
use crate::promote::broken;
use crate::quota::Quota;
use crate::record::{Record, State};
use crate::remove::RemovalLock;
use crate::workspace::{LAST_USED_PRECISION, Workspace};
use crate::workspaces::{RootInner, Workspaces};

pub(crate) const FORKS: &str = "forks";

/// The base of a fork, and the way in which the fork shows its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// The key of the base.
    pub base: WorkspaceKey,
    /// The way in which the base's files are shown.
    pub kind: ForkKind,
}

/// The way in which a fork shows the files of its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForkKind {
    /// An overlay over the frozen base: made in milliseconds for any size. Needs tier `full`.
    Overlay,
    /// A copy of the tree, for hosts without overlays. The base is frozen while it is made.
    Copy,
}

/// A request for one fork of a base.
#[derive(Clone, Debug)]
pub struct MakeFork {
    /// The identifier; none for the base's with a number.
    pub identifier: Option<Identifier>,
    /// The quota of what the fork changes; the base's if absent.
    pub quota: Option<Quota>,
    /// The way in which it shows the base's files.
    pub kind: ForkKind,
}

impl Workspaces {
    /// Makes a fork of a frozen base.
    pub fn fork(&self, base: &FrozenBase, request: &MakeFork) -> Result<Created, Error> {
        self.finish_fork(self.begin_fork(base, request)?)
    }

    /// Makes a fork that counts as half-made, so that the caller can put files into it first. It is broken if the
    /// process ends before [`Workspaces::finish_fork`].
    pub fn begin_fork(&self, base: &FrozenBase, request: &MakeFork) -> Result<RemovalLock, Error> {
        let inner = &self.inner;
        if inner.forks_of(&base.record.key)?.len() >= usize::from(MAX_FORKS) {
            return Err(Error::TooManyForks { key: base.record.key.to_string(), most: MAX_FORKS });
        }
        inner.make_fork(base, request)
    }

    /// Makes a fork that was begun usable.
    pub fn finish_fork(&self, begun: RemovalLock) -> Result<Created, Error> {
        let inner = &self.inner;
        let RemovalLock { key, record, lock, .. } = begun;
        let record = record.ok_or_else(|| inner.not_found_key(&key))?;
        let record = Record { state: State::Ready, ..record };
        inner.records().write(&record, Durability::Synced)?;
        let path = inner.location(&record.key).workspace;
        let fork = record.identifier.as_str();
        let base = record.fork.as_ref().map(|fork| fork.base.as_str());
        info!(issue_identifier = fork, base, "Workspace forked");
        // From here on others can use it.
        drop(lock);
        Ok(Created { created: true, record, path })
    }
}

impl Workspaces {
    /// Returns the time of the root's clock.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Notes a use of a workspace that did not open it again.
    pub fn note_use(&self, key: &WorkspaceKey, at: Timestamp) -> Result<(), Error> {
        self.inner.note_use(key, at)
    }

    /// Locks a fork for removal whose record was not used since `before`, if that is given; none while it is in use, or
    /// broken.
    pub fn lock_idle_fork(
        &self,
        key: &WorkspaceKey,
        before: Option<Timestamp>,
    ) -> Result<Option<RemovalLock>, Error> {
        let inner = &self.inner;
        let Some(lock) = inner.locks().attempt(key.as_str(), Mode::Exclusive)? else {
            return Ok(None);
        };
        let locked = inner.removal_lock(key.clone(), lock)?;
        let is_idle = |record: &Record| {
            record.fork.is_some() && before.is_none_or(|before| record.last_used_at < before)
        };
        let Some(record) = locked.record().filter(|record| is_idle(record)) else {
            return Ok(None);
        };
        let is_whole = record.state == State::Ready && !inner.is_broken(record)?;
        Ok(is_whole.then_some(locked))
    }

    /// Returns whether the work of a fork was lost with an earlier boot of the machine.
    pub fn is_lost(&self, fork: &Record) -> Result<bool, Error> {
        let is_overlay = fork.fork.as_ref().is_some_and(|of| of.kind == ForkKind::Overlay);
        Ok(is_overlay && self.inner.layers(fork)?.readiness()? == Readiness::OtherBoot)
    }

    /// Waits until no process has the layers of a fork mounted: one that was told to end takes a moment.
    pub fn wait_until_unmounted(&self, fork: &Record) -> Result<(), Error> {
        let is_overlay = fork.fork.as_ref().is_some_and(|fork| fork.kind == ForkKind::Overlay);
        let Ok(layers) = self.inner.layers(fork) else { return Ok(()) };
        if !is_overlay {
            return Ok(());
        }
        let failed = |errno: Errno| Error::Interrupted(format!("layers cannot be locked: {errno}"));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            openat(layers.directory(), ".", flags, OpenMode::empty()).map_err(failed)?;
        let attempt = || match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(())),
            Err(Errno::AGAIN) => Ok(None),
            Err(errno) => Err(failed(errno)),
        };
        let free = poll(FIRST_PAUSE, MAX_PAUSE, attempt)?;
        free.ok_or_else(|| Error::Busy { key: fork.key.to_string(), holder: None })
    }
}

impl Workspace {
    /// Returns the base of a fork with its layers; none for a workspace that is no overlay.
    pub fn overlay(&self) -> Result<Option<(Root, Layers)>, Error> {
        let is_overlay = |fork: &&Fork| fork.kind == ForkKind::Overlay;
        let Some(fork) = self.record().fork.as_ref().filter(is_overlay) else { return Ok(None) };
        let inner = self.inner();
        let base = inner.open_directory(&fork.base)?;
        let base = base.ok_or_else(|| Error::BaseGone {
            fork: self.record().key.to_string(),
            base: fork.base.to_string(),
        })?;
        Ok(Some((base, inner.layers(self.record())?)))
    }
}

impl RootInner {
    /// Notes a use of a workspace, at most every few seconds.
    pub(crate) fn note_use(&self, key: &WorkspaceKey, at: Timestamp) -> Result<(), Error> {
        let record = self.records().read(key)?;
        if record.is_some_and(|record| record.last_used_at.age(at) >= LAST_USED_PRECISION) {
            self.update(key, |record| record.last_used_at = record.last_used_at.max(at))?;
        }
        Ok(())
    }

    /// Returns the base's identifier with the smallest number that no workspace has.
    fn free_identifier(&self, base: &Identifier) -> Result<Identifier, Error> {
        for number in 1.. {
            let candidate = Identifier::parse(format!("{base}.fork-{number}"))?;
            if matches!(self.choose(&candidate)?, KeyChoice::Free(_)) {
                return Ok(candidate);
            }
        }
        Err(self.no_key_left(base))
    }

    fn make_fork(&self, base: &FrozenBase, asked: &MakeFork) -> Result<RemovalLock, Error> {
        let (record, lock) = self.new_fork(base, asked, State::Creating)?;
        self.records().write(&record, Durability::Synced)?;
        self.make_directory(&record.key)?;
        self.give_as(&base.directory, &record.key)?;
        match asked.kind {
            ForkKind::Overlay => {
                let name = Path::new(record.key.as_str());
                Layers::create(&self.all_layers()?, name, &base.directory)?;
            }
            ForkKind::Copy => self.copy_base(base, &record.key)?,
        }
        self.sync_root()?;
        self.removal_lock(record.key, lock)
    }

    /// Locks the key of a new fork, and returns what its record is to be.
    pub(crate) fn new_fork(
        &self,
        base: &FrozenBase,
        asked: &MakeFork,
        state: State,
    ) -> Result<(Record, Lock), Error> {
        let identifier = match &asked.identifier {
            Some(identifier) => identifier.clone(),
            None => self.free_identifier(&base.record.identifier)?,
        };
        let KeyChoice::Free(key) = self.choose(&identifier)? else {
            let (key, _) = self.lock_of(&identifier, Mode::Shared)?;
            return Err(Error::Exists { identifier, location: self.location(&key) });
        };
        let lock = self.locks().take(key.as_str(), Mode::Exclusive)?;
        if self.records().read(&key)?.is_some() || self.open_directory(&key)?.is_some() {
            return Err(Error::Exists { identifier, location: self.location(&key) });
        }
        let request = Create {
            layout: base.record.layout,
            quota: Some(asked.quota.unwrap_or(base.record.quota)),
            issue_id: base.record.issue_id.clone(),
            tracker: base.record.tracker.clone(),
            ..Create::new(identifier)
        };
        let creation = Creation { inner: self, request: &request, hooked: false };
        let fork = Fork { base: base.record.key.clone(), kind: asked.kind };
        let record = Record { fork: Some(fork), ..creation.new_record(key, state) };
        self.discard_beside(&record.key)?;
        Ok((record, lock))
    }

    /// Gives the directory of a fork to the owner of its base, who owns the files that its commands make.
    pub(crate) fn give_as(&self, base: &Root, fork: &WorkspaceKey) -> Result<(), Error> {
        let failed = || Error::files("could not give the fork to the owner of its base");
        let (name, owner) = (Path::new(fork.as_str()), base.own_metadata().map_err(failed())?);
        let root = &self.root.directory;
        let made = root.link_metadata(name).map_err(failed())?;
        if (made.uid, made.gid) == (owner.uid, owner.gid) {
            return Ok(());
        }
        root.set_entry_owner(name, owner.uid, owner.gid).map_err(failed())
    }

    /// Returns whether a fork lacks something that it cannot be used without.
    pub(crate) fn is_broken(&self, fork: &Record) -> Result<bool, Error> {
        let Some(of) = fork.fork.as_ref().filter(|_| fork.state != State::Removing) else {
            return Ok(false);
        };
        if fork.state == State::Creating || self.open_directory(&fork.key)?.is_none() {
            return Ok(true);
        }
        Ok(of.kind == ForkKind::Overlay && !self.has_layers(fork)?)
    }

    /// Fails for a fork that lacks something that it cannot be used without.
    pub(crate) fn refuse_broken(&self, fork: &Record) -> Result<(), Error> {
        if !self.is_broken(fork)? {
            return Ok(());
        }
        let is_overlay = fork.fork.as_ref().is_some_and(|of| of.kind == ForkKind::Overlay);
        if !is_overlay || fork.state != State::Ready || !self.has_layers(fork)? {
            return Err(broken(fork));
        }
        let base = fork.fork.as_ref().map_or_else(String::new, |of| of.base.to_string());
        Err(Error::ForkWithoutDirectory { fork: fork.key.to_string(), base })
    }

    /// Returns whether a fork has no work: its upper layer is gone, with everything that the fork changed, or the layers
    /// were not made completely and nothing is in them.
    pub(crate) fn has_lost_work(&self, fork: &Record) -> bool {
        let is_overlay = fork.fork.as_ref().is_some_and(|of| of.kind == ForkKind::Overlay);
        let is_unused = |upper: &Root| {
            let is_incomplete = self.has_layers(fork).is_ok_and(|complete| !complete);
            is_incomplete && upper.list(Path::new(".")).is_ok_and(|entries| entries.is_empty())
        };
        is_overlay
            && match self.upper_of(&fork.key) {
                Ok(None) => true,
                Ok(Some(upper)) => is_unused(&upper),
                Err(_) => false,
            }
    }

    /// Returns whether the layers of a fork, which hold all its work, are complete.
    pub(crate) fn has_layers(&self, fork: &Record) -> Result<bool, Error> {
        match self.layers(fork) {
            Err(Error::BrokenFork { .. }) => Ok(false),
            opened => opened.map(|_| true),
        }
    }

    /// Makes the empty directory of a fork again, whose layers are complete. Other forks are not repaired: what is
    /// missing is their work.
    pub(crate) fn repair_fork(&self, fork: Record) -> Result<Record, Error> {
        let of = fork.fork.as_ref().filter(|of| of.kind == ForkKind::Overlay);
        let (Some(of), State::Ready) = (of, fork.state) else { return Err(broken(&fork)) };
        let base = self.open_directory(&of.base)?.ok_or_else(|| broken(&fork))?;
        self.layers(&fork)?;
        warn!(fork = %fork.key, "The directory of a fork was missing and is made again");
        self.make_directory(&fork.key)?;
        self.give_as(&base, &fork.key)?;
        self.sync_root()?;
        Ok(fork)
    }

    fn copy_base(&self, base: &FrozenBase, fork: &WorkspaceKey) -> Result<(), Error> {
        let directory = self.open_directory(fork)?.ok_or_else(|| self.not_found_key(fork))?;
        let entries = Limits::default().entries;
        let options = CopyOptions { entries, cancelled: &AtomicBool::new(false) };
        let copied = carrel_fork::copy(&base.directory, &directory, options)?;
        if !copied.left_out.is_empty() {
            let count = copied.left_out.len();
            warn!(%fork, count, "Sockets, FIFOs and devices are not in the copy");
        }
        Ok(())
    }

    /// Returns the directory of a fork's upper layer, which counts as its usage; none for other workspaces.
    pub(crate) fn upper_of(&self, key: &WorkspaceKey) -> Result<Option<Root>, Error> {
        match self.root.own.open_root_strict(&Path::new(FORKS).join(key.as_str()).join("upper")) {
            Err(error) if error.is_not_found() => Ok(None),
            opened => opened.map(Some).map_err(Error::files("could not open the layers of a fork")),
        }
    }

    pub(crate) fn all_layers(&self) -> Result<Root, Error> {
        let opened = self.root.own.open_root_strict(Path::new(FORKS));
        opened.map_err(Error::files("could not open the layers of forks"))
    }
}
