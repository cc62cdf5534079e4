//! Where the repositories of a workspace are.

use std::path::{Path, PathBuf};

use carrel_fsroot::{FileKind, Root, Step};

use crate::error::Error;

/// How deep below the top of a workspace repositories are looked for.
const MAX_DEPTH: usize = 5;

/// How many repositories of one workspace are asked about.
const MAX_REPOSITORIES: usize = 64;

/// Bounds what is read of a `.git` file.
const MAX_POINTER_BYTES: u64 = 4096;

/// A repository, and the directory git keeps it in or the reason why it cannot be asked.
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) git_directory: Result<Root, String>,
}

/// Finds every work tree by its `.git`, in the order of paths.
pub(super) fn repositories(workspace: &Root) -> Result<Vec<Found>, Error> {
    let mut found = Vec::new();
    workspace
        .walk(
            Path::new("."),
            |visit| {
                let depth = visit.path.components().count();
                if visit.path.file_name().is_some_and(|name| name == ".git") {
                    found.push(visit.path.to_owned());
                    return Ok(if found.len() < MAX_REPOSITORIES {
                        Step::Skip
                    } else {
                        Step::Stop
                    });
                }
                Ok(if depth > MAX_DEPTH { Step::Skip } else { Step::Continue })
            },
            // What cannot be read cannot be asked about either.
            |_| Ok(()),
        )
        .map_err(Error::files("could not look for repositories"))?;
    let repositories = found.iter().map(|entry| {
        let path = entry.parent().filter(|path| !path.as_os_str().is_empty());
        let path = path.unwrap_or(Path::new(".")).to_owned();
        Found { git_directory: git_directory(workspace, &path, entry), path }
    });
    Ok(repositories.collect())
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
