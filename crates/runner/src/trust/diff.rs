//! What differs between what was trusted and what is there, and what to do about it.
//! Pure: two looks in, a list of differences out.

use std::ops::Bound;
use std::path::{Path, PathBuf};

use super::directory_link::{is_place_itself, view};
use super::git_config_diff::Config;
use super::references::{depth_of, git_directory};
use super::report::ChangeKind;
use super::snapshot::{Leads, Node, State, Tree};
use super::watch_rules::{Role, Watch};

/// One entry that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) path: PathBuf,
    pub(super) act: Act,
    /// What happened, and to what.
    pub(super) notes: Vec<(ChangeKind, String)>,
}

/// How a difference is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// What is there is moved away.
    PutAside,
    /// What was there is written again, with all below it.
    PutBack,
    /// The entries that count are written again.
    Rewrite,
    /// Nothing is done, for this reason, and what is there is trusted from here on.
    Accept(&'static str),
}

/// Whether a directory that is new may bring settings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newcomers {
    /// It may, if it is a clone.
    Told,
    /// It may not: what looks new may be what was there before.
    PutAside,
}

/// Links in places, by whether they led there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doors {
    New,
    Known,
}

/// Lists what differs, in the order of paths.
pub(super) fn differences(
    top: &Path,
    old: &Tree,
    new: &Tree,
    newcomers: Newcomers,
) -> Vec<Difference> {
    let compare = Compare { top, old, new, newcomers };
    if !new.values().any(|node| matches!(node.state, State::Door { .. })) {
        return compare.all(old.keys().chain(new.keys()).collect());
    }
    let (guests, known) = (compare.guests_of(Doors::New), compare.guests_of(Doors::Known));
    let counts =
        |path: &&PathBuf| !compare.is_of_guest(path, &guests) || compare.is_of_guest(path, &known);
    compare.all(old.keys().chain(new.keys()).filter(counts).collect())
}

/// What a look at one path comes to.
enum Verdict {
    /// It is the same; what is below it is looked at.
    Same,
    /// Neither it nor anything below it matters any more.
    Skip,
    /// It differs, and with it all below.
    Differs(Difference),
    /// It is told about, and what is below it is looked at.
    Told(Difference),
}

struct Compare<'a> {
    top: &'a Path,
    old: &'a Tree,
    new: &'a Tree,
    newcomers: Newcomers,
}

impl<'a> Compare<'a> {
    fn all(&self, mut paths: Vec<&PathBuf>) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut done: Option<PathBuf> = None;
        paths.sort_unstable();
        paths.dedup();
        for path in paths {
            if done.as_ref().is_some_and(|above| path.starts_with(above)) {
                continue;
            }
            match self.at(path) {
                Verdict::Same => {}
                Verdict::Skip => done = Some(path.clone()),
                Verdict::Differs(difference) => {
                    done = Some(path.clone());
                    found.push(difference);
                }
                Verdict::Told(difference) => found.push(difference),
            }
        }
        found
    }

    /// Returns the directories that are looked at only because of such links.
    fn guests_of(&self, doors: Doors) -> Vec<&'a Path> {
        let found = self.new.iter().filter_map(|(path, node)| match &node.state {
            State::Door { leads: Leads::Inside(behind), .. }
                if self.is_new_door(path) == (doors == Doors::New) =>
            {
                Some((node.watch, behind))
            }
            _ => None,
        });
        found.flat_map(|(watch, behind)| self.guests(watch, behind)).collect()
    }

    fn is_new_door(&self, path: &Path) -> bool {
        let state = |tree: &'a Tree| tree.get(path).map(|node| &node.state);
        state(self.old) != state(self.new)
    }

    /// Returns the directories that are looked at only because of one link: where it leads,
    /// and what is a place only because of that.
    fn guests(&self, watch: Watch, behind: &'a Path) -> Vec<&'a Path> {
        let places = below(self.new, behind).filter(|(path, node)| {
            watch == Watch::Repositories
                && node.watch.role() == Role::Place
                && path.parent() == Some(behind)
        });
        let places = places.map(|(path, _)| path.as_path());
        let is_guest = |path: &&Path| {
            !path.as_os_str().is_empty() && !is_place_itself(path) && !self.old.contains_key(*path)
        };
        [behind].into_iter().chain(places).filter(is_guest).collect()
    }

    /// Tells whether a path counts only because of such a directory.
    fn is_of_guest(&self, path: &Path, guests: &[&Path]) -> bool {
        guests.iter().any(|guest| {
            let mut inside = path.ancestors().take_while(|above| above.starts_with(guest));
            path.starts_with(guest) && !inside.any(|above| self.old.contains_key(above))
        })
    }

    /// Tells what is wrong with a link in a place, if anything is.
    fn objection(&self, path: &Path, watch: Watch, door: &'a Leads) -> Option<&'static str> {
        let behind = match door {
            Leads::Nowhere | Leads::System => return None,
            Leads::Outside(_) => return Some("link out of the workspace"),
            Leads::Inside(behind) => behind,
        };
        let guests = self.guests(watch, behind);
        let trusted = view(self.old, path, behind);
        let compare = Compare { old: &trusted, newcomers: Newcomers::PutAside, ..*self };
        let paths = trusted.keys().chain(below(self.new, behind).map(|(path, _)| path));
        let paths = paths.filter(|path| self.is_of_guest(path, &guests));
        let found = compare.all(paths.collect());
        let counts = |found: &Difference| !matches!(found.act, Act::Accept(_));
        found.iter().any(counts).then_some("link to what would run later")
    }

    /// Judges a link that stands in a place and did not, or did not lead there.
    fn door(&self, path: &Path, watch: Watch, target: &Path, leads: &'a Leads) -> Verdict {
        let Some(what) = self.objection(path, watch, leads) else { return Verdict::Skip };
        let (act, kind) = match self.old.get(path).map(|node| &node.state) {
            None => (Act::PutAside, ChangeKind::Added),
            // The same link would lead there again.
            Some(State::Door { target: before, .. }) if before == target => {
                (Act::PutAside, ChangeKind::Changed)
            }
            Some(_) => (Act::PutBack, ChangeKind::Changed),
        };
        Verdict::Differs(one(path, act, kind, what))
    }

    fn at(&self, path: &Path) -> Verdict {
        match (self.old.get(path), self.new.get(path)) {
            (Some(old), Some(new)) => self.both(path, old, new),
            (None, Some(new)) => self.added(path, new),
            (Some(old), None) => self.removed(path, old),
            (None, None) => Verdict::Same,
        }
    }

    fn both(&self, path: &Path, old: &Node, new: &'a Node) -> Verdict {
        if old.means_the_same(new, depth_of(path)) {
            return if new.is_overfull() && !old.is_overfull() {
                let reason = Act::Accept("only a bounded number of directories is looked at");
                Verdict::Told(one(path, reason, ChangeKind::Changed, "more than is watched"))
            } else {
                Verdict::Same
            };
        }
        match (&old.state, &new.state) {
            (_, State::Door { target, leads }) => {
                return self.door(path, new.watch, target, leads);
            }
            // What stands in the place of a link is looked at like any directory.
            (State::Door { .. }, _) => return Verdict::Same,
            _ => {}
        }
        let role = old.watch.role();
        if role == Role::Config
            && let Some(difference) = config_change(path, old, new)
        {
            return Verdict::Differs(difference);
        }
        if role == Role::GitDirectory && self.is_own_pointer(path, new) {
            return Verdict::Skip;
        }
        Verdict::Differs(one(path, Act::PutBack, ChangeKind::Changed, role.what()))
    }

    fn added(&self, path: &Path, new: &'a Node) -> Verdict {
        let role = new.watch.role();
        let difference = |act| Verdict::Differs(one(path, act, ChangeKind::Added, role.what()));
        match (&new.state, role) {
            (State::Door { target, leads }, _) => self.door(path, new.watch, target, leads),
            (State::Directory { .. }, Role::Settings(_)) => {
                let whole = matches!(new.watch, Watch::Tree { .. });
                if whole && self.has_files_below(path) {
                    difference(self.act_on_settings(path))
                } else {
                    Verdict::Same
                }
            }
            (State::Directory { .. }, _) | (_, Role::Place) => Verdict::Same,
            (State::File { bytes, .. }, Role::Config) => {
                added_config(path, bytes).map_or(Verdict::Same, Verdict::Differs)
            }
            (State::File { bytes, .. }, Role::CommonDirectory) if is_usual(path, bytes) => {
                Verdict::Same
            }
            (State::File { .. }, Role::GitDirectory) if self.is_own_pointer(path, new) => {
                Verdict::Same
            }
            (_, Role::Settings(_)) => difference(self.act_on_settings(path)),
            (_, Role::Hook | Role::Config | Role::GitDirectory | Role::CommonDirectory) => {
                difference(Act::PutAside)
            }
        }
    }

    fn removed(&self, path: &Path, old: &Node) -> Verdict {
        let difference =
            |act| Verdict::Differs(one(path, act, ChangeKind::Removed, old.watch.role().what()));
        match (&old.state, old.watch.role()) {
            // With the whole directory gone, nothing in it runs.
            (_, Role::Place) => Verdict::Skip,
            (State::Directory { .. }, Role::GitDirectory) => {
                let elsewhere = |node: &Node| node.stamp.identity == old.stamp.identity;
                let runs = below(self.old, path).any(|(path, node)| runs(path, node));
                if runs && !self.new.values().any(elsewhere) {
                    difference(Act::Accept("a repository that is gone runs nothing"))
                } else {
                    Verdict::Skip
                }
            }
            (State::Directory { .. }, _) => Verdict::Same,
            (_, Role::GitDirectory | Role::CommonDirectory) => Verdict::Skip,
            (State::File { bytes, .. }, Role::Config) => {
                removed_config(path, bytes).map_or(Verdict::Skip, Verdict::Differs)
            }
            _ => difference(Act::PutBack),
        }
    }

    /// Settings that came with a new clone or work tree are told and left: they are as new to
    /// every tool as the directory is, and git would miss them.
    fn act_on_settings(&self, path: &Path) -> Act {
        let mut places = path.ancestors().skip(1).filter(|above| {
            self.new.get(*above).is_some_and(|node| node.watch.role() == Role::Place)
        });
        match places.next() {
            Some(place) if !self.old.contains_key(place) && self.may_bring_settings(place) => {
                Act::Accept("it came with a repository that is new itself")
            }
            _ => Act::PutAside,
        }
    }

    fn may_bring_settings(&self, place: &Path) -> bool {
        let git = place.join(".git");
        let is_own = |node: &Node| node.is_directory() || self.is_own_pointer(&git, node);
        self.newcomers == Newcomers::Told && self.new.get(&git).is_some_and(is_own)
    }

    /// Tells whether a `.git` file leads to a submodule's or work tree's git directory
    /// of a repository that is watched itself.
    fn is_own_pointer(&self, path: &Path, new: &Node) -> bool {
        let State::File { bytes, .. } = &new.state else { return false };
        let directory = path.parent().unwrap_or(Path::new(""));
        let target = git_directory(self.top, directory, bytes).map(|(path, _)| path);
        target.and_then(|target| self.new.get(&target)).is_some_and(|node| {
            let watched = matches!(node.watch, Watch::Module(_) | Watch::GitDirectory(1..));
            watched && node.is_directory()
        })
    }

    fn has_files_below(&self, path: &Path) -> bool {
        below(self.new, path).any(|(_, node)| !node.is_directory())
    }
}

fn one(path: &Path, act: Act, kind: ChangeKind, what: &str) -> Difference {
    Difference { path: path.to_owned(), act, notes: vec![(kind, what.to_owned())] }
}

/// Returns everything below a path.
pub(super) fn below<'a>(
    tree: &'a Tree,
    path: &'a Path,
) -> impl Iterator<Item = (&'a PathBuf, &'a Node)> {
    let range = (Bound::Excluded(path.to_owned()), Bound::Unbounded);
    tree.range(range).take_while(move |(below, _)| below.starts_with(path))
}

/// Tells whether something trusted could run.
fn runs(path: &Path, node: &Node) -> bool {
    match (&node.state, node.watch.role()) {
        (State::Directory { .. }, _)
        | (_, Role::Place | Role::GitDirectory | Role::CommonDirectory | Role::Settings(_)) => {
            false
        }
        (State::File { bytes, .. }, Role::Config) => {
            Config::read(bytes, depth_of(path)).is_ok_and(|config| config.counts())
        }
        (_, Role::Hook | Role::Config) => true,
    }
}

/// Names the entries that differ; `None` if the two cannot be compared by entries.
fn config_change(path: &Path, old: &Node, new: &Node) -> Option<Difference> {
    let (State::File { bytes: old, .. }, State::File { bytes: new, .. }) = (&old.state, &new.state)
    else {
        return None;
    };
    let trusted = Config::read(old, depth_of(path)).ok()?;
    let config = Config::read(new, depth_of(path)).ok()?;
    Some(config_difference(path, Act::Rewrite, config.changes(&trusted)))
}

fn added_config(path: &Path, bytes: &[u8]) -> Option<Difference> {
    let depth = depth_of(path);
    match (Config::read(bytes, depth), Config::read(b"", depth)) {
        (Ok(config), Ok(empty)) if config.counts() => {
            Some(config_difference(path, Act::Rewrite, config.changes(&empty)))
        }
        (Ok(_), _) => None,
        (Err(_), _) => Some(one(path, Act::PutAside, ChangeKind::Added, Role::Config.what())),
    }
}

/// Names what a new configuration would change that counts, if anything.
pub(super) fn config_notes(path: &Path, trusted: Option<&[u8]>, bytes: &[u8]) -> Option<String> {
    let depth = depth_of(path);
    let trusted = Config::read(trusted.unwrap_or_default(), depth);
    let (Ok(trusted), Ok(config)) = (trusted, Config::read(bytes, depth)) else {
        return Some(Role::Config.what().to_owned());
    };
    let keys: Vec<_> = config.changes(&trusted).into_iter().map(|(_, key)| key).collect();
    (!keys.is_empty()).then(|| format!("{} {}", Role::Config.what(), keys.join(", ")))
}

fn removed_config(path: &Path, bytes: &[u8]) -> Option<Difference> {
    let depth = depth_of(path);
    match (Config::read(bytes, depth), Config::read(b"", depth)) {
        (Ok(config), Ok(empty)) if config.counts() => {
            Some(config_difference(path, Act::PutBack, empty.changes(&config)))
        }
        (Ok(_), _) => None,
        (Err(_), _) => Some(one(path, Act::PutBack, ChangeKind::Removed, Role::Config.what())),
    }
}

fn config_difference(path: &Path, act: Act, changes: Vec<(ChangeKind, String)>) -> Difference {
    let what = |key: String| format!("{} {key}", Role::Config.what());
    let notes = changes.into_iter().map(|(kind, key)| (kind, what(key))).collect();
    Difference { path: path.to_owned(), act, notes }
}

/// Tells whether a file names the repository in whose `worktrees` it lies.
fn is_usual(path: &Path, bytes: &[u8]) -> bool {
    let mut above = path.ancestors().skip(2);
    let in_worktrees = above.next().is_some_and(|above| above.ends_with("worktrees"));
    in_worktrees && bytes.trim_ascii_end() == b"../.."
}
