//! Visibility of a path under a plan: writable, read-only or hidden.

use std::path::{Path, PathBuf};

use carrel_domain::Tier;

use super::normal;
use crate::plan::{BindSource, FileAccess, Plan, RootEntry};

/// The most links of the plan that are followed for one path.
const MAX_LINKS: usize = 8;

/// Directories that are links into `/usr` on most systems. Landlock rules apply to their targets, so a
/// plan of tier `landlock` does not list them.
const MERGED: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

const SYSTEM: [&str; 4] = ["/usr", "/etc", "/opt", "/nix"];

/// The access of commands to a path, with the mount or rule that decides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Visibility {
    Writable { top: PathBuf },
    ReadOnly { top: PathBuf, kind: ReadOnlyKind },
    Hidden,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOnlyKind {
    System,
    /// Granted by the operator.
    Granted,
    Workspace,
    /// The git hooks of the workspace.
    Hooks,
    /// Created by Carrel for the sandbox.
    Generated,
}

/// Returns the visibility of an absolute path.
pub(super) fn visibility(plan: &Plan, path: &Path) -> Visibility {
    match plan.tier {
        Tier::Full => in_own_root(plan, &normal(path), MAX_LINKS),
        Tier::Landlock => under_rules(plan, &normal(path)),
    }
}

/// Returns whether this path is a mount point.
pub(super) fn is_mounted(plan: &Plan, path: &Path) -> bool {
    let mounted = |entry: &RootEntry| {
        matches!(entry, RootEntry::Bind { .. } | RootEntry::Proc(_) | RootEntry::DevPts(_))
    };
    plan.tree.iter().any(|entry| mounted(entry) && entry.path() == path)
}

/// Decides by the last entry of the tree that contains the path, because later mounts cover earlier ones.
fn in_own_root(plan: &Plan, path: &Path, links: usize) -> Visibility {
    let top = plan.tree.iter().rev().find(|entry| path.starts_with(entry.path()));
    let made =
        |top: &Path| Visibility::ReadOnly { top: top.to_owned(), kind: ReadOnlyKind::Generated };
    match top {
        None if plan.tree.iter().any(|entry| entry.path().starts_with(path)) => made(path),
        Some(RootEntry::File { path: top, .. } | RootEntry::Directory(top)) if path == *top => {
            made(top)
        }
        Some(RootEntry::Copy(top)) if path == *top => {
            Visibility::ReadOnly { top: top.clone(), kind: ReadOnlyKind::System }
        }
        // A file and an empty directory have nothing in them.
        None | Some(RootEntry::File { .. } | RootEntry::Copy(_) | RootEntry::Directory(_)) => {
            Visibility::Hidden
        }
        Some(RootEntry::Link { path: link, target }) => {
            let rest = path.strip_prefix(link).unwrap_or(path);
            let above = link.parent().unwrap_or(Path::new("/"));
            let target = normal(&above.join(target).join(rest));
            if links == 0 { Visibility::Hidden } else { in_own_root(plan, &target, links - 1) }
        }
        Some(RootEntry::Bind { path: top, source, access }) => match access {
            FileAccess::Change | FileAccess::Device => Visibility::Writable { top: top.clone() },
            FileAccess::Read => Visibility::ReadOnly { top: top.clone(), kind: kind(source, top) },
        },
        Some(RootEntry::DevPts(top)) => Visibility::Writable { top: top.clone() },
        Some(RootEntry::Proc(top)) => made(top),
    }
}

fn kind(source: &BindSource, top: &Path) -> ReadOnlyKind {
    match source {
        BindSource::System(_) => ReadOnlyKind::System,
        BindSource::Granted(_) => ReadOnlyKind::Granted,
        BindSource::Scratch(_) => ReadOnlyKind::Generated,
        BindSource::InPlace if top.ends_with(".git/hooks") => ReadOnlyKind::Hooks,
        BindSource::Workspace
        | BindSource::Overlay
        | BindSource::InPlace
        | BindSource::Ancestor => ReadOnlyKind::Workspace,
    }
}

/// Landlock adds up what all rules above a path give.
fn under_rules(plan: &Plan, path: &Path) -> Visibility {
    let named = |path: &Path| plan.landlock.rules.iter().any(|rule| path.starts_with(&rule.path));
    let merged = MERGED.iter().any(|merged| path.starts_with(merged));
    let path = match path.strip_prefix("/") {
        Ok(rest) if merged && !named(path) => &Path::new("/usr").join(rest),
        _ => path,
    };
    let rules = plan.landlock.rules.iter().filter(|rule| path.starts_with(&rule.path));
    let strength = |access: FileAccess| match access {
        FileAccess::Read => 0,
        FileAccess::Device => 1,
        FileAccess::Change => 2,
    };
    match rules.max_by_key(|rule| (strength(rule.access), rule.path.as_os_str().len())) {
        None => Visibility::Hidden,
        Some(rule) => match rule.access {
            FileAccess::Change | FileAccess::Device => {
                Visibility::Writable { top: rule.path.clone() }
            }
            FileAccess::Read => {
                let kind = kind_by_path(plan, &rule.path);
                Visibility::ReadOnly { top: rule.path.clone(), kind }
            }
        },
    }
}

fn kind_by_path(plan: &Plan, top: &Path) -> ReadOnlyKind {
    let is_system = |top: &Path| SYSTEM.iter().chain(&MERGED).any(|system| top.starts_with(system));
    match top {
        top if top == plan.workspace => ReadOnlyKind::Workspace,
        top if top.starts_with(&plan.scratch) || top.starts_with("/proc") => {
            ReadOnlyKind::Generated
        }
        top if is_system(top) => ReadOnlyKind::System,
        _ => ReadOnlyKind::Granted,
    }
}
