//! Where the repositories of a workspace are.

use std::path::{Path, PathBuf};

use carrel_fsroot::{FileKind, Root, WalkControl};

use crate::error::Error;

/// How many repositories of one workspace are asked about.
const MAX_REPOSITORIES: usize = 256;

/// Bounds what is read of a `.git` file.
const MAX_POINTER_BYTES: u64 = 4096;

/// A repository, and the directory git keeps it in or the reason why it cannot be asked.
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) git_directory: Result<Root, String>,
}

/// Finds every work tree by its `.git`, in the order of paths. What was not looked
/// at is listed too, with the reason.
pub(super) fn repositories(workspace: &Root) -> Result<Vec<Found>, Error> {
    let mut entries = Vec::new();
    let mut unseen = Vec::new();
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
            unseen.push(Found::unseen(error.path().to_owned(), "it cannot be read"));
            Ok(())
        },
    );
    walked.map_err(Error::files("could not look for repositories"))?;
    if entries.len() >= MAX_REPOSITORIES {
        unseen.push(Found::unseen(PathBuf::from("."), "there are too many repositories"));
    }
    Ok(entries.iter().map(|entry| Found::at(workspace, entry)).chain(unseen).collect())
}

impl Found {
    fn at(workspace: &Root, entry: &Path) -> Self {
        let path = entry.parent().filter(|path| !path.as_os_str().is_empty());
        let path = path.unwrap_or(Path::new(".")).to_owned();
        Self { git_directory: git_directory(workspace, &path, entry), path }
    }

    fn unseen(path: PathBuf, reason: &str) -> Self {
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

/// Reads where a `.git` file points, which must be inside the workspace.
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
