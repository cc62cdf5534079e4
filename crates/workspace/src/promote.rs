//! Promotes a fork: its base becomes what the fork is.
//!
//! The crate `fork` moves the files, journalled. Here are the locks and the look for changes of the base that no
//! writer of Carrel made. A promotion that was interrupted is finished when the base is opened the next time.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use carrel_domain::WorkspaceKey;
use carrel_fork::{
    Change, Drift, Layers, LayersError, Limits, PromoteOptions, Promoted, Recovery, Server, Source,
};
use carrel_fsroot::{Durability, Root, WalkControl};
use tracing::{info, warn};

use crate::error::Error;
use crate::fork::{FORKS, ForkKind};
use crate::lock::Mode;
use crate::record::{Record, State};
use crate::remove::RemovalLock;
use crate::trash::TRASH;
use crate::workspace::Workspace;
use crate::workspaces::{RootInner, Workspaces};

/// The changes of a base that are looked for and named.
const MAX_DRIFT: usize = 100;

impl Workspaces {
    /// Returns the paths that changed in a base since it was forked, or since the fork took that over; a hundred at most.
    pub fn drift(&self, fork: &Record, base: &Workspace) -> Result<Vec<PathBuf>, Error> {
        let since = self.inner.drifting_since(fork, &base.record().key)?;
        since.map_or(Ok(Vec::new()), |since| changed_since(base.files(), since, MAX_DRIFT))
    }

    /// Returns what a fork changed against its base.
    pub fn changes(&self, fork: &Record, base: &Root) -> Result<Vec<Change>, Error> {
        self.inner.changes_of(fork, base)
    }

    /// Returns the directory that has every entry which a fork changed, under its path.
    pub fn changed_tree(&self, fork: &Record) -> Result<Root, Error> {
        self.inner.changed_tree(fork)
    }

    /// Fails for a fork whose directory is missing and whose work is not: it is not to be taken for one without any.
    pub fn refuse_work_without_directory(&self, fork: &Record) -> Result<(), Error> {
        match self.inner.refuse_broken(fork) {
            Err(Error::BrokenFork { .. }) => Ok(()),
            checked => checked,
        }
    }

    /// Marks the forks that end with a promotion before it begins, so that none is used after it; or takes that back.
    pub fn mark_ending(&self, forks: &[RemovalLock], is_ending: bool) -> Result<(), Error> {
        let state = if is_ending { State::Removing } else { State::Ready };
        for fork in forks {
            self.inner.update(&fork.key, |record| record.state = state)?;
        }
        Ok(())
    }

    /// Moves what a fork changed into its base. The fork is locked for removal and not mounted; the caller holds the
    /// write lock of the base and has a snapshot of it, since what is replaced is lost.
    pub fn promote(
        &self,
        fork: &RemovalLock,
        base: &Workspace,
        durability: Durability,
    ) -> Result<Promoted, Error> {
        let record = fork.record().ok_or_else(|| self.inner.not_found_key(&fork.key))?;
        let drift = Drift { paths: self.drift(record, base)?, ..Drift::default() };
        let options = PromoteOptions { durability, drift, ..PromoteOptions::default() };
        let (journal, trash) = (self.inner.journal_of(&fork.key)?, self.inner.trash_directory()?);
        let server = Server { journal: &journal, trash: &trash };
        let tree = self.inner.changed_tree(record)?;
        let source = match kind(record) {
            ForkKind::Overlay => Source::Upper(&tree),
            ForkKind::Copy => Source::Copy(&tree),
        };
        Ok(carrel_fork::promote(base.files(), source, server, &options)?)
    }
}

impl RootInner {
    /// Opens the layers of a fork; [`Error::BrokenFork`] if a part of them is missing.
    pub(crate) fn layers(&self, fork: &Record) -> Result<Layers, Error> {
        match Layers::open(&self.all_layers()?, Path::new(fork.key.as_str())) {
            Err(LayersError::Incomplete) => Err(broken(fork)),
            opened => Ok(opened?),
        }
    }

    /// Fails for a fork that changed something: its work is saved nowhere else.
    pub(crate) fn refuse_changed_fork(&self, fork: &Record) -> Result<(), Error> {
        let Some(of) = &fork.fork else { return Ok(()) };
        let Some(base) = self.open_directory(&of.base)? else { return Ok(()) };
        let count = match self.changes_of(fork, &base) {
            // There is nothing that could be lost.
            Err(Error::BrokenFork { .. }) => return Ok(()),
            changes => changes?.len(),
        };
        if count == 0 {
            return Ok(());
        }
        let (fork, base) = (fork.key.to_string(), of.base.to_string());
        Err(Error::ChangedFork { fork, base, count })
    }

    fn changes_of(&self, fork: &Record, base: &Root) -> Result<Vec<Change>, Error> {
        let limits = Limits::default();
        let tree = self.changed_tree(fork)?;
        Ok(match kind(fork) {
            ForkKind::Overlay => carrel_fork::changes(base, &tree, limits)?,
            ForkKind::Copy => carrel_fork::changes_of_copy(base, &tree, limits)?,
        })
    }

    /// Opens the directory with what a fork changed: its upper layer, or the whole copy.
    fn changed_tree(&self, fork: &Record) -> Result<Root, Error> {
        match kind(fork) {
            ForkKind::Overlay => Ok(self.layers(fork)?.upper()?),
            ForkKind::Copy => self.open_directory(&fork.key)?.ok_or_else(|| broken(fork)),
        }
    }

    /// Opens the directory for the journal of a fork's promotion, and makes it if it is missing.
    fn journal_of(&self, fork: &WorkspaceKey) -> Result<Root, Error> {
        let path = Path::new(FORKS).join(fork.as_str());
        let own = &self.root.own;
        let opened =
            own.create_directories(&path, 0o700).and_then(|()| own.open_root_strict(&path));
        opened.map_err(Error::files("could not open the directory of a promotion"))
    }

    fn trash_directory(&self) -> Result<Root, Error> {
        let trash = self.root.own.open_root_strict(Path::new(TRASH));
        trash.map_err(Error::files("could not open the trash"))
    }

    /// Finishes the promotion of a fork that a crash interrupted, before its base is used.
    pub(crate) fn finish_promotion(
        &self,
        base: &WorkspaceKey,
        directory: &Root,
    ) -> Result<(), Error> {
        for fork in self.forks_of(base)? {
            let Some(journal) = self.unfinished_promotion(&fork.key)? else { continue };
            // Its holder is promoting the fork right now.
            let Some(_lock) = self.locks().attempt(fork.key.as_str(), Mode::Exclusive)? else {
                continue;
            };
            self.finish_promotion_of(&fork, directory, &journal)?;
        }
        Ok(())
    }

    /// Finishes the promotion of a locked fork. What is left of the fork is of no use then, and goes with the next
    /// clean-up.
    fn finish_promotion_of(&self, fork: &Record, base: &Root, journal: &Root) -> Result<(), Error> {
        let (tree, trash) = (self.changed_tree(fork)?, self.trash_directory()?);
        match carrel_fork::recover(base, &tree, Server { journal, trash: &trash })? {
            Recovery::Nothing => return Ok(()),
            Recovery::Finished(promoted) => {
                let changes = promoted.changes.len();
                info!(fork = %fork.key, changes, "Finished an interrupted promotion");
            }
            Recovery::Damaged => {
                warn!(fork = %fork.key, "A promotion was interrupted and its journal is damaged; restore the snapshot from before it");
                let given_up = carrel_fork::abandon(journal);
                given_up.map_err(Error::files("could not give up a promotion"))?;
            }
        }
        self.mark_ending(&fork.key).map(drop)
    }

    /// Marks a locked fork as being removed: nothing opens it again, and clean-up finishes the removal.
    pub(crate) fn mark_ending(&self, fork: &WorkspaceKey) -> Result<Option<Record>, Error> {
        self.update(fork, |record| record.state = State::Removing)
    }

    /// Returns the journal of a fork whose promotion was interrupted.
    pub(crate) fn unfinished_promotion(&self, fork: &WorkspaceKey) -> Result<Option<Root>, Error> {
        let path = Path::new(FORKS).join(fork.as_str());
        let Ok(journal) = self.root.own.open_root_strict(&path) else { return Ok(None) };
        let unfinished = carrel_fork::is_unfinished(&journal);
        let unfinished = unfinished.map_err(Error::files("could not look for a promotion"))?;
        Ok(unfinished.then_some(journal))
    }

    /// Finishes the interrupted promotion of a locked fork that is about to be removed.
    pub(crate) fn finish_before_removal(&self, fork: &Record) -> Result<(), Error> {
        let Some(of) = &fork.fork else { return Ok(()) };
        let (journal, base) =
            (self.unfinished_promotion(&fork.key)?, self.open_directory(&of.base)?);
        let (Some(journal), Some(base)) = (journal, base) else { return Ok(()) };
        self.finish_promotion_of(fork, &base, &journal)
    }
}

pub(crate) fn broken(fork: &Record) -> Error {
    let base = fork.fork.as_ref().map_or_else(String::new, |of| of.base.to_string());
    Error::BrokenFork { fork: fork.key.to_string(), base }
}

pub(crate) fn kind(fork: &Record) -> ForkKind {
    fork.fork.as_ref().map_or(ForkKind::Copy, |fork| fork.kind)
}

/// Lists what changed in a tree after a moment of its file system's clock, by times that only the kernel sets.
pub(crate) fn changed_since(
    tree: &Root,
    since: SystemTime,
    most: usize,
) -> Result<Vec<PathBuf>, Error> {
    let mut changed = Vec::new();
    let top = tree.own_metadata().map_err(Error::files("could not look at the base"))?;
    if top.changed > since {
        changed.push(PathBuf::from("."));
    }
    let visit = |entry: &carrel_fsroot::WalkEntry<'_>| {
        if entry.metadata()?.is_some_and(|metadata| metadata.changed > since) {
            changed.push(entry.path.to_owned());
        }
        Ok(if changed.len() < most { WalkControl::Continue } else { WalkControl::Stop })
    };
    // What cannot be read cannot be compared, and was not changed by others either.
    let walked = tree.walk(Path::new("."), visit, |_| Ok(()));
    walked.map_err(Error::files("could not look at the base"))?;
    Ok(changed)
}
