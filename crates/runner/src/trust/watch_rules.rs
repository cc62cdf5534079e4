//! The table of watched names: which files the operator's tools would run or obey, and where.
//!
//! A *project directory* is one that an operator may enter or open in an editor: the workspace itself,
//! the directories directly in it, and those in `repos`. Each is watched for a git repository (`.git`,
//! or a bare one, which git obeys in any directory that looks like one) and for the settings of editors
//! and agents. The workspace is also the home directory of its commands, so shell start-up files count
//! there. Deeper directories are not watched.
//!
//! A [`WatchRule`] says how one entry is watched and yields the rules of the entries below it, so that
//! the tables here are the whole definition: `scan` walks them from [`WatchRule::WorkspaceRoot`] down,
//! `preflight` walks them along one path. A [`Role`] says how a change of the entry is judged and named
//! in a report.

use std::ffi::OsStr;
use std::path::Path;

use super::directory_link::is_project_location;

/// The depth below the outermost `modules` from which on a directory is no longer searched for
/// submodules: one named `libs/a` has its git directory in `modules/libs/a`.
///
/// Nested submodules count as a level each, so the further in, the shorter the names that are found.
/// The directory `modules` of a submodule that was found is listed at any depth that a scan reaches.
pub(super) const MAX_MODULE_SEARCH_DEPTH: u8 = 4;

/// The depth of directories below one that is watched as a whole.
pub(super) const MAX_TREE_DEPTH: u8 = 8;

/// The purpose of a watched file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A project directory, or one above it; it runs nothing itself.
    Project,
    /// A program that git runs.
    Hook,
    /// A git configuration, of which the sensitive entries are compared.
    Config,
    /// A git directory, or a file or link that leads to one.
    GitDirectory,
    /// The file `commondir`, which names the directory of configuration and hooks.
    CommonDirectory,
    /// Settings that a tool runs or obeys, with their name in reports.
    Settings(&'static str),
}

impl Role {
    /// Returns the name in reports.
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Project => "directory",
            Self::Hook => "git hook",
            Self::Config => "git config",
            Self::GitDirectory => "git directory",
            Self::CommonDirectory => "git common directory",
            Self::Settings(what) => what,
        }
    }
}

/// The way in which an entry is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchRule {
    WorkspaceRoot {
        /// Set if git takes the directory itself for a bare repository.
        bare: bool,
    },
    Project {
        /// Set if git takes the directory itself for a bare repository.
        bare: bool,
    },
    /// `repos`, the directory of a tenant's repositories.
    Repositories {
        /// Set if git takes the directory itself for a bare repository.
        bare: bool,
    },
    /// `.git`: a directory, a file or a link.
    DotGit,
    /// A git directory, with its depth: the number of submodules and work trees that it is nested in, and
    /// of components in the names of these submodules. It does not grow beyond 255.
    GitDirectory(u8),
    /// `modules`, the directory of the submodules' git directories.
    Modules(u8),
    /// A submodule's git directory, or a directory above one whose name has several components.
    Module(u8),
    /// `worktrees`, the directory of the git directories of linked work trees.
    Worktrees(u8),
    /// A directory of which only these names are watched.
    NamedEntries(&'static Table),
    File(Role),
    /// A file, or a directory with all below it.
    Tree {
        role: Role,
        /// Names directly in it, separated by spaces, that hold a program's state and are not watched.
        except: &'static str,
        /// The depth below the top of the tree; it does not grow beyond 255.
        depth: u8,
    },
}

/// Watched names of a directory. A row has names, separated by spaces, and the rule that they share.
type Table = [(&'static str, WatchRule)];

const AGENT: Role = Role::Settings("agent settings");
const EDITOR: Role = Role::Settings("editor settings");
const SHELL: Role = Role::Settings("shell start-up file");
const SSH: Role = Role::Settings("ssh settings");
const MCP: Role = Role::Settings("MCP servers");
const CONTAINER: Role = Role::Settings("development container");
const DIRENV: Role = Role::Settings("direnv script");
const RECORDS: Role = Role::Settings("records that Carrel would take for its own");

const fn tree(role: Role, except: &'static str) -> WatchRule {
    WatchRule::Tree { role, except, depth: 0 }
}

/// Sessions, caches and logs that agents keep in their directories; nothing runs them.
const AGENT_STATE: &str = "\
    archived_sessions auth.json cache chats debug file-history history.jsonl log logs plans \
    projects sessions statsig tasks telemetry tmp todos worktrees";

/// Names watched in every project directory.
const PROJECT: &Table = &[
    (".git", WatchRule::DotGit),
    (".mcp.json", WatchRule::File(MCP)),
    (".claude .codex .cursor .gemini .opencode", tree(AGENT, AGENT_STATE)),
    ("opencode.json opencode.jsonc", WatchRule::File(AGENT)),
    (".vscode .idea .zed .fleet", tree(EDITOR, "")),
    (".exrc .nvim.lua .nvimrc .vimrc .dir-locals.el .dir-locals-2.el", WatchRule::File(EDITOR)),
    (".devcontainer", tree(CONTAINER, "")),
    (".devcontainer.json", WatchRule::File(CONTAINER)),
    (".envrc", WatchRule::File(DIRENV)),
    (".carrel", tree(RECORDS, "")),
];

/// Names watched in the workspace only, the home directory of its commands.
const TOP: &Table = &[
    ("repos", WatchRule::Repositories { bare: false }),
    (SHELL_FILES, WatchRule::File(SHELL)),
    (".gitconfig", WatchRule::File(Role::Config)),
    (".config", WatchRule::NamedEntries(DOT_CONFIG)),
    (".ssh", WatchRule::NamedEntries(&[("config rc", WatchRule::File(SSH))])),
];

/// Files that a shell, a line editor or a terminal reads when it starts.
const SHELL_FILES: &str = "\
    .bashrc .bash_aliases .bash_login .bash_logout .bash_profile .profile .zshenv .zlogin .zlogout \
    .zprofile .zshrc .cshrc .kshrc .tcshrc .login .inputrc .tmux.conf";

/// Names watched in `.config`.
const DOT_CONFIG: &Table = &[
    ("git", WatchRule::NamedEntries(&[("config", WatchRule::File(Role::Config))])),
    ("fish", WatchRule::NamedEntries(FISH)),
];

const FISH: &Table =
    &[("config.fish", WatchRule::File(SHELL)), ("conf.d functions", tree(SHELL, ""))];

/// Names watched in a git directory. The depth of `modules` and `worktrees` comes from the directory.
const GIT: &Table = &[
    ("config config.worktree", WatchRule::File(Role::Config)),
    ("hooks", tree(Role::Hook, "")),
    ("commondir", WatchRule::File(Role::CommonDirectory)),
    ("modules", WatchRule::Modules(0)),
    ("worktrees", WatchRule::Worktrees(0)),
];

impl WatchRule {
    pub(super) fn role(self) -> Role {
        match self {
            Self::WorkspaceRoot { .. } | Self::Project { .. } | Self::Repositories { .. } => {
                Role::Project
            }
            Self::DotGit
            | Self::GitDirectory(_)
            | Self::Modules(_)
            | Self::Module(_)
            | Self::Worktrees(_) => Role::GitDirectory,
            Self::NamedEntries(_) => Role::Settings("directory of settings"),
            Self::File(role) | Self::Tree { role, .. } => role,
        }
    }

    fn rows(self) -> impl Iterator<Item = &'static (&'static str, Self)> {
        let tables: [&'static Table; 3] = match self {
            Self::WorkspaceRoot { bare: false } => [TOP, PROJECT, &[]],
            Self::WorkspaceRoot { bare: true } => [TOP, PROJECT, GIT],
            Self::Project { bare: false } | Self::Repositories { bare: false } => {
                [PROJECT, &[], &[]]
            }
            Self::Project { bare: true } | Self::Repositories { bare: true } => [PROJECT, GIT, &[]],
            Self::DotGit | Self::GitDirectory(_) | Self::Module(_) => [GIT, &[], &[]],
            Self::NamedEntries(names) => [names, &[], &[]],
            Self::Modules(_) | Self::Worktrees(_) | Self::File(_) | Self::Tree { .. } => [&[]; 3],
        };
        tables.into_iter().flatten()
    }

    /// Returns the names that the tables list for a directory.
    pub(super) fn table_names(self) -> Vec<&'static str> {
        self.rows().flat_map(|(names, _)| names.split_whitespace()).collect()
    }

    /// Returns the rule of a directory's entry. For a name that is in no table, it is the rule under which
    /// the entry would be watched; [`WatchRule::child_if_watched`] decides whether it is.
    ///
    /// `preflight` walks along paths that need not exist, so depths grow with the path and not with the
    /// directories that a scan visits.
    pub(super) fn child(self, name: &OsStr) -> Self {
        let listed = self.rows().find(|(names, _)| is_among(name, names)).map(|(_, rule)| *rule);
        match (self, listed) {
            (Self::GitDirectory(depth) | Self::Module(depth), Some(Self::Modules(_))) => {
                Self::Modules(depth)
            }
            (Self::GitDirectory(depth) | Self::Module(depth), Some(Self::Worktrees(_))) => {
                Self::Worktrees(depth)
            }
            (_, Some(rule)) => rule,
            (
                Self::WorkspaceRoot { .. } | Self::Project { .. } | Self::Repositories { .. },
                None,
            ) => Self::Project { bare: false },
            (Self::DotGit, None) => Self::Module(1),
            (Self::GitDirectory(depth) | Self::Module(depth) | Self::Modules(depth), None) => {
                Self::Module(depth.saturating_add(1))
            }
            (Self::Worktrees(depth), None) => Self::GitDirectory(depth.saturating_add(1)),
            (Self::NamedEntries(_) | Self::File(_), None) => self,
            (Self::Tree { role, depth, .. }, None) => {
                Self::Tree { role, except: "", depth: depth.saturating_add(1) }
            }
        }
    }

    /// Returns whether directories of any name are watched. Of a [`WatchRule::Module`] only those are that
    /// may lie above a submodule.
    pub(super) fn watches_other_directories(self) -> bool {
        matches!(
            self,
            Self::WorkspaceRoot { .. }
                | Self::Repositories { .. }
                | Self::Modules(_)
                | Self::Module(_)
                | Self::Worktrees(_)
        )
    }

    /// Returns the rule of a directory's entry, or `None` for an entry that is not watched.
    pub(super) fn child_if_watched(self, name: &OsStr) -> Option<Self> {
        let is_listed = self.rows().any(|(names, _)| is_among(name, names));
        let is_in_tree = matches!(self, Self::Tree { .. }) && !self.ignores(name);
        let is_watched = is_listed || is_in_tree || self.watches_other_directories();
        is_watched.then(|| self.child(name))
    }

    /// Returns the rule of a path by the tables alone, without references, links and bare repositories;
    /// `None` for a path that is not watched.
    pub(super) fn of_path(path: &Path) -> Option<Self> {
        let top = Self::WorkspaceRoot { bare: false };
        path.iter().try_fold(top, Self::child_if_watched)
    }

    /// Returns whether a directory with another purpose is also a project directory: `.config` and `.ssh`
    /// lie directly in the workspace, `modules` and `worktrees` belong to git only while a bare repository
    /// is around them, and a reference may lead to any project directory.
    pub(super) fn is_also_project(self, path: &Path) -> bool {
        match self {
            Self::WorkspaceRoot { .. } | Self::Project { .. } | Self::Repositories { .. } => false,
            Self::NamedEntries(_) => path.parent() == Some(Path::new("")),
            _ => {
                is_project_location(path)
                    && matches!(Self::of_path(path), Some(Self::Project { .. }))
            }
        }
    }

    /// Returns whether a name in a watched tree is not watched.
    pub(super) fn ignores(self, name: &OsStr) -> bool {
        match self {
            // Git never runs the samples that it puts into every repository.
            Self::Tree { role: Role::Hook, .. } => name.as_encoded_bytes().ends_with(b".sample"),
            Self::Tree { except, .. } => is_among(name, except),
            _ => false,
        }
    }
}

fn is_among(name: &OsStr, names: &str) -> bool {
    names.split_whitespace().any(|watched| watched == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_any_length_has_a_rule() {
        for (start, name) in [
            (WatchRule::Modules(0), "modules"),
            (WatchRule::Modules(0), "a"),
            (WatchRule::Worktrees(0), "worktrees"),
            (tree(AGENT, ""), "a"),
        ] {
            let mut rule = start;
            for _ in 0..600 {
                rule = rule.child_if_watched(OsStr::new(name)).unwrap();
            }
            assert_eq!(rule.role(), start.role());
        }
    }
}
