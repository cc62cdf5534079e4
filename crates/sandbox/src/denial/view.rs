//! What a plan shows of the file system, and what can be done with it.

use std::path::{Path, PathBuf};

use carrel_domain::Tier;

use super::normal;
use crate::plan::{Node, Plan, Reach, Source};

/// How many links of the plan are followed for one path.
const MAX_LINKS: usize = 8;

/// Directories that are links into `/usr` on most systems. Landlock knows no links, so the plan of
/// its tier does not list them.
const MERGED: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Programs, libraries and settings of the host.
const SYSTEM: [&str; 4] = ["/usr", "/etc", "/opt", "/nix"];

/// Where a path lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In something that commands may change.
    Writable {
        /// That something.
        top: PathBuf,
    },
    /// In something that they may only read.
    ReadOnly {
        /// That something.
        top: PathBuf,
        /// What it is.
        kind: Kind,
    },
    /// In nothing that the plan shows.
    Hidden,
}

/// What something is that commands may only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The host's own.
    System,
    /// Named by the operator.
    Granted,
    /// The workspace.
    Workspace,
    /// The hooks of its repository.
    Hooks,
    /// Made for the sandbox.
    Made,
}

/// Says where an absolute path lies.
pub(super) fn place(plan: &Plan, path: &Path) -> Place {
    match plan.tier {
        Tier::Full => in_own_root(plan, &normal(path), MAX_LINKS),
        Tier::Landlock => under_rules(plan, &normal(path)),
    }
}

/// Returns whether something is mounted at exactly this path.
pub(super) fn is_mounted(plan: &Plan, path: &Path) -> bool {
    let mounted = |node: &Node| match node {
        Node::Bind { path: at, .. } | Node::Processes(at) | Node::Terminals(at) => at == path,
        Node::Directory(_) | Node::Link { .. } | Node::File { .. } | Node::Copy(_) => false,
    };
    plan.tree.iter().any(mounted)
}

/// What is built last covers what was there.
fn in_own_root(plan: &Plan, path: &Path, links: usize) -> Place {
    let top = plan.tree.iter().rev().find(|node| path.starts_with(node.path()));
    let made = |top: &Path| Place::ReadOnly { top: top.to_owned(), kind: Kind::Made };
    match top {
        None if plan.tree.iter().any(|node| node.path().starts_with(path)) => made(path),
        Some(Node::File { path: top, .. } | Node::Directory(top)) if path == *top => made(top),
        Some(Node::Copy(top)) if path == *top => {
            Place::ReadOnly { top: top.clone(), kind: Kind::System }
        }
        // A file and an empty directory have nothing in them.
        None | Some(Node::File { .. } | Node::Copy(_) | Node::Directory(_)) => Place::Hidden,
        Some(Node::Link { path: link, target }) => {
            let rest = path.strip_prefix(link).unwrap_or(path);
            let above = link.parent().unwrap_or(Path::new("/"));
            let target = normal(&above.join(target).join(rest));
            if links == 0 { Place::Hidden } else { in_own_root(plan, &target, links - 1) }
        }
        Some(Node::Bind { path: top, source, reach }) => match reach {
            Reach::Change | Reach::Device => Place::Writable { top: top.clone() },
            Reach::Read => Place::ReadOnly { top: top.clone(), kind: kind(source, top) },
        },
        Some(Node::Terminals(top)) => Place::Writable { top: top.clone() },
        Some(Node::Processes(top)) => made(top),
    }
}

fn kind(source: &Source, top: &Path) -> Kind {
    match source {
        Source::System(_) => Kind::System,
        Source::Granted(_) => Kind::Granted,
        Source::Scratch(_) => Kind::Made,
        Source::Itself if top.ends_with(".git/hooks") => Kind::Hooks,
        Source::Workspace | Source::Itself | Source::Above => Kind::Workspace,
    }
}

/// Landlock adds up what all rules above a path give.
fn under_rules(plan: &Plan, path: &Path) -> Place {
    let named = |path: &Path| plan.landlock.rules.iter().any(|rule| path.starts_with(&rule.path));
    let merged = MERGED.iter().any(|merged| path.starts_with(merged));
    let path = match path.strip_prefix("/") {
        Ok(rest) if merged && !named(path) => &Path::new("/usr").join(rest),
        _ => path,
    };
    let rules = plan.landlock.rules.iter().filter(|rule| path.starts_with(&rule.path));
    let strength = |reach: Reach| match reach {
        Reach::Read => 0,
        Reach::Device => 1,
        Reach::Change => 2,
    };
    match rules.max_by_key(|rule| (strength(rule.reach), rule.path.as_os_str().len())) {
        None => Place::Hidden,
        Some(rule) => match rule.reach {
            Reach::Change | Reach::Device => Place::Writable { top: rule.path.clone() },
            Reach::Read => {
                let kind = kind_by_path(plan, &rule.path);
                Place::ReadOnly { top: rule.path.clone(), kind }
            }
        },
    }
}

fn kind_by_path(plan: &Plan, top: &Path) -> Kind {
    let is_system = |top: &Path| SYSTEM.iter().chain(&MERGED).any(|system| top.starts_with(system));
    match top {
        top if top == plan.workspace => Kind::Workspace,
        top if top.starts_with(&plan.scratch) || top.starts_with("/proc") => Kind::Made,
        top if is_system(top) => Kind::System,
        _ => Kind::Granted,
    }
}
