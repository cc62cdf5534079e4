//! Which repository a call is about.

use std::path::{Path, PathBuf};

use carrel_domain::Code;
use carrel_fsroot::{FileKind, Problem, Root, WalkControl, WalkEntry};

use super::settings::{MAX_CONFIG_BYTES, is_plain};
use crate::failure::Failure;

/// A repository of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repository {
    /// The top of its work tree, relative to the workspace.
    pub(super) top: PathBuf,
    /// Its configuration holds nothing that has to be looked up.
    pub(super) plain: bool,
    /// Configurations of its submodules, relative to the workspace.
    pub(super) modules: Vec<PathBuf>,
}

/// More submodules than this are not looked at.
const MAX_MODULES: usize = 256;

/// A larger list of submodules is not read.
const MAX_LIST_BYTES: u64 = 1024 * 1024;

/// Finds the work tree that a directory lies in.
pub(super) fn find(files: &Root, directory: &Path) -> Result<Repository, Failure> {
    for top in directory.ancestors() {
        let entry = top.join(".git");
        let Ok(found) = files.metadata(&entry) else { continue };
        let plain = match found.kind {
            FileKind::Directory => has_plain_settings(files, &entry),
            // A submodule, or one of several work trees: its configuration is elsewhere.
            FileKind::File => false,
            _ => continue,
        };
        return Ok(Repository { top: top.to_owned(), plain, modules: modules(files, top)? });
    }
    let shown = if directory.as_os_str().is_empty() { "." } else { &directory.to_string_lossy() };
    let message = format!(
        "not a git repository: {shown}, and nothing above it in the workspace; set `cwd` to a directory \
         of a repository, clone one, or run `git init` with Bash"
    );
    Err(Failure::new(Code::GitRefused, message).with("directory", shown))
}

/// Finds the configurations of submodules: below `.git/modules`, and in work trees that hold their
/// own.
fn modules(files: &Root, top: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let kept = top.join(".git/modules");
    if is_directory(files, &kept) {
        let visit = |visit: &WalkEntry<'_>| {
            let name = visit.path.file_name().unwrap_or_default();
            match () {
                () if found.len() >= MAX_MODULES => return Ok(WalkControl::Stop),
                () if name == "objects" || name == "refs" || name == "logs" => {
                    return Ok(WalkControl::Skip);
                }
                () if name == "config" && visit.kind == FileKind::File => {
                    found.push(kept.join(visit.path));
                }
                () => {}
            }
            Ok(WalkControl::Continue)
        };
        files.walk(&kept, visit, |_| Ok(()))?;
    }
    let list = files.read(&top.join(".gitmodules"), MAX_LIST_BYTES).unwrap_or_default();
    let list = String::from_utf8_lossy(&list);
    let paths = list
        .lines()
        .filter_map(|line| line.trim().strip_prefix("path")?.trim_start().strip_prefix('='));
    for path in paths.map(str::trim).take(MAX_MODULES) {
        let config = top.join(path).join(".git/config");
        if files.metadata(&config).is_ok_and(|found| found.kind == FileKind::File) {
            found.push(config);
        }
    }
    Ok(found)
}

fn has_plain_settings(files: &Root, git_directory: &Path) -> bool {
    let missing = |name: &str| {
        let found = files.link_metadata(&git_directory.join(name));
        found.is_err_and(|error| error.problem() == Problem::NotFound)
    };
    // These lead git to another configuration.
    missing("commondir")
        && files
            .read(&git_directory.join("config"), MAX_CONFIG_BYTES)
            .is_ok_and(|config| is_plain(&config))
}

/// Refuses a place for a copy where something is already.
pub(super) fn check_free(files: &Root, destination: &Path) -> Result<(), Failure> {
    let shown = destination.to_string_lossy();
    let taken = |what: &str| {
        let message =
            format!("git clone: {shown} {what}; name another directory as the second argument");
        Failure::new(Code::GitRefused, message).with("destination", shown.as_ref())
    };
    if destination.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git")) {
        return Err(taken("lies in a repository's own directory"));
    }
    if destination.as_os_str().is_empty() {
        return Err(taken("is the workspace itself"));
    }
    match files.list_at_most(destination, 0) {
        Err(error) if error.problem() == Problem::NotFound => Ok(()),
        Err(error) if error.problem() == Problem::NotADirectory => Err(taken("is a file")),
        Err(error) => Err(error.into()),
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(taken("exists and is not empty")),
    }
}

/// Tells whether a directory of the workspace is there.
pub(super) fn is_directory(files: &Root, path: &Path) -> bool {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    files.metadata(path).is_ok_and(|found| found.kind == FileKind::Directory)
}
