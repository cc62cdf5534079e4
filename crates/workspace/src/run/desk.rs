//! A directory that commands work in.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use carrel_fsroot::{FileKind, Root};
use carrel_sandbox::Repository;

use super::error::RunError;
use super::scratch::ScratchHome;
use crate::launch::Workspace;
use crate::quota::{Amount, Quota};
use crate::trust::Trust;

/// A directory that commands work in.
#[derive(Debug)]
pub struct Desk {
    pub(super) directory: Root,
    /// Where scratch directories are made.
    pub(super) scratch_home: ScratchHome,
    /// What no command may see.
    pub(super) hidden: Vec<PathBuf>,
    account: Option<Account>,
    /// What is trusted in it, from before the first command on.
    pub(super) trust: Arc<OnceLock<Mutex<Trust>>>,
    /// The root that it is a workspace of, if it is one.
    root: Option<PathBuf>,
    /// What keeps others from removing it.
    lock: Option<OwnedFd>,
    /// What else keeps others from removing it.
    _workspace: Option<Workspace>,
}

/// A quota, and what was used of it when it was last counted.
#[derive(Clone, Debug)]
struct Account {
    quota: Quota,
    used: Arc<Mutex<Amount>>,
}

impl Desk {
    /// Takes a directory that an operator named. `state` is where Carrel keeps what it remembers.
    pub fn named(path: &Path, state: &Path) -> Result<Self, RunError> {
        let directory = Root::open(path).map_err(RunError::Workspace)?;
        Ok(Self {
            directory,
            scratch_home: ScratchHome::of_state(state),
            hidden: vec![state.to_owned()],
            account: None,
            trust: Arc::default(),
            root: None,
            lock: None,
            _workspace: None,
        })
    }

    /// Takes a workspace that somebody else has locked. `lock` is a share in that lock.
    pub(crate) fn locked(directory: Root, root: &Path, lock: OwnedFd) -> Self {
        Self {
            directory,
            scratch_home: ScratchHome::of_root(root),
            hidden: vec![root.to_owned()],
            account: None,
            trust: Arc::default(),
            root: Some(root.to_owned()),
            lock: Some(lock),
            _workspace: None,
        }
    }

    /// Takes a workspace of a root, which nobody can remove meanwhile. `used` is what it uses now.
    pub fn of(workspace: Workspace, root: &Path, used: Amount) -> Result<Self, RunError> {
        let directory = workspace.files().try_clone().map_err(RunError::Workspace)?;
        let desk = Self::locked(directory, root, workspace.lock_descriptor()?);
        let account = Account { quota: workspace.record().quota, used: Arc::new(Mutex::new(used)) };
        Ok(Self { account: Some(account), _workspace: Some(workspace), ..desk })
    }

    /// Takes a directory in this one, for somebody who is to see no more of it.
    pub fn below(&self, path: &Path) -> Result<Self, RunError> {
        let directory = self.directory.open_root(path).map_err(RunError::Directory)?;
        Ok(Self {
            directory,
            scratch_home: self.scratch_home.clone(),
            hidden: self.hidden.clone(),
            account: self.account.clone(),
            trust: Arc::default(),
            root: self.root.clone(),
            lock: self.lock.as_ref().map(OwnedFd::try_clone).transpose()?,
            _workspace: None,
        })
    }

    /// Remembers what is used now. Commands that begin later may use what that leaves.
    pub fn note_used(&self, used: Amount) {
        if let Some(account) = &self.account {
            *account.used.lock().unwrap_or_else(PoisonError::into_inner) = used;
        }
    }

    /// Returns the quota, if there is one, and what was used of it when it was last counted.
    pub(super) fn quota(&self) -> Option<(Quota, Amount)> {
        let account = self.account.as_ref()?;
        let used = account.used.lock().unwrap_or_else(PoisonError::into_inner);
        Some((account.quota, *used))
    }

    /// Returns where it is, without links.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the root that it is a workspace of, if it is one.
    pub(super) fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Returns the door to its files.
    pub fn files(&self) -> &Root {
        &self.directory
    }

    /// Returns descriptors that a command has to hold as long as anything of it is left.
    pub(super) fn held(&self) -> Result<Vec<OwnedFd>, RunError> {
        Ok(self.lock.as_ref().map(OwnedFd::try_clone).transpose()?.into_iter().collect())
    }

    /// Tells whether a quick look shows that a command has changed nothing that would run later, and
    /// that the directory is open to its owner.
    pub(super) fn is_unchanged(&self) -> bool {
        let is_open = self.directory.is_open().unwrap_or(false);
        let trust = self.trust.get().and_then(|trust| trust.try_lock().ok());
        is_open && trust.is_some_and(|trust| trust.is_unchanged(&self.directory))
    }

    /// Looks what is at the top under the name of a repository.
    pub(super) fn repository(&self) -> Repository {
        let is_directory = |path: &str| {
            let found = self.directory.link_metadata(Path::new(path));
            found.is_ok_and(|metadata| metadata.kind == FileKind::Directory)
        };
        match (is_directory(".git"), is_directory(".git/hooks")) {
            (false, _) => Repository::Absent,
            (true, false) => Repository::WithoutHooks,
            (true, true) => Repository::WithHooks,
        }
    }

    /// Returns a descriptor of the directory.
    pub(super) fn descriptor(&self) -> Result<OwnedFd, RunError> {
        Ok(self.directory.as_fd().try_clone_to_owned()?)
    }
}
