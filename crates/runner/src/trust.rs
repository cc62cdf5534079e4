//! Files that a command writes inside its sandbox and the operator's own tools run
//! later, outside: git hooks, commands in a git configuration, settings of editors and
//! agents, shell start-up files.
//!
//! [`TrustBaseline::capture`] remembers them before a command, [`TrustBaseline::check`] compares them
//! after it, tells what changed and by default puts it back. What was there when trust
//! was taken counts as the operator's own wish. Ordinary work with git (`init`,
//! `clone`, `commit`, `remote add`, `config user.name`, submodules, work trees) changes
//! nothing that counts: a git configuration is compared entry by entry, and the samples
//! among the hooks are no hooks.
//!
//! **ResourceUsage.** An entry whose kernel time stamp is the same was not changed; a look at an
//! unchanged workspace is one or two system calls for each directory in it and for each
//! watched file, and reads nothing.
//!
//! **Where.** The workspace, the directories directly in it and those in `repos`;
//! `.git/modules` four levels deep; see `watch.rs` for the names and `scan.rs` for the
//! bounds. Repositories deeper in the tree, and programs that trusted entries name in
//! the work tree (a hook that calls `scripts/lint`), are source like any other: they are
//! not watched. Nor is a rebase left unfinished, whose list may hold `exec` lines. A link in
//! the place of a directory is looked behind, see `doors.rs`; what was there and is gone is
//! remembered, see `gone.rs`.
//!
//! **Safety.** All access goes through [`Root`], one directory at a time and with no
//! link on the way. Contents are replaced by renaming, so neither a link nor a hard link
//! carries a write elsewhere. What a command wrote is not destroyed but moved to
//! `.carrel-aside` in the workspace. One failure leaves the others alone; what could not
//! be put back is tried and told again after the next command.
//!
//! **Limits.** A background job that outlives the command can change a file after the
//! look; the next look finds it. TrustBaseline lives in memory: after a restart, what is there
//! is trusted. A branch that brings other editor settings cannot be told from a command
//! that writes them, and is put back like it.

mod diff;
mod directory_link;
mod git_config;
mod git_config_diff;
mod git_config_keys;
mod preflight;
mod quarantine;
mod references;
mod renames;
mod report;
mod restore;
mod scan;
mod snapshot;
mod stamp_reliability;
mod tombstones;
mod watch_rules;
mod watched_names;

use std::fmt;
use std::path::{Path, PathBuf};

use carrel_fsroot::{Error, Root};

use diff::{Act, Difference, Newcomers, below, differences};
pub use report::{ChangeKind, MAX_CHANGES, TrustChange, TrustReport};
use restore::{Undone, undo};
use scan::{Extra, is_as_before, scan};
use snapshot::{Node, Tree};
use tombstones::Gone;

/// How often references in what was just found are followed; git itself stops at ten.
const MAX_ROUNDS: usize = 10;

/// How many entries a quick look looks at.
const MAX_QUICK_ENTRIES: usize = 64;

/// What happens to a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnChange {
    /// It is put back as it was.
    #[default]
    Restore,
    /// It is told, and trusted from here on.
    Report,
}

/// What is trusted in one workspace. Kept from command to command.
pub struct TrustBaseline {
    trusted: Tree,
    extras: Vec<Extra>,
    gone: Gone,
}

impl fmt::Debug for TrustBaseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustBaseline")
            .field("entries", &self.trusted.len())
            .finish_non_exhaustive()
    }
}

impl TrustBaseline {
    /// Trusts what is in a workspace.
    pub fn capture(root: &Root) -> Result<Self, Error> {
        let trusted = scan(root, &Tree::new(), &[])?.nodes;
        let mut trust = Self { trusted, extras: Vec::new(), gone: Gone::default() };
        trust.follow(root)?;
        Ok(trust)
    }

    /// Tells whether a look at time stamps alone proves that nothing changed. It takes a bounded number
    /// of calls and reads nothing. A no says nothing: [`TrustBaseline::check`] finds out.
    pub fn is_unchanged(&self, root: &Root) -> bool {
        self.extras.is_empty()
            && self.trusted.len() <= MAX_QUICK_ENTRIES
            && is_as_before(root, &self.trusted)
    }

    /// Compares a workspace with what is trusted, and undoes or takes in what changed.
    ///
    /// It can be repeated at any time, and stopped at any point: what was not put back
    /// is found again.
    pub fn check(&mut self, root: &Root, on_change: OnChange) -> Result<TrustReport, Error> {
        let seen = scan(root, &self.trusted, &self.extras)?;
        let (fresh, seen) = (seen.fresh, seen.nodes);
        let renamed = renames::follow_renames(&mut self.trusted, &seen);
        self.gone.remember(renamed);
        self.gone.revive(&mut self.trusted, &seen);
        let found = self.differences(root, &seen);
        let changed = !found.is_empty();
        let mut settled = match on_change {
            _ if !changed => {
                self.trust_instead(seen);
                TrustReport::default()
            }
            OnChange::Report => {
                self.trust_instead(seen);
                told(found.iter().map(|difference| (difference, None)))
            }
            OnChange::Restore => self.restore(root, seen, found)?,
        };
        if fresh || changed {
            self.follow(root)?;
        }
        settled.overfull = self.overfull();
        Ok(settled)
    }

    /// Returns a directory in which there is more than is looked through.
    fn overfull(&self) -> Option<PathBuf> {
        let mut nodes = self.trusted.iter();
        nodes.find(|(_, node)| node.is_overfull()).map(|(path, _)| path.clone())
    }

    fn differences(&self, root: &Root, seen: &Tree) -> Vec<Difference> {
        // What was not looked at before may have been there for long.
        let newcomers = match self.overfull() {
            Some(_) => Newcomers::PutAside,
            None => self.gone.newcomers(),
        };
        differences(root.path(), &self.trusted, seen, newcomers)
    }

    /// Trusts what was seen, and remembers what was trusted and is gone.
    fn trust_instead(&mut self, seen: Tree) {
        let before = std::mem::replace(&mut self.trusted, seen);
        directory_link::keep_dangling(&before, &mut self.trusted);
        let same_name = |(one, other): (&PathBuf, &PathBuf)| one.as_os_str() == other.as_os_str();
        if before.len() == self.trusted.len()
            && before.keys().zip(self.trusted.keys()).all(same_name)
        {
            return;
        }
        let vanished = before.into_iter().filter(|(path, _)| !self.trusted.contains_key(path));
        self.gone.remember(vanished);
    }

    fn restore(
        &mut self,
        root: &Root,
        seen: Tree,
        found: Vec<Difference>,
    ) -> Result<TrustReport, Error> {
        // A directory that was renamed comes back first, with all that is trusted in it.
        let is_moved = |difference: &Difference| is_moved(&self.trusted, difference);
        let (mut found, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(is_moved);
        let undo = |seen: &Tree, difference| undo(root, &self.trusted, seen, difference);
        let mut undone: Vec<Undone> = found.iter().map(|one| undo(&seen, one)).collect();
        let (seen, rest) = if found.is_empty() {
            (seen, rest)
        } else {
            let seen = scan(root, &seen, &self.extras)?.nodes;
            let left = self.differences(root, &seen).into_iter();
            let is_new = |left: &Difference| !found.iter().any(|one| one.path == left.path);
            (seen, left.filter(is_new).collect())
        };
        undone.extend(rest.iter().map(|one| undo(&seen, one)));
        found.extend(rest);
        let after = scan(root, &seen, &self.extras)?.nodes;
        for left in self.take_in(root, after) {
            let same = found.iter().zip(&mut undone).find(|(found, _)| found.path == left);
            if let Some((_, undone)) = same {
                undone.why_not.get_or_insert_with(|| "it was changed again".to_owned());
            }
        }
        let mut told_of: Vec<_> = found.iter().zip(undone.into_iter().map(Some)).collect();
        told_of.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
        Ok(told(told_of.into_iter()))
    }

    /// Trusts what is there, except where it still differs: not put back, or changed
    /// again by a process that still runs. There, what was trusted stays trusted, and
    /// nothing else. Returns those paths.
    fn take_in(&mut self, root: &Root, mut after: Tree) -> Vec<PathBuf> {
        let left = self.differences(root, &after).into_iter();
        let left: Vec<PathBuf> =
            left.filter(|left| !matches!(left.act, Act::Accept(_))).map(|left| left.path).collect();
        for path in &left {
            hold(&mut after, &self.trusted, path);
            // The directories above it are trusted with it, should they be gone.
            for above in path.ancestors().skip(1) {
                if let Some(node) = self.trusted.get(above).filter(|_| !after.contains_key(above)) {
                    after.insert(above.to_owned(), node.clone());
                }
            }
        }
        self.trust_instead(after);
        left
    }

    /// Watches what the trusted files lead to.
    fn follow(&mut self, root: &Root) -> Result<(), Error> {
        for _ in 0..MAX_ROUNDS {
            let extras = references::extras(root.path(), &self.trusted);
            if extras == self.extras {
                break;
            }
            let seen = scan(root, &self.trusted, &extras)?.nodes;
            let changed = |one: &[Extra], other: &[Extra]| -> Vec<Extra> {
                one.iter().filter(|extra| !other.contains(extra)).cloned().collect()
            };
            for (path, _) in
                changed(&extras, &self.extras).iter().chain(&changed(&self.extras, &extras))
            {
                hold(&mut self.trusted, &seen, path);
            }
            self.extras = extras;
        }
        Ok(())
    }
}

/// Tells whether a directory may only have moved away from where something else stands.
fn is_moved(trusted: &Tree, difference: &Difference) -> bool {
    difference.act == Act::PutBack && trusted.get(&difference.path).is_some_and(Node::can_move)
}

/// Makes a path and all below it in one tree what it is in another.
fn hold(tree: &mut Tree, other: &Tree, path: &Path) {
    let stale: Vec<_> = below(tree, path).map(|(path, _)| path.clone()).collect();
    for path in stale.iter().map(PathBuf::as_path).chain([path]) {
        tree.remove(path);
    }
    let kept = below(other, path).chain(other.get_key_value(path));
    tree.extend(kept.map(|(path, node)| (path.clone(), node.clone())));
}

fn told<'a>(found: impl Iterator<Item = (&'a Difference, Option<Undone>)>) -> TrustReport {
    let mut settled = TrustReport::default();
    for (difference, undone) in found {
        let path = &difference.path;
        let restored = undone.as_ref().is_some_and(|undone| undone.why_not.is_none());
        let (put_aside, why_not) = match (undone, difference.act) {
            (Some(undone), _) => (undone.put_aside, undone.why_not),
            (None, Act::Accept(reason)) => (None, Some(reason.to_owned())),
            (None, _) => (None, Some("changes are only reported here".to_owned())),
        };
        for (kind, what) in &difference.notes {
            settled.push(TrustChange {
                path: if path.as_os_str().is_empty() { ".".into() } else { path.clone() },
                kind: *kind,
                what: what.clone(),
                restored,
                why_not: why_not.clone(),
                put_aside: put_aside.clone(),
            });
        }
    }
    settled
}
