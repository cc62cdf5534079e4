//! Home directories of commands.
//!
//! Programs keep caches and settings below `$HOME`. In a work tree they would turn up in `git status`, and
//! `git add -A` would commit them. So a workspace that is a work tree has a home beside it, kept between its
//! commands and counted towards its quota; only the layout `tenant`, whose repositories lie below its top, has
//! its top as home.
//!
//! | workspace | home | removed |
//! |---|---|---|
//! | in a root | `<root>/.carrel/homes/KEY` | with the workspace |
//! | a directory that an operator named | `homes/HASH` in the state directory | after the directory is gone |
//! | in a root, tier `landlock` of a server that runs as root | the same, since other users cannot pass `.carrel` | the same |
//!
//! A home in the state directory has a file `HASH.path` beside it, which names its workspace. Whenever a new
//! one is made, those are deleted whose workspace no longer exists. A crash between the two leaves a home
//! without such a file, which is kept.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use carrel_domain::hex;
use carrel_fsroot::{Durability, FileKind, Root, WriteOptions};
use carrel_sandbox::Owner;
use carrel_workspace::Error;
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::error::RunError;
use crate::scratch_directory::give;
use crate::server_directory::{OWN_MODE, ServerDirectory, ServerPart, open_or_create};

/// The length of the hash in the name of a home.
const HASH_BYTES: usize = 16;

/// The extension of the file that names the workspace of a home.
const PATH_EXTENSION: &str = "path";

/// The longest path that is read from such a file.
const MAX_PATH_BYTES: u64 = 4096;

/// Directories that programs make in their home. In a work tree they stem from a Carrel whose commands had the
/// tree as their home.
const CACHES: [&str; 6] =
    [".npm", ".cache", ".m2/repository", ".cargo/registry", ".local/share", "go/pkg/mod"];

/// The home directory of a workspace's commands, which need not exist yet.
#[derive(Clone, Debug)]
pub(crate) struct HomeDirectory {
    server: ServerDirectory,
    name: PathBuf,
    workspace: PathBuf,
    /// Tells workspaces apart that were made one after the other at the same path.
    generation: u64,
    /// Has a file beside it that names the workspace.
    is_named: bool,
}

impl HomeDirectory {
    /// Returns the home of a workspace in a root; none for the top of the file system.
    pub(crate) fn of_workspace(root: &Path, workspace: &Path, generation: u64) -> Option<Self> {
        let name = workspace.file_name()?.into();
        let server = ServerDirectory::of_root(root);
        let workspace = workspace.to_owned();
        Some(Self { server, name, workspace, generation, is_named: false })
    }

    /// Returns the home of a directory that an operator named.
    pub(crate) fn of_directory(state: &Path, directory: &Path) -> Self {
        Self::in_state(state, directory, 0)
    }

    /// Returns a home of the same workspace that other users can reach.
    #[must_use]
    pub(crate) fn moved_to(&self, state: &Path) -> Self {
        Self::in_state(state, &self.workspace, self.generation)
    }

    fn in_state(state: &Path, workspace: &Path, generation: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update(workspace.as_os_str().as_bytes());
        hash.update(generation.to_le_bytes());
        let name = hex::encode(&hash.finalize()[..HASH_BYTES]).into();
        let server = ServerDirectory::of_state(state);
        let workspace = workspace.to_owned();
        Self { server, name, workspace, generation, is_named: true }
    }

    /// Opens the directory. If it is missing, it is created for the owner of the workspace's tree, and a warning
    /// names caches in that tree.
    pub(crate) fn open(&self, tree: &Root) -> Result<Root, RunError> {
        let homes = self.server.open(ServerPart::Homes)?;
        let failed = || Error::files("could not make the home directory of the workspace");
        let (home, is_new) = open_or_create(&homes, &self.name, OWN_MODE).map_err(failed())?;
        if is_new {
            give(home.path(), other_owner(tree)?)?;
            warn_of_caches_in(tree);
            if self.is_named {
                delete_stale(&homes);
                let options =
                    WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
                let path = self.workspace.as_os_str().as_bytes();
                let file = self.name.with_extension(PATH_EXTENSION);
                homes.write(&file, path, options).map_err(failed())?;
            }
        }
        Ok(home)
    }
}

/// Returns the owner of a tree if that may be another user than Carrel's.
fn other_owner(tree: &Root) -> Result<Option<Owner>, RunError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let top = tree.own_metadata().map_err(RunError::Workspace)?;
    Ok(Some(Owner { user: top.uid, group: top.gid }))
}

/// Deletes the homes of workspaces that no longer exist.
fn delete_stale(homes: &Root) {
    let Ok(entries) = homes.list(Path::new(".")) else { return };
    for entry in entries {
        let file = Path::new(&entry.name);
        if file.extension() != Some(OsStr::new(PATH_EXTENSION)) {
            continue;
        }
        let Ok(path) = homes.read_strict(file, MAX_PATH_BYTES) else { continue };
        let workspace = PathBuf::from(std::ffi::OsString::from_vec(path));
        if !matches!(rustix::fs::lstat(&workspace), Err(rustix::io::Errno::NOENT)) {
            continue;
        }
        let removed = homes.remove_tree(&file.with_extension(""));
        if let Err(error) = removed.and_then(|()| homes.remove_file(file)) {
            warn!(%error, "could not remove the home of a workspace that is gone");
        }
    }
}

fn warn_of_caches_in(tree: &Root) {
    let is_there = |name: &&str| {
        let found = tree.link_metadata(Path::new(name));
        found.is_ok_and(|found| found.kind == FileKind::Directory)
    };
    let found: Vec<_> = CACHES.into_iter().filter(is_there).collect();
    if !found.is_empty() {
        let workspace = tree.path().display();
        warn!(%workspace, ?found, "commands have a home of their own now; delete caches in the tree if they are not yours");
    }
}
