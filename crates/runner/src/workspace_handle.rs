//! A directory that commands work in.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use carrel_domain::sync;
use carrel_fsroot::{FileKind, Root};
use carrel_sandbox::GitDirectory;

use crate::error::RunError;
use crate::quota_watcher::{Overrun, QuotaWatcher};
use crate::reservation::Reservation;
use crate::scratch_directory::ScratchHome;
use crate::trust::TrustBaseline;
use crate::write_lock::{WriteGuard, WriteLock};
use carrel_workspace::Error;
use carrel_workspace::Workspace;
use carrel_workspace::{Amount, Quota};

/// A directory that commands work in.
#[derive(Debug)]
pub struct WorkspaceHandle {
    pub(crate) directory: Root,
    /// Where scratch directories are made.
    pub(crate) scratch_home: ScratchHome,
    /// What no command may see.
    pub(crate) hidden: Vec<PathBuf>,
    quota: Option<Quota>,
    /// What it used when somebody last looked.
    used: Arc<Mutex<Amount>>,
    /// Knows what the quota leaves for single files.
    room: Option<Arc<Mutex<QuotaWatcher>>>,
    /// Lets one writer of files in at a time.
    write_lock: Arc<WriteLock>,
    /// What is trusted in it, from before the first command on.
    pub(crate) trust: Arc<OnceLock<Mutex<TrustBaseline>>>,
    /// The root that it is a workspace of, if it is one.
    root: Option<PathBuf>,
    /// What keeps others from removing it.
    lock: Option<OwnedFd>,
    /// What else keeps others from removing it.
    _workspace: Option<Arc<Workspace>>,
}

impl WorkspaceHandle {
    /// Takes a directory that an operator named. `state` is where Carrel keeps what it remembers.
    pub fn for_directory(path: &Path, state: &Path) -> Result<Self, RunError> {
        let directory = Root::open(path).map_err(RunError::Workspace)?;
        let scratch_home = ScratchHome::of_state(state);
        Ok(Self {
            directory,
            write_lock: Arc::new(WriteLock::new(scratch_home.of_writers())),
            scratch_home,
            hidden: vec![state.to_owned()],
            quota: None,
            used: Arc::default(),
            room: None,
            trust: Arc::default(),
            root: None,
            lock: None,
            _workspace: None,
        })
    }

    /// Takes a workspace that somebody else has locked. `lock` is a share in that lock.
    pub(crate) fn locked(directory: Root, root: &Path, lock: OwnedFd) -> Self {
        let scratch_home = ScratchHome::of_root(root);
        Self {
            directory,
            write_lock: Arc::new(WriteLock::new(scratch_home.of_writers())),
            scratch_home,
            hidden: vec![root.to_owned()],
            quota: None,
            used: Arc::default(),
            room: None,
            trust: Arc::default(),
            root: Some(root.to_owned()),
            lock: Some(lock),
            _workspace: None,
        }
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
        let handle = Self::locked(directory, workspace.root(), workspace.lock_descriptor()?);
        let quota = workspace.record().quota;
        let watcher = Arc::new(Mutex::new(QuotaWatcher::new(same, quota, used)?));
        let (quota, used) = (Some(quota), Arc::new(Mutex::new(used)));
        Ok(Self { quota, used, room: Some(watcher), _workspace: Some(workspace), ..handle })
    }

    /// Takes a directory in this one, for somebody who is to see no more of it.
    pub fn subdirectory(&self, path: &Path) -> Result<Self, RunError> {
        let directory = self.directory.open_root(path).map_err(RunError::Directory)?;
        Ok(Self {
            directory,
            scratch_home: self.scratch_home.clone(),
            write_lock: Arc::clone(&self.write_lock),
            hidden: self.hidden.clone(),
            quota: self.quota,
            used: Arc::clone(&self.used),
            room: self.room.clone(),
            trust: Arc::default(),
            root: self.root.clone(),
            lock: self.lock.as_ref().map(OwnedFd::try_clone).transpose()?,
            _workspace: None,
        })
    }

    /// Returns where it is, without links.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the root that it is a workspace of, if it is one.
    pub(crate) fn workspace_root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Returns the door to its files.
    pub fn files(&self) -> &Root {
        &self.directory
    }

    /// Waits until nobody else writes files here through Carrel, in this process or another, for a
    /// bounded time.
    pub fn lock_for_writing(&self) -> Result<WriteGuard<'_>, Error> {
        self.write_lock.take(&self.directory)
    }

    /// Returns what lets one writer in at a time.
    pub fn write_lock(&self) -> &WriteLock {
        &self.write_lock
    }

    /// Returns the most that it may take up, if there is such a limit.
    pub fn quota(&self) -> Option<Quota> {
        self.quota
    }

    /// Returns what tells whether it grows beyond its quota, if it has one.
    pub fn quota_watcher(&self) -> Result<Option<QuotaWatcher>, Error> {
        let Some((quota, used)) = self.quota_and_use() else { return Ok(None) };
        let directory = self.directory.try_clone().map_err(Error::files("could not watch"))?;
        QuotaWatcher::new(directory, quota, used).map(Some)
    }

    /// Says what it uses, because somebody has looked.
    pub fn set_used(&self, used: Amount) {
        *sync::lock(&self.used) = used;
    }

    /// Returns what it used when somebody last looked.
    pub fn used(&self) -> Amount {
        *sync::lock(&self.used)
    }

    /// Returns the most that it may take up and what it does, if there is such a limit.
    pub(crate) fn quota_and_use(&self) -> Option<(Quota, Amount)> {
        let used = *sync::lock(&self.used);
        self.quota.map(|quota| (quota, used))
    }

    /// Says that a command writes, or has written.
    pub(crate) fn expect_changes(&self) {
        if let Some(room) = &self.room {
            sync::lock(room).expect_changes();
        }
    }

    /// Refuses to write so much more than the quota leaves. It may have to count what there is.
    pub fn check_room(&self, more: Amount) -> Result<(), Error> {
        self.look_for_room(more, QuotaWatcher::room_for)
    }

    /// Does the same for what is written later, and sets the room aside until then.
    pub fn reserve(&self, more: Amount) -> Result<Reservation, Error> {
        self.look_for_room(more, QuotaWatcher::reserve)?;
        Ok(Reservation { room: self.room.clone(), left: more })
    }

    fn look_for_room(
        &self,
        more: Amount,
        look: fn(&mut QuotaWatcher, Amount) -> Result<Option<Overrun>, Error>,
    ) -> Result<(), Error> {
        let Some(room) = self.room.as_ref().filter(|_| more != Amount::default()) else {
            return Ok(());
        };
        let found = look(&mut sync::lock(room), more)?;
        let Some(Overrun { exceeded, .. }) = found else { return Ok(()) };
        let key = self.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        Err(Error::QuotaExceeded {
            key,
            used: exceeded.used,
            limit: exceeded.limit,
            used_bytes: exceeded.bytes,
        })
    }

    /// Returns descriptors that a command has to hold as long as anything of it is left.
    pub(crate) fn held(&self) -> Result<Vec<OwnedFd>, RunError> {
        Ok(self.lock.as_ref().map(OwnedFd::try_clone).transpose()?.into_iter().collect())
    }

    /// Tells whether a quick look shows that a command has changed nothing that would run later, and
    /// that the directory is open to its owner.
    pub(crate) fn is_unchanged(&self) -> bool {
        let is_open = self.directory.is_open().unwrap_or(false);
        let trust = self.trust.get().and_then(|trust| trust.try_lock().ok());
        is_open && trust.is_some_and(|trust| trust.is_unchanged(&self.directory))
    }

    /// Looks what is at the top under the name of a repository.
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

    /// Returns a descriptor of the directory.
    pub(crate) fn descriptor(&self) -> Result<OwnedFd, RunError> {
        Ok(self.directory.as_fd().try_clone_to_owned()?)
    }
}
