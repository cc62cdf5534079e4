//! The workspaces of a server, and the choice of one for a call.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use carrel_domain::{Code, WorkspaceAccess};
use carrel_fsroot::Root;
use carrel_runner::{RunError, WorkspaceHandle, WriteGuard};
use serde_json::json;

use crate::failure::Failure;
use crate::workspace_list::{WorkspaceEntry, WorkspaceListError};

/// A workspace under the name that calls use.
#[derive(Debug)]
pub struct NamedWorkspace {
    name: String,
    handle: WorkspaceHandle,
    access: WorkspaceAccess,
    /// The directory as the operator wrote it, which may lead through links.
    given: PathBuf,
    /// It was said that other processes are not waited for.
    said_unlocked: AtomicBool,
}

impl NamedWorkspace {
    /// Puts a workspace under a name.
    pub fn new(entry: WorkspaceEntry, handle: WorkspaceHandle) -> Self {
        let WorkspaceEntry { name, path: given, access } = entry;
        Self { name, handle, access, given, said_unlocked: AtomicBool::new(false) }
    }

    /// Takes a directory in this one under the same name.
    fn below(&self, path: &Path) -> Result<Self, RunError> {
        let entry = WorkspaceEntry {
            name: self.name.clone(),
            path: self.path().join(path),
            access: self.access,
        };
        Ok(Self::new(entry, self.handle.subdirectory(path)?))
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns where it is, without links.
    pub fn path(&self) -> &Path {
        self.handle.path()
    }

    /// Returns the door to its files.
    pub fn files(&self) -> &Root {
        self.handle.files()
    }

    /// Returns where its commands run.
    pub fn handle(&self) -> &WorkspaceHandle {
        &self.handle
    }

    /// Lets one call at a time write files, of this process and of others. It is held on threads that
    /// may wait, never across an await.
    pub(crate) fn writing(&self) -> Result<WriteGuard<'_>, Failure> {
        Ok(self.handle.lock_for_writing()?)
    }

    /// Returns why other processes that write here are not waited for, the first time it is asked
    /// after that is known.
    pub(crate) fn take_lock_trouble(&self) -> Option<&str> {
        let trouble = self.handle.write_lock().degraded()?;
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
    workspaces: Vec<Arc<NamedWorkspace>>,
}

impl Workspaces {
    /// Takes workspaces together. None may be, or lie in, another.
    pub fn new(workspaces: Vec<NamedWorkspace>) -> Result<Self, WorkspaceListError> {
        for (index, workspace) in workspaces.iter().enumerate() {
            for other in &workspaces[..index] {
                if let Some(relation) = relation(workspace.path(), other.path()) {
                    return Err(WorkspaceListError::Overlap {
                        index,
                        name: workspace.name.clone(),
                        path: workspace.path().display().to_string(),
                        relation,
                        other: other.name.clone(),
                    });
                }
            }
        }
        Ok(Self { workspaces: workspaces.into_iter().map(Arc::new).collect() })
    }

    /// Leaves of each workspace what a client asks for: all of it if it lies in one of the roots, or
    /// the first root that lies in it. A workspace that no root has to do with is left out. None if
    /// no root has to do with any, as when a client names what is open on another machine.
    pub(crate) fn narrowed(&self, roots: &[PathBuf]) -> Option<Self> {
        let left = self.workspaces.iter().filter_map(|workspace| {
            if roots.iter().any(|root| workspace.path().starts_with(root)) {
                return Some(Arc::clone(workspace));
            }
            let inside = roots.iter().find_map(|root| root.strip_prefix(workspace.path()).ok())?;
            workspace.below(inside).map(Arc::new).ok()
        });
        let workspaces: Vec<_> = left.collect();
        (!workspaces.is_empty()).then_some(Self { workspaces })
    }

    /// Returns them in the operator's order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<NamedWorkspace>> {
        self.workspaces.iter()
    }

    /// Returns how many there are.
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.workspaces.len()
    }

    /// Returns the names in alphabetical order.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.workspaces.iter().map(|workspace| workspace.name()).collect();
        names.sort_unstable();
        names
    }

    /// Finds the one that a call is about.
    pub(crate) fn choose(&self, name: Option<&str>) -> Result<Arc<NamedWorkspace>, Failure> {
        match (name, &self.workspaces[..]) {
            (None, [only]) => Ok(Arc::clone(only)),
            (None, _) => Err(self.not_chosen()),
            (Some(name), _) => self.named(name),
        }
    }

    /// Finds one by its name.
    pub(crate) fn named(&self, name: &str) -> Result<Arc<NamedWorkspace>, Failure> {
        let found = self.workspaces.iter().find(|workspace| workspace.name == name);
        found.map(Arc::clone).ok_or_else(|| {
            let names = self.names();
            let message = format!("unknown workspace \"{name}\"; configured: {}", names.join(", "));
            let detail = json!({ "workspace": name, "configured": names });
            Failure { code: Code::UnknownWorkspace, message, detail }
        })
    }

    fn not_chosen(&self) -> Failure {
        let (count, names) = (self.workspaces.len(), self.names());
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
