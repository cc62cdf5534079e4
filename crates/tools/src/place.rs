//! The workspaces of a server, and the choice of one for a call.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use carrel_domain::{Code, WorkspaceAccess};
use carrel_fsroot::Root;
use carrel_workspace::{Desk, RunError, Writing};
use serde_json::json;

use crate::failure::Failure;
use crate::spec::{SpecError, WorkspaceEntry};

/// A workspace under the name that calls use.
#[derive(Debug)]
pub struct Place {
    name: String,
    desk: Desk,
    access: WorkspaceAccess,
    /// The directory as the operator wrote it, which may lead through links.
    given: PathBuf,
    /// It was said that other processes are not waited for.
    said_unlocked: AtomicBool,
}

impl Place {
    /// Puts a workspace under a name.
    pub fn new(entry: WorkspaceEntry, desk: Desk) -> Self {
        let WorkspaceEntry { name, path: given, access } = entry;
        Self { name, desk, access, given, said_unlocked: AtomicBool::new(false) }
    }

    /// Takes a directory in this one under the same name.
    fn below(&self, path: &Path) -> Result<Self, RunError> {
        let entry = WorkspaceEntry {
            name: self.name.clone(),
            path: self.path().join(path),
            access: self.access,
        };
        Ok(Self::new(entry, self.desk.below(path)?))
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns where it is, without links.
    pub fn path(&self) -> &Path {
        self.desk.path()
    }

    /// Returns the door to its files.
    pub fn files(&self) -> &Root {
        self.desk.files()
    }

    /// Returns where its commands run.
    pub fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Lets one call at a time write files, of this process and of others. It is held on threads that
    /// may wait, never across an await.
    pub(crate) fn writing(&self) -> Result<Writing<'_>, Failure> {
        Ok(self.desk.writing()?)
    }

    /// Returns why other processes that write here are not waited for, the first time it is asked
    /// after that is known.
    pub(crate) fn new_trouble(&self) -> Option<&str> {
        let trouble = self.desk.write_lock().trouble()?;
        (!self.said_unlocked.swap(true, Ordering::Relaxed)).then_some(trouble)
    }

    /// Returns what may be done with its files.
    pub fn access(&self) -> WorkspaceAccess {
        self.access
    }

    /// Returns a path relative to the workspace. An absolute one has to lie in it; any other is left
    /// as it is, for the door to the files to refuse.
    pub fn relative(&self, path: &str) -> PathBuf {
        let path = Path::new(path);
        let inside =
            [self.path(), &self.given].into_iter().find_map(|top| path.strip_prefix(top).ok());
        let relative = inside.unwrap_or(path);
        if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative.to_owned() }
    }
}

/// The workspaces of a server, in the order in which the operator named them.
#[derive(Debug)]
pub struct Workspaces {
    places: Vec<Arc<Place>>,
}

impl Workspaces {
    /// Takes workspaces together. None may be, or lie in, another.
    pub fn new(places: Vec<Place>) -> Result<Self, SpecError> {
        for (index, place) in places.iter().enumerate() {
            for other in &places[..index] {
                if let Some(relation) = relation(place.path(), other.path()) {
                    return Err(SpecError::Overlap {
                        index,
                        name: place.name.clone(),
                        path: place.path().display().to_string(),
                        relation,
                        other: other.name.clone(),
                    });
                }
            }
        }
        Ok(Self { places: places.into_iter().map(Arc::new).collect() })
    }

    /// Leaves of each workspace what a client asks for: all of it if it lies in one of the roots, or
    /// the first root that lies in it. A workspace that no root has to do with is left out. None if
    /// no root has to do with any, as when a client names what is open on another machine.
    pub(crate) fn narrowed(&self, roots: &[PathBuf]) -> Option<Self> {
        let left = self.places.iter().filter_map(|place| {
            if roots.iter().any(|root| place.path().starts_with(root)) {
                return Some(Arc::clone(place));
            }
            let inside = roots.iter().find_map(|root| root.strip_prefix(place.path()).ok())?;
            place.below(inside).map(Arc::new).ok()
        });
        let places: Vec<_> = left.collect();
        (!places.is_empty()).then_some(Self { places })
    }

    /// Returns them in the operator's order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Place>> {
        self.places.iter()
    }

    /// Returns how many there are.
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the names in alphabetical order.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.places.iter().map(|place| place.name()).collect();
        names.sort_unstable();
        names
    }

    /// Finds the one that a call is about.
    pub(crate) fn choose(&self, name: Option<&str>) -> Result<Arc<Place>, Failure> {
        match (name, &self.places[..]) {
            (None, [only]) => Ok(Arc::clone(only)),
            (None, _) => Err(self.not_chosen()),
            (Some(name), _) => self.named(name),
        }
    }

    /// Finds one by its name.
    pub(crate) fn named(&self, name: &str) -> Result<Arc<Place>, Failure> {
        let found = self.places.iter().find(|place| place.name == name);
        found.map(Arc::clone).ok_or_else(|| {
            let names = self.names();
            let message = format!("unknown workspace \"{name}\"; configured: {}", names.join(", "));
            let detail = json!({ "workspace": name, "configured": names });
            Failure { code: Code::UnknownWorkspace, message, detail }
        })
    }

    fn not_chosen(&self) -> Failure {
        let (count, names) = (self.places.len(), self.names());
        let message = format!(
            "multi-workspace sandbox: {count} workspaces configured ({}) — pass `workspace` to pick one",
            names.join(", ")
        );
        let detail = json!({ "configured": names });
        Failure { code: Code::WorkspaceNotChosen, message, detail }
    }
}

fn relation(path: &Path, other: &Path) -> Option<&'static str> {
    match () {
        () if path == other => Some("is also"),
        () if path.starts_with(other) => Some("lies inside"),
        () if other.starts_with(path) => Some("holds"),
        () => None,
    }
}
