//! An open workspace that commands and tools work in.
//!
//! The handle holds the directory by a descriptor, so a rename of the workspace does not redirect it,
//! and a share of the workspace's lock, so it cannot be removed. Quota, write lock and trust baseline
//! are shared by everything that works in the workspace through this process.

use carrel_domain::{Layout, hex, sync};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use carrel_fsroot::{FileKind, Root};
use carrel_sandbox::GitDirectory;
use sha2::{Digest as _, Sha256};

use crate::error::RunError;
use crate::fork_mount::ForkMount;
use crate::home_directory::HomeDirectory;
use crate::quota_watcher::QuotaWatcher;
use crate::reservation::Reservation;
use crate::server_directory::ServerDirectory;
use crate::trust::TrustBaseline;
use crate::write_lock::{WriteGuard, WriteLock};
use carrel_workspace::{Amount, ChangeRight, Error, Exceeded, Quota, Workspace};

/// The length of the hash of a path, in bytes.
const HASH_BYTES: usize = 16;

/// An open workspace: its directory, lock, quota, write lock and trust baseline.
#[derive(Debug)]
pub struct WorkspaceHandle {
    pub(crate) directory: Root,
    /// False for a directory within the workspace.
    is_whole: bool,
    /// Set before the first command.
    pub(crate) trust: Arc<OnceLock<Mutex<TrustBaseline>>>,
    pub(crate) shared: Arc<SharedState>,
}

/// The state that a workspace shares with handles for directories in it.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub(crate) server: ServerDirectory,
    /// None where the workspace itself is the home of its commands.
    pub(crate) home: Option<HomeDirectory>,
    /// The same, open, where there is a quota that it counts towards.
    counted_home: Option<Root>,
    /// Paths of the host that commands must not see: the root, or the state directory.
    pub(crate) hidden: Vec<PathBuf>,
    quota: Option<Quota>,
    /// The usage at the last count.
    used: Mutex<Amount>,
    /// Checks single writes against the quota.
    write_quota: Option<Arc<Mutex<QuotaWatcher>>>,
    write_lock: WriteLock,
    /// The mounted tree of a fork.
    pub(crate) fork: Option<Arc<ForkMount>>,
    /// The commands that run and may write.
    running: Arc<AtomicUsize>,
    /// None for a directory that an operator named.
    root: Option<PathBuf>,
    /// Shares of the workspace's locks, which commands hold as well.
    locks: Vec<OwnedFd>,
    /// Keeps the workspace's own lock; none for a directory that an operator named, and for a hook's.
    workspace: Option<Arc<Workspace>>,
}

/// A command that counts as running.
#[derive(Debug)]
pub(crate) struct RunningCommand(Arc<AtomicUsize>);

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SharedState {
    fn new(server: ServerDirectory, home: Option<HomeDirectory>, hidden: &Path) -> Self {
        Self {
            write_lock: WriteLock::new(server.clone()),
            server,
            home,
            counted_home: None,
            hidden: vec![hidden.to_owned()],
            quota: None,
            used: Mutex::default(),
            write_quota: None,
            fork: None,
            running: Arc::default(),
            root: None,
            locks: Vec::new(),
            workspace: None,
        }
    }

    fn locked(root: &Path, home: Option<HomeDirectory>, locks: Vec<OwnedFd>) -> Self {
        let shared = Self::new(ServerDirectory::of_root(root), home, root);
        Self { root: Some(root.to_owned()), locks, ..shared }
    }
}

impl WorkspaceHandle {
    fn new(directory: Root, shared: SharedState) -> Self {
        Self { directory, is_whole: true, trust: Arc::default(), shared: Arc::new(shared) }
    }

    /// Opens a directory that an operator named, without lock and quota. `state` is Carrel's state
    /// directory.
    pub fn for_directory(path: &Path, state: &Path) -> Result<Self, RunError> {
        let directory = Root::open(path).map_err(RunError::Workspace)?;
        let home = HomeDirectory::of_directory(state, directory.path());
        let server = ServerDirectory::of_state(state);
        Ok(Self::new(directory, SharedState::new(server, Some(home), state)))
    }

    /// Opens a directory of Carrel's own, for a trial command without a home.
    pub(crate) fn for_trial(path: &Path, state: &Path) -> Result<Self, RunError> {
        let directory = Root::open(path).map_err(RunError::Workspace)?;
        Ok(Self::new(directory, SharedState::new(ServerDirectory::of_state(state), None, state)))
    }

    /// Takes the workspace of a hook, which the caller has locked.
    pub(crate) fn for_hook(
        directory: Root,
        root: &Path,
        layout: Layout,
        held: Vec<OwnedFd>,
    ) -> Self {
        let home = home(root, directory.path(), layout, 0);
        Self::new(directory, SharedState::locked(root, home, held))
    }

    /// Takes a workspace into use for commands, after a last check of its path and its quota.
    pub async fn open(workspace: &Arc<Workspace>) -> Result<Self, RunError> {
        let used = workspace.mark_in_use().await?;
        Self::for_workspace(Arc::clone(workspace), used)
    }

    /// Takes a workspace whose usage is known. It cannot be removed while the handle exists.
    pub fn for_workspace(
        workspace: impl Into<Arc<Workspace>>,
        used: Amount,
    ) -> Result<Self, RunError> {
        let workspace = workspace.into();
        let directory = workspace.files().try_clone().map_err(RunError::Workspace)?;
        let same = directory.try_clone().map_err(RunError::Workspace)?;
        let record = workspace.record();
        let quota = record.quota;
        let made = u64::try_from(record.created_at.as_millis()).unwrap_or_default();
        let home = home(workspace.root(), directory.path(), record.layout, made);
        // Made here and not with the first cell, so that every walk counts it.
        let counted_home = home.as_ref().map(|home| home.open(&directory)).transpose()?;
        let watcher = counting(QuotaWatcher::new(same, quota, used)?, counted_home.as_ref())?;
        let shared = SharedState {
            quota: Some(quota),
            counted_home,
            used: Mutex::new(used),
            write_quota: Some(Arc::new(Mutex::new(watcher))),
            ..SharedState::locked(workspace.root(), home, vec![workspace.lock_descriptor()?])
        };
        Ok(Self::new(directory, SharedState { workspace: Some(workspace), ..shared }))
    }

    /// Takes a fork whose tree is mounted. Its usage is that of its upper layer.
    pub(crate) fn for_fork(
        workspace: Arc<Workspace>,
        used: Amount,
        fork: Arc<ForkMount>,
    ) -> Result<Self, RunError> {
        let plain = Self::for_workspace(workspace, used)?;
        let directory = fork.tree.try_clone().map_err(RunError::Workspace)?;
        let upper = fork.upper.try_clone().map_err(RunError::Workspace)?;
        let shared = Arc::into_inner(plain.shared).expect("the handle is new");
        let quota = shared.quota.expect("a workspace of a root has a quota");
        let watcher =
            counting(QuotaWatcher::new(upper, quota, used)?, shared.counted_home.as_ref())?;
        let write_quota = Some(Arc::new(Mutex::new(watcher)));
        Ok(Self::new(directory, SharedState { fork: Some(fork), write_quota, ..shared }))
    }

    /// Returns the directory on disk whose owner the files of the workspace have: for a fork, the empty one that its
    /// tree covers.
    pub(crate) fn place(&self) -> &Root {
        let workspace = self.shared.workspace.as_ref().filter(|_| self.shared.fork.is_some());
        workspace.map_or(&self.directory, |workspace| workspace.files())
    }

    /// Returns a handle for a directory in this one, for callers that may see no more of it. Lock, quota
    /// and write lock are shared; the trust baseline is its own.
    pub fn subdirectory(&self, path: &Path) -> Result<Self, RunError> {
        let directory = self.directory.open_root(path).map_err(RunError::Directory)?;
        let shared = Arc::clone(&self.shared);
        Ok(Self { directory, is_whole: false, trust: Arc::default(), shared })
    }

    /// Returns the real path.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the root that holds it; none for a directory that an operator named.
    pub(crate) fn workspace_root(&self) -> Option<&Path> {
        self.shared.root.as_deref()
    }

    /// Returns the name of what the server's own directory has for the workspace: its key, or the hash of the path
    /// that an operator named. None for a directory within a workspace.
    pub(crate) fn name_beside(&self) -> Option<PathBuf> {
        let path = self.is_whole.then(|| self.path())?;
        if self.workspace_root().is_some() {
            return path.file_name().map(PathBuf::from);
        }
        let hash = Sha256::digest(path.as_os_str().as_bytes());
        Some(hex::encode(&hash[..HASH_BYTES]).into())
    }

    /// Returns the workspace of a root; none for a directory that an operator named, and for one within a workspace.
    pub fn managed(&self) -> Option<&Arc<Workspace>> {
        self.shared.workspace.as_ref().filter(|_| self.is_whole)
    }

    /// Returns the directory.
    pub fn files(&self) -> &Root {
        &self.directory
    }

    /// Takes the write lock, waiting at most [`carrel_workspace::LOCK_TIMEOUT`] for other processes. Fails while the
    /// workspace is frozen for forks.
    pub fn lock_for_writing(&self) -> Result<WriteGuard<'_>, Error> {
        let writing = self.shared.write_lock.take(&self.directory)?;
        self.refuse_frozen()?;
        Ok(writing)
    }

    /// Fails while the workspace is frozen for forks. A fork may be made right after it: what writes takes a lock.
    pub fn refuse_frozen(&self) -> Result<(), Error> {
        self.shared.workspace.as_ref().map_or(Ok(()), |workspace| workspace.refuse_frozen())
    }

    /// Takes the write lock also while the workspace is frozen: for freezing, for a promotion, and for a snapshot, which
    /// no change is to fall into.
    pub fn lock_past_freeze(&self) -> Result<WriteGuard<'_>, Error> {
        self.shared.write_lock.take(&self.directory)
    }

    /// Asks for the right to change the tree, for a command; none where no workspace can have forks.
    pub(crate) fn right_to_change(&self) -> Result<Option<ChangeRight>, Error> {
        self.shared.workspace.as_ref().map(|workspace| workspace.right_to_change()).transpose()
    }

    /// Returns the write lock.
    pub fn write_lock(&self) -> &WriteLock {
        &self.shared.write_lock
    }

    /// Returns the quota, if there is one.
    pub fn quota(&self) -> Option<Quota> {
        self.shared.quota
    }

    /// Returns a new watcher of the quota, if there is one.
    pub fn quota_watcher(&self) -> Result<Option<QuotaWatcher>, Error> {
        let Some((quota, used)) = self.quota_and_use() else { return Ok(None) };
        let counted = self.shared.fork.as_ref().map_or(&self.directory, |fork| &fork.upper);
        let directory = counted.try_clone().map_err(Error::files("could not watch the quota"))?;
        let watcher = QuotaWatcher::new(directory, quota, used)?;
        counting(watcher, self.shared.counted_home.as_ref()).map(Some)
    }

    /// Sets the usage after a count.
    pub fn set_used(&self, used: Amount) {
        *sync::lock(&self.shared.used) = used;
    }

    /// Returns the usage at the last count.
    pub fn used(&self) -> Amount {
        *sync::lock(&self.shared.used)
    }

    pub(crate) fn quota_and_use(&self) -> Option<(Quota, Amount)> {
        self.shared.quota.map(|quota| (quota, self.used()))
    }

    /// Returns the number of commands that run and may write to the workspace, of all sessions and interfaces of this
    /// process.
    pub fn running_commands(&self) -> usize {
        self.shared.running.load(Ordering::Relaxed)
    }

    /// Counts a command as running until the count is dropped.
    pub(crate) fn count_command(&self) -> RunningCommand {
        self.shared.running.fetch_add(1, Ordering::Relaxed);
        RunningCommand(Arc::clone(&self.shared.running))
    }

    /// Notes that a command writes, or has written.
    pub(crate) fn expect_changes(&self) {
        if let Some(watcher) = &self.shared.write_quota {
            sync::lock(watcher).expect_changes();
        }
    }

    /// Counts `more` as used, or fails if the quota does not allow it. May walk the tree.
    pub fn check_room(&self, more: Amount) -> Result<(), Error> {
        self.check_quota(more, QuotaWatcher::claim)
    }

    /// Reserves `more` for later writes, or fails if the quota does not allow it. May walk the tree.
    pub fn reserve(&self, more: Amount) -> Result<Reservation, Error> {
        self.check_quota(more, QuotaWatcher::reserve)?;
        Ok(Reservation { watcher: self.shared.write_quota.clone(), left: more })
    }

    fn check_quota(
        &self,
        more: Amount,
        look: fn(&mut QuotaWatcher, Amount) -> Result<Option<Exceeded>, Error>,
    ) -> Result<(), Error> {
        let watcher = self.shared.write_quota.as_ref().filter(|_| more != Amount::default());
        let Some(watcher) = watcher else { return Ok(()) };
        let Some(exceeded) = look(&mut sync::lock(watcher), more)? else { return Ok(()) };
        let key = self.path().file_name().unwrap_or_default();
        Err(exceeded.in_workspace(&key.to_string_lossy()))
    }

    /// Returns descriptors that a command holds until its last process has ended.
    pub(crate) fn held(&self) -> Result<Vec<OwnedFd>, RunError> {
        Ok(self.shared.locks.iter().map(OwnedFd::try_clone).collect::<Result<_, _>>()?)
    }

    /// Returns whether time stamps prove that the trust check has nothing to do, and the directory still
    /// has its owner's permissions.
    pub(crate) fn is_unchanged(&self) -> bool {
        let is_open = self.directory.owner_has_access().unwrap_or(false);
        let trust = self.trust.get().and_then(|trust| trust.try_lock().ok());
        is_open && trust.is_some_and(|trust| trust.is_unchanged(&self.directory))
    }

    /// Returns the kind of `.git` at the top, which decides what a cell protects of it.
    pub(crate) fn repository(&self) -> GitDirectory {
        let is_directory = |path: &str| {
            let found = self.directory.link_metadata(Path::new(path));
            found.is_ok_and(|metadata| metadata.kind == FileKind::Directory)
        };
        match (is_directory(".git"), is_directory(".git/hooks")) {
            (false, _) => GitDirectory::Absent,
            (true, false) => GitDirectory::WithoutHooks,
            (true, true) => GitDirectory::WithHooks,
        }
    }
}

/// Adds the home to what a watcher counts.
fn counting(watcher: QuotaWatcher, home: Option<&Root>) -> Result<QuotaWatcher, Error> {
    let Some(home) = home else { return Ok(watcher) };
    let home = home.try_clone().map_err(Error::files("could not watch the quota"))?;
    Ok(watcher.with(home))
}

/// Returns the home of a workspace in a root; none if it is its own.
fn home(root: &Path, workspace: &Path, layout: Layout, made: u64) -> Option<HomeDirectory> {
    match layout {
        Layout::Tenant => None,
        Layout::Plain => HomeDirectory::of_workspace(root, workspace, made),
    }
}
