//! Where deleted files go.
//!
//! It is a directory of the workspace itself: a rename into it always works and takes no time, what
//! is in it counts against the same quota, and whoever deleted something can put it back.

use std::path::{Path, PathBuf};

use carrel_domain::{Clock as _, SystemClock};
use carrel_fsroot::{Collision, Root, WriteOptions};

use crate::failure::Failure;

/// The name of the directory.
pub(crate) const TRASH: &str = ".carrel-trash";

/// How many deletions are kept. The oldest are removed for good.
const MAX_KEPT: usize = 200;

const DIRECTORY_MODE: u32 = 0o700;

/// Moves something into the trash, and returns where it is now.
pub(super) fn discard(files: &Root, path: &Path) -> Result<PathBuf, Failure> {
    prepare(files)?;
    let directory = new_place(files)?;
    let name = path.file_name().map_or_else(|| "unnamed".into(), std::borrow::ToOwned::to_owned);
    let target = directory.join(name);
    if let Err(error) = files.rename(path, &target, Collision::Refuse) {
        // Nobody else knows the directory yet.
        let _ = files.remove_directory(&directory);
        return Err(error.into());
    }
    forget(files);
    Ok(target)
}

/// Tells whether a path is the trash or lies in it.
pub(super) fn is_inside(path: &Path) -> bool {
    let mut names = path.components().filter(|one| *one != std::path::Component::CurDir);
    names.next().is_some_and(|first| first.as_os_str() == TRASH)
}

/// Makes the trash, which no repository shows.
fn prepare(files: &Root) -> Result<(), Failure> {
    if files.link_metadata(Path::new(TRASH)).is_ok() {
        return Ok(());
    }
    files.create_directories(Path::new(TRASH), DIRECTORY_MODE)?;
    let ignore = Path::new(TRASH).join(".gitignore");
    Ok(files.write(&ignore, b"*\n", WriteOptions::default())?)
}

/// Makes a directory whose name sorts by time.
fn new_place(files: &Root) -> Result<PathBuf, Failure> {
    let now = SystemClock.now().as_millis();
    let mut number = 0;
    loop {
        let directory = Path::new(TRASH).join(format!("{now:013}-{number:03}"));
        match files.create_directory(&directory, DIRECTORY_MODE) {
            Err(error) if error.problem() == carrel_fsroot::Problem::Exists && number < 999 => {
                number += 1;
            }
            made => return made.map(|()| directory).map_err(Failure::from),
        }
    }
}

/// Removes what was deleted longest ago. What cannot be removed now is tried again next time.
fn forget(files: &Root) {
    let Ok(mut entries) = files.list(Path::new(TRASH)) else { return };
    entries.retain(|entry| entry.kind == carrel_fsroot::FileKind::Directory);
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    let surplus = entries.len().saturating_sub(MAX_KEPT);
    for entry in &entries[..surplus] {
        let _ = files.remove_tree(&Path::new(TRASH).join(&entry.name));
    }
}
