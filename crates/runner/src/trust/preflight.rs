//! What a change would come to, told before it is made.
//!
//! A tool that writes files itself asks first, so that no file that would run later is there even
//! for a moment. A no is kept to what is certain from names and contents; what else there is,
//! [`TrustBaseline::settle`] finds.

use std::path::{Component, Path, PathBuf};

use carrel_fsroot::{Error, FileKind, Root};

use super::TrustBaseline;
use super::diff::{Act, config_notes, differences};
use super::directory_link::{leads, view};
use super::references::inside;
use super::renames::follow_renames;
use super::scan::scan;
use super::snapshot::{Leads, State, Tree};
use super::watch_rules::{Role, Watch};
use super::watched_names::makes_bare;

/// The largest file that is read to find out what moving it would do.
const MAX_READ: u64 = 1024 * 1024;

impl TrustBaseline {
    /// Tells what would run later if a file were written with these contents, if anything would. Of
    /// contents that nobody has looked at, the worst is assumed.
    pub fn denies_write(&self, root: &Root, path: &Path, bytes: Option<&[u8]>) -> Option<String> {
        let both = [Last::Itself, Last::Followed].map(|last| located(root, path, last));
        both.iter().flatten().find_map(|path| self.forbids_at(root, path, bytes))
    }

    /// Tells what would run later if something were moved, if anything would.
    pub fn denies_move(
        &self,
        root: &Root,
        from: &Path,
        to: &Path,
    ) -> Result<Option<String>, Error> {
        let located = |path| located(root, path, Last::Itself);
        let (Some(from), Some(to)) = (located(from), located(to)) else { return Ok(None) };
        let watch = match self.watch_at(root, &to) {
            None => return Ok(None),
            Some(Watched::NewRepository) => return Ok(Some(Role::GitDirectory.what().to_owned())),
            Some(Watched::As(watch)) => watch,
        };
        match root.link_metadata(&from)?.kind {
            FileKind::Directory => self.forbids_directory(root, &from, &to, watch),
            FileKind::Link if watch.role() == Role::Place => self.forbids_door(root, &from, &to),
            _ if watch.role() == Role::Place => Ok(None),
            FileKind::File => {
                let bytes = root.read_strict(&from, MAX_READ);
                let is_allowed = |bytes: Vec<u8>| self.forbids_at(root, &to, Some(&bytes));
                Ok(bytes.map_or_else(|_| Some(watch.role().what().to_owned()), is_allowed))
            }
            _ => Ok(Some(watch.role().what().to_owned())),
        }
    }

    fn forbids_at(&self, root: &Root, path: &Path, bytes: Option<&[u8]>) -> Option<String> {
        let watch = match self.watch_at(root, path)? {
            Watched::As(watch) => watch,
            Watched::NewRepository => return Some(Role::GitDirectory.what().to_owned()),
        };
        let trusted = match self.trusted.get(path).map(|node| &node.state) {
            Some(State::File { bytes, .. }) => Some(&**bytes),
            _ => None,
        };
        match (watch, watch.role()) {
            (Watch::File(_) | Watch::Tree { .. } | Watch::DotGit, role) => match (role, bytes) {
                (_, Some(bytes)) if trusted == Some(bytes) => None,
                (Role::Config, Some(bytes)) => config_notes(path, trusted, bytes),
                (role, _) => Some(role.what().to_owned()),
            },
            // A file where only a directory means something.
            _ => None,
        }
    }

    /// Looks at a directory as if it had been moved already.
    fn forbids_directory(
        &self,
        root: &Root,
        from: &Path,
        to: &Path,
        watch: Watch,
    ) -> Result<Option<String>, Error> {
        let seen = scan(root, &self.trusted, &[(from.to_owned(), watch)])?.nodes;
        let arrived = view(&seen, from, to);
        let stays = |path: &Path| !path.starts_with(from) && !path.starts_with(to);
        let mut after: Tree = seen.into_iter().filter(|(path, _)| stays(path)).collect();
        after.extend(arrived);
        let (mut trusted, mut gone) = (self.trusted.clone(), self.gone.clone());
        follow_renames(&mut trusted, &after);
        gone.revive(&mut trusted, &after);
        let found = differences(root.path(), &trusted, &after, gone.newcomers());
        let counts = found
            .into_iter()
            .find(|found| found.path.starts_with(to) && !matches!(found.act, Act::Accept(_)));
        Ok(counts.and_then(|found| found.notes.into_iter().next()).map(|(_, what)| what))
    }

    /// Looks where a link would lead, and at what is there.
    fn forbids_door(&self, root: &Root, from: &Path, to: &Path) -> Result<Option<String>, Error> {
        let target = root.read_link(from)?;
        let behind = match leads(root, to, &target) {
            Leads::Nowhere | Leads::System => return Ok(None),
            Leads::Outside(_) => return Ok(Some("link out of the workspace".to_owned())),
            Leads::Inside(behind) => behind,
        };
        if self.trusted.contains_key(&behind) {
            return Ok(None);
        }
        let place = Watch::Place { bare: false };
        let seen = scan(root, &self.trusted, &[(behind.clone(), place)])?.nodes;
        let holds_something =
            seen.iter().any(|(path, node)| path.starts_with(&behind) && !node.is_directory());
        Ok(holds_something.then(|| "link to what would run later".to_owned()))
    }

    /// Finds out how an entry would be looked at, if it would.
    fn watch_at(&self, root: &Root, path: &Path) -> Option<Watched> {
        let doors = self.trusted.iter().filter_map(|(door, node)| match &node.state {
            State::Door { leads: Leads::Inside(behind), .. } => Some((behind.clone(), node.watch)),
            State::Door { leads: Leads::Nowhere, target } => {
                let above = door.parent().unwrap_or(Path::new(""));
                inside(root.path(), above, target).map(|behind| (behind, node.watch))
            }
            _ => None,
        });
        let top = (PathBuf::new(), Watch::Top { bare: false });
        let starts = [top].into_iter().chain(self.extras.iter().cloned()).chain(doors);
        let found = starts.filter_map(|(start, watch)| self.walk(root, &start, watch, path));
        // A place is the least that something can be.
        found.min_by_key(Watched::is_place)
    }

    /// Goes from a directory that is looked at down to an entry, as far as it is looked at.
    fn walk(&self, root: &Root, start: &Path, watch: Watch, path: &Path) -> Option<Watched> {
        let rest = path.strip_prefix(start).ok()?;
        let (mut at, mut watch) = (start.to_owned(), watch);
        for name in rest {
            if let Some(known) = self.trusted.get(&at).filter(|known| {
                known.watch.role() == watch.role() && known.watch.role() == Role::Place
            }) {
                watch = known.watch.or_repositories(watch);
            }
            if watch.role() == Role::Place && makes_bare(root, &at, name) {
                return Some(Watched::NewRepository);
            }
            let place = Watch::Place { bare: false };
            let as_place = || place.looks_at(name).filter(|_| watch.is_also_place(&at));
            watch = watch.looks_at(name).or_else(as_place)?;
            at.push(name);
        }
        Some(Watched::As(watch))
    }
}

/// How an entry would be looked at.
#[derive(Clone, Copy, Debug)]
enum Watched {
    As(Watch),
    /// With it, git would take the directory for a repository.
    NewRepository,
}

impl Watched {
    fn is_place(&self) -> bool {
        matches!(self, Self::As(watch) if watch.role() == Role::Place)
    }
}

/// Returns the one path of an entry that may not be there yet, without links on the way to it, and
/// as its last name says or as where that leads; `None` if it is none that can be written.
fn located(root: &Root, path: &Path, last: Last) -> Option<PathBuf> {
    if path.is_absolute() {
        return None;
    }
    if let (Last::Followed, Ok(found)) = (last, root.locate(path)) {
        return Some(found);
    }
    if let (Some(above), Some(name)) = (path.parent(), path.file_name())
        && let Ok(above) = root.locate(&Path::new(".").join(above))
    {
        return Some(above.join(name));
    }
    let (mut found, mut names) = (PathBuf::new(), path.components().peekable());
    // From the top, because a long path is mostly missing.
    while let Some(name) = names.next() {
        let next = found.join(name);
        let is_last = names.peek().is_none();
        match root.locate(&next) {
            Ok(there) if !is_last => found = there,
            Err(error) if !is_last && !error.is_not_found() => return None,
            _ => return joined(found, [name].into_iter().chain(names)),
        }
    }
    None
}

/// What the last name of a path stands for if it is a link.
#[derive(Clone, Copy, Debug)]
enum Last {
    Itself,
    Followed,
}

fn joined<'a>(mut path: PathBuf, rest: impl Iterator<Item = Component<'a>>) -> Option<PathBuf> {
    for part in rest {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir if path.pop() => {}
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}
