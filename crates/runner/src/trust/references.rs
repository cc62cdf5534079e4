//! Files that trusted files lead to: they run later as well.
//!
//! A hooks directory named by `core.hooksPath`, an included configuration, the git
//! directory behind a `.git` file, what a link points to. Only what was *trusted* is
//! followed, and only inside the workspace, by the names in it: where a command's
//! own entry leads does not matter, because the entry itself is a change.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::git_config_diff::Config;
use super::scan::Extra;
use super::snapshot::{Node, State, Tree};
use super::watch_rules::{Role, Watch};

/// How many such files are watched.
const MAX_EXTRAS: usize = 64;

/// Lists what trusted entries lead to. `top` is where the workspace is.
pub(super) fn extras(top: &Path, trusted: &Tree) -> Vec<Extra> {
    let mut extras: Vec<Extra> = Vec::new();
    for (path, node) in trusted {
        for (path, watch) in led_to(top, path, node) {
            let listed = extras.iter().any(|(listed, _)| *listed == path);
            // A repository that is watched for itself stays watched as one.
            let known = trusted
                .get(&path)
                .is_some_and(|node| node.watch.role() == Role::GitDirectory && node.watch != watch);
            if extras.len() < MAX_EXTRAS && !listed && !known {
                extras.push((path, watch));
            }
        }
    }
    extras
}

fn led_to(top: &Path, path: &Path, node: &Node) -> Vec<Extra> {
    let directory = path.parent().unwrap_or(Path::new(""));
    match (&node.state, node.watch) {
        (State::Link(target), watch) => {
            inside(top, directory, target).map(|path| (path, watch)).into_iter().collect()
        }
        (State::File { bytes, .. }, Watch::File(Role::Config)) => {
            from_config(top, path, directory, bytes)
        }
        (State::File { bytes, .. }, Watch::DotGit) => {
            git_directory(top, directory, bytes).into_iter().collect()
        }
        (State::File { bytes, .. }, Watch::File(Role::CommonDirectory)) => {
            let target = Path::new(OsStr::from_bytes(bytes.trim_ascii_end()));
            let path = inside(top, directory, target);
            path.map(|path| (path, Watch::GitDirectory(0))).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn from_config(top: &Path, path: &Path, directory: &Path, bytes: &[u8]) -> Vec<Extra> {
    let Ok(config) = Config::read(bytes, depth_of(path)) else { return Vec::new() };
    let is_include = |key: &[u8]| {
        key == b"include.path" || (key.starts_with(b"includeif.") && key.ends_with(b".path"))
    };
    let read = |value: &[u8], base: &Path| inside(top, base, Path::new(OsStr::from_bytes(value)));
    let includes = config
        .values(is_include)
        .into_iter()
        .filter_map(|value| read(value, directory).map(|path| (path, Watch::File(Role::Config))));
    let hooks = Watch::Tree { role: Role::Hook, except: &[], depth: 0 };
    let hooks = config
        .values(|key| key == b"core.hookspath")
        .into_iter()
        .filter_map(|value| read(value, work_tree(directory)).map(|path| (path, hooks)));
    includes.chain(hooks).collect()
}

/// Where the hooks of a repository run: beside `.git`, or in a bare repository itself.
fn work_tree(directory: &Path) -> &Path {
    let git = directory.ancestors().find(|above| above.file_name() == Some(OsStr::new(".git")));
    git.and_then(Path::parent).unwrap_or(directory)
}

/// Reads where a `.git` file points.
pub(super) fn git_directory(top: &Path, directory: &Path, bytes: &[u8]) -> Option<Extra> {
    let target = bytes.strip_prefix(b"gitdir: ")?.trim_ascii_end();
    let path = inside(top, directory, Path::new(OsStr::from_bytes(target)))?;
    Some((path, Watch::GitDirectory(0)))
}

/// Turns a path that stands in a file of `directory` into one from the workspace, by
/// its names alone; `None` if it leads outside, to the workspace itself, or home.
pub(super) fn inside(top: &Path, directory: &Path, target: &Path) -> Option<PathBuf> {
    let joined = match target.strip_prefix(top) {
        Ok(below) if !top.as_os_str().is_empty() => below.to_owned(),
        _ if target.is_absolute() || target.starts_with("~") => return None,
        _ => directory.join(target),
    };
    let mut path = PathBuf::new();
    for component in joined.components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::ParentDir if path.pop() => {}
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!path.as_os_str().is_empty()).then_some(path)
}

/// How many names below the workspace the directory of a file lies.
pub(super) fn depth_of(path: &Path) -> usize {
    path.components().count().saturating_sub(1)
}
