//! What is looked at, and where.
//!
//! A *place* is a directory that an operator may enter or open: the workspace itself,
//! the directories directly in it, and those in `repos`. Each place is looked at for
//! a repository (`.git`, or a bare one, which git obeys in any directory) and for the
//! settings of editors and agents. The workspace is the home directory of sandboxed
//! commands, so shell start-up files count there. Repositories deeper in the tree are
//! not looked at.

use std::ffi::OsStr;
use std::path::Path;

/// How deep a repository's submodules are followed.
pub(super) const MAX_MODULE_DEPTH: u8 = 4;

/// How deep a watched directory is followed.
pub(super) const MAX_TREE_DEPTH: u8 = 8;

/// What a watched file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A directory that is only passed through.
    Place,
    /// A file that git runs.
    Hook,
    /// A git configuration, of which some entries count.
    Config,
    /// A git directory, or a file or link that leads to one.
    GitDirectory,
    /// The file that names the directory of configuration and hooks.
    CommonDirectory,
    /// Settings that some tool runs or obeys, in these words.
    Settings(&'static str),
}

impl Role {
    /// Returns the words for a report.
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Place => "directory",
            Self::Hook => "git hook",
            Self::Config => "git config",
            Self::GitDirectory => "git directory",
            Self::CommonDirectory => "git common directory",
            Self::Settings(what) => what,
        }
    }
}

/// How an entry is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    /// The workspace.
    Top {
        /// Whether git takes the directory itself for a repository.
        bare: bool,
    },
    /// A directory in which a repository may be.
    Place {
        /// Whether git takes the directory itself for a repository.
        bare: bool,
    },
    /// The directory of a tenant's repositories.
    Repositories,
    /// `.git`: a directory, a file or a link.
    DotGit,
    /// A git directory, so many submodules deep.
    GitDirectory(u8),
    /// The directory of the git directories of submodules.
    Modules(u8),
    /// A git directory of a submodule, or a part of the name of one.
    Module(u8),
    /// The directory of the git directories of other work trees.
    Worktrees(u8),
    /// A directory of which only some names count.
    Names(&'static [(&'static str, Watch)]),
    /// One file.
    File(Role),
    /// A file or a directory with all below it.
    Tree {
        /// What its files are.
        role: Role,
        /// Names directly in it that hold a program's state.
        except: &'static [&'static str],
        /// How many directories below the watched one.
        depth: u8,
    },
}

const AGENT: Role = Role::Settings("agent settings");
const EDITOR: Role = Role::Settings("editor settings");
const SHELL: Role = Role::Settings("shell start-up file");
const SSH: Role = Role::Settings("ssh settings");
const MCP: Role = Role::Settings("MCP servers");
const CONTAINER: Role = Role::Settings("development container");
const DIRENV: Role = Role::Settings("direnv script");
const RECORDS: Role = Role::Settings("records that Carrel would take for its own");

const fn tree(role: Role, except: &'static [&'static str]) -> Watch {
    Watch::Tree { role, except, depth: 0 }
}

/// Sessions, caches and logs that agents keep in their directories; nothing runs them.
const AGENT_STATE: &[&str] = &[
    "archived_sessions",
    "auth.json",
    "cache",
    "chats",
    "debug",
    "file-history",
    "history.jsonl",
    "log",
    "logs",
    "plans",
    "projects",
    "sessions",
    "statsig",
    "tasks",
    "telemetry",
    "tmp",
    "todos",
    "worktrees",
];

/// Names that count in every place.
const PLACE: &[(&str, Watch)] = &[
    (".git", Watch::DotGit),
    (".mcp.json", Watch::File(MCP)),
    (".claude", tree(AGENT, AGENT_STATE)),
    (".codex", tree(AGENT, AGENT_STATE)),
    (".cursor", tree(AGENT, AGENT_STATE)),
    (".gemini", tree(AGENT, AGENT_STATE)),
    (".opencode", tree(AGENT, AGENT_STATE)),
    ("opencode.json", Watch::File(AGENT)),
    ("opencode.jsonc", Watch::File(AGENT)),
    (".vscode", tree(EDITOR, &[])),
    (".idea", tree(EDITOR, &[])),
    (".zed", tree(EDITOR, &[])),
    (".fleet", tree(EDITOR, &[])),
    (".exrc", Watch::File(EDITOR)),
    (".nvim.lua", Watch::File(EDITOR)),
    (".nvimrc", Watch::File(EDITOR)),
    (".vimrc", Watch::File(EDITOR)),
    (".dir-locals.el", Watch::File(EDITOR)),
    (".dir-locals-2.el", Watch::File(EDITOR)),
    (".devcontainer", tree(CONTAINER, &[])),
    (".devcontainer.json", Watch::File(CONTAINER)),
    (".envrc", Watch::File(DIRENV)),
    (".carrel", tree(RECORDS, &[])),
];

/// Names that count in the workspace itself, the home directory of its commands.
const TOP: &[(&str, Watch)] = &[
    ("repos", Watch::Repositories),
    (".bashrc", Watch::File(SHELL)),
    (".bash_aliases", Watch::File(SHELL)),
    (".bash_login", Watch::File(SHELL)),
    (".bash_logout", Watch::File(SHELL)),
    (".bash_profile", Watch::File(SHELL)),
    (".profile", Watch::File(SHELL)),
    (".zshenv", Watch::File(SHELL)),
    (".zlogin", Watch::File(SHELL)),
    (".zlogout", Watch::File(SHELL)),
    (".zprofile", Watch::File(SHELL)),
    (".zshrc", Watch::File(SHELL)),
    (".cshrc", Watch::File(SHELL)),
    (".kshrc", Watch::File(SHELL)),
    (".tcshrc", Watch::File(SHELL)),
    (".login", Watch::File(SHELL)),
    (".inputrc", Watch::File(SHELL)),
    (".tmux.conf", Watch::File(SHELL)),
    (".gitconfig", Watch::File(Role::Config)),
    (".config", Watch::Names(CONFIG)),
    (".ssh", Watch::Names(&[("config", Watch::File(SSH)), ("rc", Watch::File(SSH))])),
];

const CONFIG: &[(&str, Watch)] = &[
    ("git", Watch::Names(&[("config", Watch::File(Role::Config))])),
    (
        "fish",
        Watch::Names(&[
            ("config.fish", Watch::File(SHELL)),
            ("conf.d", tree(SHELL, &[])),
            ("functions", tree(SHELL, &[])),
        ]),
    ),
];

/// Names in a git directory, `modules` and `worktrees` aside.
const GIT: &[(&str, Watch)] = &[
    ("config", Watch::File(Role::Config)),
    ("config.worktree", Watch::File(Role::Config)),
    ("hooks", tree(Role::Hook, &[])),
    ("commondir", Watch::File(Role::CommonDirectory)),
    ("modules", Watch::Modules(0)),
    ("worktrees", Watch::Worktrees(0)),
];

impl Watch {
    /// Returns what the entry itself is.
    pub(super) fn role(self) -> Role {
        match self {
            Self::Top { .. } | Self::Place { .. } | Self::Repositories => Role::Place,
            Self::DotGit
            | Self::GitDirectory(_)
            | Self::Modules(_)
            | Self::Module(_)
            | Self::Worktrees(_) => Role::GitDirectory,
            Self::Names(_) => Role::Settings("directory of settings"),
            Self::File(role) | Self::Tree { role, .. } => role,
        }
    }

    /// Returns the names to look for in a directory, whatever else is in it.
    pub(super) fn names(self) -> Vec<&'static str> {
        let tables: &[&[(&str, Self)]] = match self {
            Self::Top { bare: false } => &[TOP, PLACE],
            Self::Top { bare: true } => &[TOP, PLACE, GIT],
            Self::Place { bare: false } | Self::Repositories => &[PLACE],
            Self::Place { bare: true } => &[PLACE, GIT],
            Self::DotGit | Self::GitDirectory(_) | Self::Module(_) => &[GIT],
            Self::Names(names) => &[names],
            Self::Modules(_) | Self::Worktrees(_) | Self::File(_) | Self::Tree { .. } => &[],
        };
        tables.iter().flat_map(|table| table.iter().map(|(name, _)| *name)).collect()
    }

    /// Returns how an entry of a directory is looked at.
    pub(super) fn child(self, name: &OsStr) -> Self {
        let find = |table: &'static [(&'static str, Self)]| {
            table.iter().find(|(listed, _)| *listed == name).map(|(_, watch)| *watch)
        };
        let place = Self::Place { bare: false };
        match self {
            Self::Top { bare } => find(TOP)
                .or_else(|| find(PLACE))
                .or_else(|| find(GIT).filter(|_| bare))
                .unwrap_or(place),
            Self::Place { bare } => {
                find(PLACE).or_else(|| find(GIT).filter(|_| bare)).unwrap_or(place)
            }
            Self::Repositories => find(PLACE).unwrap_or(place),
            Self::DotGit => Self::GitDirectory(0).child(name),
            Self::GitDirectory(depth) | Self::Module(depth) => match find(GIT) {
                Some(Self::Modules(_)) => Self::Modules(depth),
                Some(Self::Worktrees(_)) => Self::Worktrees(depth),
                Some(watch) => watch,
                None => Self::Module(depth + 1),
            },
            Self::Modules(depth) => Self::Module(depth + 1),
            Self::Worktrees(depth) => Self::GitDirectory(depth + 1),
            Self::Names(names) => find(names).unwrap_or(self),
            Self::File(_) => self,
            Self::Tree { role, depth, .. } => Self::Tree { role, except: &[], depth: depth + 1 },
        }
    }

    /// Returns how an entry of a directory is looked at, if it is.
    pub(super) fn looks_at(self, name: &OsStr) -> Option<Self> {
        let is_named = self.names().iter().any(|listed| *listed == name);
        let finds_more = match self {
            Self::Top { .. }
            | Self::Repositories
            | Self::Modules(_)
            | Self::Module(_)
            | Self::Worktrees(_) => true,
            Self::Tree { .. } => !self.leaves_out(name),
            Self::Place { .. }
            | Self::DotGit
            | Self::GitDirectory(_)
            | Self::Names(_)
            | Self::File(_) => false,
        };
        (is_named || finds_more).then(|| self.child(name))
    }

    /// Tells whether a directory of settings is a place as well, because of where it is.
    pub(super) fn is_also_place(self, path: &Path) -> bool {
        matches!(self, Self::Names(_)) && path.parent() == Some(Path::new(""))
    }

    /// Returns how a place is looked at that is known in two ways.
    pub(super) fn or_repositories(self, other: Self) -> Self {
        if other == Self::Repositories { other } else { self }
    }

    /// Tells whether an entry of a watched tree is left out.
    pub(super) fn leaves_out(self, name: &OsStr) -> bool {
        match self {
            // Git never runs the samples that it puts into every repository.
            Self::Tree { role: Role::Hook, .. } => name.as_encoded_bytes().ends_with(b".sample"),
            Self::Tree { except, .. } => except.iter().any(|state| *state == name),
            _ => false,
        }
    }
}
