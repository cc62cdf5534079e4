//! Files that trusted files refer to, which run later as well.
//!
//! A hooks directory named by `core.hooksPath`, an included configuration, the git directory behind a
//! `.git` file, the target of a link. References are resolved by their names alone, without asking the
//! file system, and only inside the workspace. Only *trusted* entries are followed: where an entry that
//! a command wrote refers to does not matter, because the entry itself is a difference.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::git_config_diff::Config;
use super::scan::Reference;
use super::snapshot::{EntryState, Snapshot, WatchedEntry};
use super::watch_rules::{Role, WatchRule};

/// The most referenced files that are watched. Further ones are not, and no report says so: `unchecked`
/// would make every command of such a workspace fail under the policy `restore`.
const MAX_REFERENCES: usize = 64;

/// Lists the references of all trusted entries. `top` is the absolute path of the workspace.
///
/// Those of settings come last, because a new repository may bring any number of links along, and
/// `known` ones before others, so that none is displaced by what commands add.
pub(super) fn find(top: &Path, trusted: &Snapshot, known: &[Reference]) -> Vec<Reference> {
    let mut found: Vec<((bool, usize), Reference)> = Vec::new();
    for (path, entry) in trusted {
        let is_settings = matches!(entry.rule.role(), Role::Settings(_));
        for reference in references_of(top, path, entry) {
            let position = known.iter().position(|known| *known == reference);
            found.push(((is_settings, position.unwrap_or(usize::MAX)), reference));
        }
    }
    found.sort_by_key(|(rank, _)| *rank);
    let mut references: Vec<Reference> = Vec::new();
    for (_, (path, rule)) in found {
        let is_duplicate = references.iter().any(|(watched, _)| *watched == path);
        let keeps_rule = keeps_own_rule(trusted, &path, rule);
        if references.len() < MAX_REFERENCES && !is_duplicate && !keeps_rule {
            references.push((path, rule));
        }
    }
    references
}

/// Returns whether a path is watched by its own rule although a reference with another one leads to it:
/// a repository, and what the tables list if the reference is a link among settings. New repositories
/// bring such links along, and with the rule of an editor's settings `repos` would be too large to watch.
/// Project directories can be watched by both rules.
fn keeps_own_rule(trusted: &Snapshot, path: &Path, rule: WatchRule) -> bool {
    let is_repository =
        |entry: &WatchedEntry| entry.rule.role() == Role::GitDirectory && entry.rule != rule;
    let is_listed = || {
        let own = WatchRule::of_path(path);
        own.is_some_and(|own| !matches!(own, WatchRule::Project { .. }))
    };
    trusted.get(path).is_some_and(is_repository)
        || (matches!(rule.role(), Role::Settings(_)) && is_listed())
}

fn references_of(top: &Path, path: &Path, entry: &WatchedEntry) -> Vec<Reference> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let found = match (&entry.state, entry.rule) {
        (EntryState::File { bytes, .. }, WatchRule::File(Role::Config)) => {
            return from_config(top, path, directory, bytes);
        }
        (EntryState::Link(target), rule) => inside(top, directory, target).map(|path| (path, rule)),
        (EntryState::File { bytes, .. }, WatchRule::DotGit) => git_directory(top, directory, bytes),
        (EntryState::File { bytes, .. }, WatchRule::File(Role::CommonDirectory)) => {
            let target = Path::new(OsStr::from_bytes(bytes.trim_ascii_end()));
            inside(top, directory, target).map(|path| (path, WatchRule::GitDirectory(0)))
        }
        _ => None,
    };
    found.into_iter().collect()
}

fn from_config(top: &Path, path: &Path, directory: &Path, bytes: &[u8]) -> Vec<Reference> {
    let Ok(config) = Config::read(bytes, depth_of(path)) else { return Vec::new() };
    let is_include = |key: &[u8]| {
        key == b"include.path" || (key.starts_with(b"includeif.") && key.ends_with(b".path"))
    };
    let read = |value: &[u8], base: &Path| inside(top, base, Path::new(OsStr::from_bytes(value)));
    let includes = config.values(is_include).into_iter().filter_map(|value| {
        read(value, directory).map(|path| (path, WatchRule::File(Role::Config)))
    });
    let hooks = WatchRule::Tree { role: Role::Hook, except: "", depth: 0 };
    let hooks = config
        .values(|key| key == b"core.hookspath")
        .into_iter()
        .filter_map(|value| read(value, work_tree(directory)).map(|path| (path, hooks)));
    includes.chain(hooks).collect()
}

/// Returns the directory that a relative `core.hooksPath` starts from: the one that holds `.git`, or a
/// bare repository itself.
fn work_tree(directory: &Path) -> &Path {
    let git = directory.ancestors().find(|above| above.file_name() == Some(OsStr::new(".git")));
    git.and_then(Path::parent).unwrap_or(directory)
}

/// Returns the git directory that a `.git` file names.
pub(super) fn git_directory(top: &Path, directory: &Path, bytes: &[u8]) -> Option<Reference> {
    let target = bytes.strip_prefix(b"gitdir: ")?.trim_ascii_end();
    let path = inside(top, directory, Path::new(OsStr::from_bytes(target)))?;
    Some((path, WatchRule::GitDirectory(0)))
}

/// Resolves a path found in a file of `directory`, by its names alone, to one relative to the
/// workspace; `None` for paths outside, the workspace itself, and `~`.
pub(super) fn inside(top: &Path, directory: &Path, target: &Path) -> Option<PathBuf> {
    let joined = match target.strip_prefix(top) {
        Ok(below) if !top.as_os_str().is_empty() => below.to_owned(),
        _ if target.is_absolute() || target.starts_with("~") => return None,
        _ => directory.join(target),
    };
    extended(PathBuf::new(), joined.components()).filter(|path| !path.as_os_str().is_empty())
}

/// Adds components to a path by their names alone; `None` if they leave the workspace.
pub(super) fn extended<'a>(
    mut path: PathBuf,
    components: impl Iterator<Item = Component<'a>>,
) -> Option<PathBuf> {
    for component in components {
        match component {
            Component::Normal(name) => path.push(name),
            Component::ParentDir if path.pop() => {}
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// Returns the depth of a file's directory below the workspace.
pub(super) fn depth_of(path: &Path) -> usize {
    path.components().count().saturating_sub(1)
}
