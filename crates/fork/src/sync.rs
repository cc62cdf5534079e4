//! Waiting until files and directories would survive a power loss.

use std::path::{Path, PathBuf};

use carrel_fsroot::{Error, FileKind, Problem, Root};

use crate::tree;

/// The threads that wait for syncs.
const THREADS: usize = 16;

/// Beyond this number the whole file system is synced, with what other programs wrote to it.
const MAX_SINGLE: usize = 1024;

/// Syncs files and directories of a tree. Missing ones are left out.
pub(crate) fn sync(root: &Root, paths: &[PathBuf]) -> Result<(), Error> {
    if paths.len() > MAX_SINGLE {
        return root.sync_file_system();
    }
    let is_denied = |result: &Result<(), Error>| {
        result.as_ref().is_err_and(|error| error.problem() == Problem::PermissionDenied)
    };
    let results = at_once(paths, |path| sync_one(root, path));
    if results.iter().any(is_denied) {
        // A file that its owner may not open can be synced with the rest only.
        return root.sync_file_system();
    }
    results.into_iter().collect()
}

fn sync_one(root: &Root, path: &Path) -> Result<(), Error> {
    sync_entry(root, path).map_err(|error| error.at(path))
}

fn sync_entry(root: &Root, path: &Path) -> Result<(), Error> {
    let directory = match tree::open(root, tree::parent(path)) {
        Err(error) if tree::is_gone(&error) => return Ok(()),
        opened => opened?,
    };
    if path.as_os_str().is_empty() {
        return directory.sync_directory(Path::new("."));
    }
    let name = tree::name(path);
    match tree::metadata(&directory, name)?.map(|found| found.kind) {
        Some(FileKind::File) => {
            let file = directory.open_entry_file(name)?;
            file.sync_all().map_err(|error| Error::of_io(path, error))
        }
        Some(FileKind::Directory) => directory.enter(name)?.sync_directory(Path::new(".")),
        _ => Ok(()),
    }
}

/// Does two things at the same time.
pub(crate) fn sync_together(
    one: impl FnOnce() -> Result<(), Error> + Send,
    other: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        match one.join() {
            Ok(one) => one.and(other),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Does something for several items on a few threads: syncs that wait at the same time share a commit of the file
/// system's journal and a flush of the disk.
fn at_once<T: Sync>(
    items: &[T],
    act: impl Fn(&T) -> Result<(), Error> + Sync,
) -> Vec<Result<(), Error>> {
    if items.len() <= 1 {
        return items.iter().map(act).collect();
    }
    let share = items.len().div_ceil(THREADS);
    let act = &act;
    std::thread::scope(|scope| {
        let threads: Vec<_> = items
            .chunks(share)
            .map(|items| scope.spawn(move || items.iter().map(act).collect::<Vec<_>>()))
            .collect();
        let results = threads.into_iter().flat_map(|thread| match thread.join() {
            Ok(results) => results,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.collect()
    })
}
