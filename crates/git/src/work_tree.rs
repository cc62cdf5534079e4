//! The work tree that a directory belongs to, and the configurations that apply there.

use std::path::{Path, PathBuf};

use carrel_domain::{Code, Failure};
use carrel_fsroot::{FileKind, Problem, Root, WalkControl, WalkEntry};

use crate::repository_config::{MAX_CONFIG_BYTES, is_default_config};

/// The work tree of a repository in the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkTree {
    /// Its top directory, relative to the workspace.
    pub top: PathBuf,
    /// The configuration holds only settings that git writes itself, so it need not be listed.
    pub has_default_config: bool,
    /// Configuration files of submodules, relative to the workspace.
    pub submodule_configs: Vec<PathBuf>,
}

/// Bounds the time and the arguments of the listing of submodules' settings.
const MAX_SUBMODULES: usize = 256;

/// A larger `.gitmodules` is ignored.
const MAX_GITMODULES_BYTES: u64 = 1024 * 1024;

impl WorkTree {
    /// Finds the innermost work tree that holds a directory of the workspace. Repositories above the
    /// workspace are not found.
    pub fn find(files: &Root, directory: &Path) -> Result<Self, Failure> {
        for top in directory.ancestors() {
            let git_directory = top.join(".git");
            let Ok(metadata) = files.metadata(&git_directory) else { continue };
            let has_default_config = match metadata.kind {
                FileKind::Directory => check_default_config(files, &git_directory),
                // A submodule or a linked work tree: its configuration is in another directory.
                FileKind::File => false,
                _ => continue,
            };
            let submodule_configs = submodule_configs(files, top)?;
            return Ok(Self { top: top.to_owned(), has_default_config, submodule_configs });
        }
        Err(not_a_repository(directory))
    }
}

fn not_a_repository(directory: &Path) -> Failure {
    let shown = if directory.as_os_str().is_empty() { "." } else { &directory.to_string_lossy() };
    let message = format!(
        "not a git repository: {shown}, and nothing above it in the workspace; set `cwd` to a directory \
         of a repository, clone one, or run `git init` with Bash"
    );
    Failure::new(Code::GitRefused, message).with("directory", shown)
}

/// Finds configurations of submodules: below `.git/modules`, and in submodules with a `.git` directory of
/// their own.
fn submodule_configs(files: &Root, top: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let modules = top.join(".git/modules");
    if is_directory(files, &modules) {
        let visit = |visit: &WalkEntry<'_>| {
            let name = visit.path.file_name().unwrap_or_default();
            if found.len() >= MAX_SUBMODULES {
                return Ok(WalkControl::Stop);
            }
            if name == "objects" || name == "refs" || name == "logs" {
                return Ok(WalkControl::Skip);
            }
            if name == "config" && visit.kind == FileKind::File {
                found.push(modules.join(visit.path));
            }
            Ok(WalkControl::Continue)
        };
        files.walk(&modules, visit, |_| Ok(()))?;
    }
    let list = files.read(&top.join(".gitmodules"), MAX_GITMODULES_BYTES).unwrap_or_default();
    let list = String::from_utf8_lossy(&list);
    let paths = list
        .lines()
        .filter_map(|line| line.trim().strip_prefix("path")?.trim_start().strip_prefix('='));
    for path in paths.map(str::trim).take(MAX_SUBMODULES) {
        let config = top.join(path).join(".git/config");
        if files.metadata(&config).is_ok_and(|found| found.kind == FileKind::File) {
            found.push(config);
        }
    }
    Ok(found)
}

fn check_default_config(files: &Root, git_directory: &Path) -> bool {
    let missing = |name: &str| {
        let found = files.link_metadata(&git_directory.join(name));
        found.is_err_and(|error| error.problem() == Problem::NotFound)
    };
    // `commondir` points git to the configuration of another directory.
    missing("commondir")
        && files
            .read(&git_directory.join("config"), MAX_CONFIG_BYTES)
            .is_ok_and(|config| is_default_config(&config))
}

/// Refuses a clone into a directory that is not empty, into the workspace itself or into a `.git`
/// directory.
pub fn check_clone_destination(files: &Root, destination: &Path) -> Result<(), Failure> {
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

/// Tells whether a path, relative to the workspace, is a directory.
pub fn is_directory(files: &Root, path: &Path) -> bool {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    files.metadata(path).is_ok_and(|found| found.kind == FileKind::Directory)
}
