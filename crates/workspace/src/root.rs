//! The root: a directory that holds workspaces, and the server's `.carrel` in it.
//!
//! A root must not be a system directory, a home directory or a git work tree, and no other user may be
//! able to write to it: such a user could replace a workspace while a command starts in it.

use std::path::{Component, Path, PathBuf};

use carrel_domain::WorkspaceKey;
use carrel_fsroot::{Durability, Metadata, Problem, Root};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::fork::FORKS;
use crate::freeze::FROZEN;
use crate::git_state::VIEWS;
use crate::homes::{HOMES, SNAPSHOTS, SYMBOLS};
use crate::json_file;
use crate::kept::KEPT;
use crate::tries::TRIES;

pub(crate) const SCHEMA: u64 = 1;

/// System directories. Neither they nor anything below is a root.
const SYSTEM: [&str; 8] = ["etc", "usr", "bin", "sbin", "boot", "dev", "proc", "sys"];

const OWNER_ONLY: u32 = 0o700;
const SCHEMA_FILE: &str = "root.json";

const PARTS: [&str; 13] = [
    "records", "locks", "trash", KEPT, "logs", "usage", VIEWS, HOMES, SNAPSHOTS, SYMBOLS, FORKS,
    FROZEN, TRIES,
];

#[derive(Debug)]
pub(crate) struct WorkspaceRoot {
    pub(crate) directory: Root,
    pub(crate) own: Root,
    /// A git work tree above the root, which is only warned about.
    pub(crate) enclosing_repository: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct Schema {
    schema: u64,
}

impl WorkspaceRoot {
    /// Opens a root, and creates it for its owner only if it is missing.
    pub(crate) fn open_or_create(path: &Path, home: Option<&Path>) -> Result<Self, Error> {
        let (above, rest) = nearest_existing(path)?;
        let missing = !rest.as_os_str().is_empty();
        let real = if missing { above.path().join(&rest) } else { above.path().to_owned() };
        refuse_reserved(&real, home)?;
        let failed = |error: carrel_fsroot::Error| match error.problem() {
            Problem::Escapes(_) => refused(path, "a symbolic link on the way leads nowhere"),
            _ => Error::files(format!("could not make the root {}", real.display()))(error),
        };
        above.create_directories(&rest, OWNER_ONLY).map_err(failed)?;
        Self::accept(above.open_root(&rest).map_err(failed)?)
    }

    /// Opens a root with a `.carrel`; `None` otherwise. Creates nothing there.
    pub(crate) fn open_existing(path: &Path, home: Option<&Path>) -> Result<Option<Self>, Error> {
        let directory = match Root::open(path) {
            Err(error) if error.is_not_found() => return Ok(None),
            other => other.map_err(Error::files("could not open the root"))?,
        };
        refuse_reserved(directory.path(), home)?;
        match directory.link_metadata(Path::new(WorkspaceKey::RESERVED)) {
            Err(error) if error.is_not_found() => Ok(None),
            _ => Self::accept(directory).map(Some),
        }
    }

    fn accept(directory: Root) -> Result<Self, Error> {
        refuse_unsafe(&directory)?;
        refuse_repository(&directory)?;
        let own = open_own(&directory)?;
        check_schema(&own)?;
        let enclosing_repository = enclosing_repository(directory.path());
        Ok(Self { directory, own, enclosing_repository })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Returns the nearest existing directory above a path, and the missing rest.
fn nearest_existing(path: &Path) -> Result<(Root, PathBuf), Error> {
    let mut missing = Vec::new();
    for ancestor in path.ancestors() {
        match Root::open(ancestor) {
            Ok(root) => return Ok((root, missing.iter().rev().collect())),
            Err(error) if error.is_not_found() => missing.extend(ancestor.file_name()),
            Err(error) => return Err(Error::files("could not open the root")(error)),
        }
    }
    Err(refused(path, "it is not absolute"))
}

fn refused(path: &Path, reason: &str) -> Error {
    Error::RootRefused { path: path.to_owned(), reason: reason.to_owned() }
}

/// Refuses system directories and the home directory. Takes a real path.
fn refuse_reserved(path: &Path, home: Option<&Path>) -> Result<(), Error> {
    let mut names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let Some(first) = names.next() else {
        return Err(refused(path, "it is the top of the file system"));
    };
    let library = first.as_encoded_bytes().starts_with(b"lib");
    if library || SYSTEM.iter().any(|name| first == *name) {
        return Err(refused(path, "it belongs to the system"));
    }
    let is_home = home
        .is_some_and(|home| home == path || Root::open(home).is_ok_and(|home| home.path() == path));
    if is_home {
        return Err(refused(path, "it is the home directory"));
    }
    Ok(())
}

/// Refuses a git work tree. A workspace may be called `.git` too; then it has a record.
fn refuse_repository(directory: &Root) -> Result<(), Error> {
    let exists = |path: &str| directory.link_metadata(Path::new(path)).is_ok();
    if exists(".git") && !exists(".carrel/records/.git.json") {
        return Err(refused(directory.path(), "it is a git work tree"));
    }
    Ok(())
}

/// Refuses a directory that other users can write to.
fn refuse_unsafe(directory: &Root) -> Result<(), Error> {
    let metadata = metadata_of(directory)?;
    match who_else_may_write(&metadata, geteuid().as_raw()) {
        None => Ok(()),
        Some(reason) => Err(Error::RootUnsafe { path: directory.path().to_owned(), reason }),
    }
}

pub(crate) fn metadata_of(directory: &Root) -> Result<Metadata, Error> {
    directory.own_metadata().map_err(Error::files("could not look at the root"))
}

/// Describes the users besides `user` that can change a directory's entries.
pub(crate) fn who_else_may_write(metadata: &Metadata, user: u32) -> Option<String> {
    if metadata.uid != user {
        return Some(format!("it belongs to user {}, not to user {user}", metadata.uid));
    }
    match (metadata.mode & 0o020 != 0, metadata.mode & 0o002 != 0) {
        (_, true) => Some(format!("all users may write to it (mode {:03o})", metadata.mode)),
        (true, _) => Some(format!("its group may write to it (mode {:03o})", metadata.mode)),
        (false, false) => None,
    }
}

fn open_own(directory: &Root) -> Result<Root, Error> {
    let name = Path::new(WorkspaceKey::RESERVED);
    let doing = || format!("could not open {}", directory.path().join(name).display());
    if let Err(error) = directory.link_metadata(name) {
        if !error.is_not_found() {
            return Err(Error::files(doing())(error));
        }
        directory.create_directories(name, OWNER_ONLY).map_err(Error::files(doing()))?;
    }
    let own = directory.open_root_strict(name).map_err(Error::files(doing()))?;
    refuse_unsafe(&own)?;
    for part in PARTS {
        own.create_directories(Path::new(part), OWNER_ONLY).map_err(Error::files(doing()))?;
    }
    Ok(own)
}

/// Checks the schema of the root's records, or writes it into a new root.
fn check_schema(own: &Root) -> Result<(), Error> {
    let file = Path::new(SCHEMA_FILE);
    match json_file::read::<Schema>(own, file)? {
        None => json_file::write(own, file, &Schema { schema: SCHEMA }, Durability::Synced),
        Some(found) => refuse_newer(own, file, found.schema),
    }
}

pub(crate) fn refuse_newer(own: &Root, file: &Path, found: u64) -> Result<(), Error> {
    if found > SCHEMA {
        return Err(Error::SchemaTooNew { path: own.path().join(file), found, supported: SCHEMA });
    }
    Ok(())
}

/// Lists the names in a directory of the server's own, or in the root.
pub(crate) fn names_in(own: &Root, part: &str, doing: &str) -> Result<Vec<String>, Error> {
    let entries = own.list(Path::new(part)).map_err(Error::files(doing))?;
    Ok(entries.iter().map(|entry| entry.name.to_string_lossy().into_owned()).collect())
}

fn enclosing_repository(path: &Path) -> Option<PathBuf> {
    path.ancestors().skip(1).find_map(|ancestor| {
        let root = Root::open(ancestor).ok()?;
        root.link_metadata(Path::new(".git")).ok().map(|_| ancestor.to_owned())
    })
}
