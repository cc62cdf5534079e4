//! Finds the repositories of a workspace by their `.git`.

use std::path::{Path, PathBuf};

use carrel_fsroot::{FileKind, Root, WalkControl};

use crate::error::Error;

/// The most repositories of a workspace that are inspected.
const MAX_REPOSITORIES: usize = 256;

const MAX_POINTER_BYTES: u64 = 4096;

/// A repository with its git directory, or the reason why it cannot be inspected.
pub(super) struct FoundRepository {
    pub(super) path: PathBuf,
    pub(super) git_directory: Result<Root, String>,
}

/// Returns every work tree in the order of paths. Directories that were not searched are listed too, with
/// the reason, so that they count as unsaved work.
pub(super) fn repositories(workspace: &Root) -> Result<Vec<FoundRepository>, Error> {
    let mut entries = Vec::new();
    let mut skipped = Vec::new();
    let walked = workspace.walk(
        Path::new("."),
        |visit| {
            if visit.path.file_name().is_none_or(|name| name != ".git") {
                return Ok(WalkControl::Continue);
            }
            if entries.len() >= MAX_REPOSITORIES {
                return Ok(WalkControl::Stop);
            }
            entries.push(visit.path.to_owned());
            Ok(WalkControl::Skip)
        },
        |error| {
            skipped.push(FoundRepository::skipped(error.path().to_owned(), "it cannot be read"));
            Ok(())
        },
    );
    walked.map_err(Error::files("could not look for repositories"))?;
    if entries.len() >= MAX_REPOSITORIES {
        skipped
            .push(FoundRepository::skipped(PathBuf::from("."), "there are too many repositories"));
    }
    Ok(entries.iter().map(|entry| FoundRepository::at(workspace, entry)).chain(skipped).collect())
}

impl FoundRepository {
    fn at(workspace: &Root, entry: &Path) -> Self {
        let path = entry.parent().filter(|path| !path.as_os_str().is_empty());
        let path = path.unwrap_or(Path::new(".")).to_owned();
        Self { git_directory: git_directory(workspace, &path, entry), path }
    }

    fn skipped(path: PathBuf, reason: &str) -> Self {
        Self { path, git_directory: Err(reason.to_owned()) }
    }
}

fn git_directory(workspace: &Root, path: &Path, entry: &Path) -> Result<Root, String> {
    let text = |error: carrel_fsroot::Error| error.to_string();
    let directory = match workspace.link_metadata(entry).map_err(text)?.kind {
        FileKind::Directory => workspace.open_root(entry).map_err(text)?,
        FileKind::File => {
            workspace.open_root(&pointed_to(workspace, path, entry)?).map_err(text)?
        }
        kind => return Err(format!("its .git is a {kind}")),
    };
    if directory.link_metadata(Path::new("commondir")).is_ok() {
        return Err("it is a work tree of another repository".to_owned());
    }
    Ok(directory)
}

/// Returns the target of a `.git` file, which must be inside the workspace.
fn pointed_to(workspace: &Root, path: &Path, entry: &Path) -> Result<PathBuf, String> {
    let bytes = workspace.read(entry, MAX_POINTER_BYTES).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "its .git is not text")?;
    let target = text.trim_end().strip_prefix("gitdir: ").ok_or("its .git points nowhere")?;
    match Path::new(target).strip_prefix(workspace.path()) {
        Ok(inside) => Ok(inside.to_owned()),
        Err(_) if Path::new(target).is_absolute() => {
            Err("its git directory lies outside the workspace".to_owned())
        }
        Err(_) => Ok(path.join(target)),
    }
}
