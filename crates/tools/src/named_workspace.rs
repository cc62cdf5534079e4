//! The named workspaces of a server, and the choice of one for a call.
//!
//! A server has one or more workspaces in the operator's order. With one, calls need not name it; with
//! several, a call without a name is refused with the list. None may lie in another: a file would then have
//! two keys in read trackers and two quotas.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use carrel_domain::{Code, Failure, WorkspaceAccess};
use carrel_fsroot::Root;
use carrel_runner::{RunError, WorkspaceHandle};
use serde_json::json;

use crate::workspace_list::{WorkspaceEntry, WorkspaceListError};

/// A workspace under the name that calls use.
#[derive(Debug)]
pub struct NamedWorkspace {
    name: String,
    /// The name that the operator gave, under which secrets and credentials are kept.
    operator_name: String,
    handle: Arc<WorkspaceHandle>,
    access: WorkspaceAccess,
    /// The absolute path by which the operator named it, possibly through links.
    given: PathBuf,
    /// The missing lock between processes was reported.
    reported_unlocked: AtomicBool,
}

impl NamedWorkspace {
    /// Gives an open workspace its name.
    pub fn new(entry: WorkspaceEntry, handle: WorkspaceHandle) -> Self {
        let WorkspaceEntry { name, path: given, access } = entry;
        let operator_name = name.clone();
        let handle = Arc::new(handle);
        let reported_unlocked = AtomicBool::new(false);
        Self { name, operator_name, handle, access, given, reported_unlocked }
    }

    /// Gives an open fork of this workspace its name. The operator's secrets for the workspace are its, too.
    pub(crate) fn fork(&self, name: String, handle: WorkspaceHandle) -> Self {
        let entry = WorkspaceEntry { name, path: handle.path().to_owned(), access: self.access };
        let operator_name = self.operator_name.clone();
        Self { operator_name, ..Self::new(entry, handle) }
    }

    fn below(&self, name: String, path: &Path) -> Result<Self, RunError> {
        let entry = WorkspaceEntry { name, path: self.given.join(path), access: self.access };
        let part = Self::new(entry, self.handle.subdirectory(path)?);
        Ok(Self { operator_name: self.operator_name.clone(), ..part })
    }

    /// Returns the parts of the workspace within a client's roots: the whole workspace if it lies in one of
    /// them, else each root that lies in it. A single part keeps the name of the workspace; several are told
    /// apart by their paths, such as `api/crates/http`.
    fn within(self: &Arc<Self>, roots: &[PathBuf]) -> Vec<Arc<Self>> {
        if roots.iter().any(|root| self.path().starts_with(root)) {
            return vec![Arc::clone(self)];
        }
        let inside: BTreeSet<_> =
            roots.iter().filter_map(|root| root.strip_prefix(self.path()).ok()).collect();
        let mut outermost: Vec<&Path> = Vec::new();
        // Paths are compared by component, so that a directory comes right before those below it.
        for path in inside {
            if outermost.last().is_none_or(|last| !path.starts_with(last)) {
                outermost.push(path);
            }
        }
        let several = outermost.len() > 1;
        let path_in_name = |path: &Path| format!("{}/{}", self.name, path.display());
        let name = |path: &Path| if several { path_in_name(path) } else { self.name.clone() };
        let opened = outermost.into_iter().filter_map(|path| self.below(name(path), path).ok());
        opened.map(Arc::new).collect()
    }

    /// Returns whether a directory is this workspace or lies in it.
    pub(crate) fn holds(&self, directory: &Path) -> bool {
        directory.starts_with(self.path())
    }

    /// Returns the name that calls use.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name that the operator gave; a part within a client's roots may have another one in calls.
    pub(crate) fn operator_name(&self) -> &str {
        &self.operator_name
    }

    /// Returns the absolute path, without links.
    pub fn path(&self) -> &Path {
        self.handle.path()
    }

    pub(crate) fn given(&self) -> &Path {
        &self.given
    }

    /// Returns the directory that all file access starts from.
    pub fn files(&self) -> &Root {
        self.handle.files()
    }

    /// Returns the handle that commands run with.
    pub fn handle(&self) -> &WorkspaceHandle {
        &self.handle
    }

    /// Returns the reason why writes are not serialised with other processes, once.
    pub(crate) fn take_lock_trouble(&self) -> Option<&str> {
        let trouble = self.handle.write_lock().degraded()?;
        (!self.reported_unlocked.swap(true, Ordering::Relaxed)).then_some(trouble)
    }

    /// Returns the handle for a process that outlives a call.
    pub(crate) fn shared_handle(&self) -> &Arc<WorkspaceHandle> {
        &self.handle
    }

    /// Returns whether its files may be changed.
    pub fn access(&self) -> WorkspaceAccess {
        self.access
    }

    /// Returns a path relative to the workspace. An absolute path outside it is returned unchanged, and
    /// refused when it is opened.
    pub fn relative(&self, path: &str) -> PathBuf {
        let path = Path::new(path);
        let inside =
            [self.path(), &self.given].into_iter().find_map(|top| path.strip_prefix(top).ok());
        let relative = inside.unwrap_or(path);
        if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative.to_owned() }
    }

    /// Returns an argument of a command with the path of the workspace that commands see.
    pub(crate) fn respelled(&self, argument: &str) -> String {
        carrel_shell::arguments::respelled(argument, &self.given, self.path())
    }

    /// Returns an optional path relative to the workspace; empty for the workspace itself.
    pub(crate) fn relative_or_top(&self, path: Option<&str>) -> PathBuf {
        let relative = path.map(|path| self.relative(path)).unwrap_or_default();
        if relative == Path::new(".") { PathBuf::new() } else { relative }
    }
}

/// The workspaces of a server, in the order in which the operator named them.
#[derive(Debug)]
pub struct Workspaces {
    workspaces: Vec<Arc<NamedWorkspace>>,
    /// Open forks of these, which calls reach by name only. A call that ends one must not keep it.
    forks: Vec<Weak<NamedWorkspace>>,
}

impl Workspaces {
    /// Collects workspaces. None may be, or lie in, another.
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
        let workspaces = workspaces.into_iter().map(Arc::new).collect();
        Ok(Self { workspaces, forks: Vec::new() })
    }

    /// Restricts the workspaces to the roots of a client, which have no links in them: a workspace inside a
    /// root stays whole, one that contains roots becomes these, and others are left out. None if no root
    /// overlaps any workspace, as with roots of another machine.
    pub(crate) fn narrowed(&self, roots: &[PathBuf]) -> Option<Self> {
        let parts = self.workspaces.iter().flat_map(|workspace| workspace.within(roots));
        let workspaces: Vec<_> = parts.collect();
        (!workspaces.is_empty()).then_some(Self { workspaces, forks: Vec::new() })
    }

    /// Returns the same workspaces with open forks of them.
    pub(crate) fn with_forks(&self, forks: Vec<Weak<NamedWorkspace>>) -> Self {
        Self { workspaces: self.workspaces.clone(), forks }
    }

    /// Returns the open forks.
    pub(crate) fn forks(&self) -> impl Iterator<Item = Arc<NamedWorkspace>> {
        self.forks.iter().filter_map(Weak::upgrade)
    }

    /// Returns the workspaces in the operator's order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<NamedWorkspace>> {
        self.workspaces.iter()
    }

    pub(crate) fn as_slice(&self) -> &[Arc<NamedWorkspace>] {
        &self.workspaces
    }

    /// Returns the number of workspaces, at least one.
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

    /// Returns the workspace of a call; without a name, the only one.
    pub fn choose(&self, name: Option<&str>) -> Result<Arc<NamedWorkspace>, Failure> {
        match (name, &self.workspaces[..]) {
            (None, [only]) => Ok(Arc::clone(only)),
            (None, _) => Err(self.not_chosen()),
            (Some(name), _) => self.named(name),
        }
    }

    pub(crate) fn named(&self, name: &str) -> Result<Arc<NamedWorkspace>, Failure> {
        let mut all = self.workspaces.iter().map(Arc::clone).chain(self.forks());
        let found = all.find(|workspace| workspace.name == name);
        found.ok_or_else(|| {
            let names = self.names();
            let message = format!("unknown workspace \"{name}\"; configured: {}", names.join(", "));
            let detail = json!({ "workspace": name, "configured": names });
            Failure { code: Code::UnknownWorkspace, message, detail }
        })
    }

    fn not_chosen(&self) -> Failure {
        let count = self.workspaces.len();
        let names = self.names();
        let message = format!(
            "multi-workspace sandbox: {count} workspaces configured ({}) — pass `workspace` to pick one",
            names.join(", ")
        );
        let detail = json!({ "configured": names });
        Failure { code: Code::WorkspaceNotChosen, message, detail }
    }
}

fn relation(path: &Path, other: &Path) -> Option<&'static str> {
    if path == other {
        Some("is also")
    } else if path.starts_with(other) {
        Some("lies inside")
    } else if other.starts_with(path) {
        Some("contains")
    } else {
        None
    }
}
