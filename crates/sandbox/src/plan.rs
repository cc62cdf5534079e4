//! What the kernel is asked to enforce, as plain data.
//!
//! A plan follows from a policy and the facts about a machine. It is made in the server, printed,
//! compared and sent; applying it in a helper process leaves nothing to decide.

pub(crate) mod root_tree;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use carrel_domain::{Code, Coded, Network, Tier, WorkspaceAccess, exact_path};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::host::{DEVICES, Host, HostEntryKind};
use crate::landlock::Handled;
use crate::policy::{Owner, Policy};
use crate::seccomp::SeccompFilter;

pub use root_tree::{BindSource, GIT_SETTINGS_TEXT, RootEntry};

/// The user that a command sees itself as where the host's user is another.
const INSIDE: Owner = Owner { user: 1000, group: 1000 };

/// The name of the machine inside its own namespace.
pub(crate) const HOST_NAME: &str = "carrel";

/// Restrictions for the commands of one workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Which walls there are.
    pub tier: Tier,
    /// What can be reached over the network.
    pub network: Network,
    /// The workspace.
    #[serde(with = "exact_path")]
    pub workspace: PathBuf,
    /// The directory that holds `/tmp` and `/dev/shm`.
    #[serde(with = "exact_path")]
    pub scratch: PathBuf,
    /// Who commands run as.
    pub run_as: CommandUser,
    /// The root directory of their own, in the order in which it is built; empty for none.
    pub tree: Vec<RootEntry>,
    /// What files, ports and processes they can reach.
    pub landlock: Landlock,
    /// Which system calls they are refused.
    pub seccomp: SeccompFilter,
}

/// Who commands run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandUser {
    /// The user that Carrel runs as.
    Server(Owner),
    /// The owner of the workspace, who is not the user that Carrel runs as.
    WorkspaceOwner(Owner),
    /// A user of their own, in a namespace. Files of `disk` are theirs inside, and what they make
    /// belongs to `disk` outside.
    Mapped {
        /// The user as commands see it.
        inside: Owner,
        /// The user as the kernel sees it.
        outside: Owner,
        /// The owner of the workspace.
        disk: Owner,
    },
}

/// Landlock's part of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landlock {
    /// The version that it was made for.
    pub version: u32,
    /// What is taken away.
    pub handled: Handled,
    /// What is taken away from the supervisor, so that it can end exactly its own tree.
    pub supervisor: Handled,
    /// What is given back.
    pub rules: Vec<Rule>,
    /// What is given back to the supervisor.
    pub supervised: Vec<Rule>,
}

/// Something that can be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Where it is, with all that is beneath.
    #[serde(with = "exact_path")]
    pub path: PathBuf,
    /// What can be done with it.
    pub access: FileAccess,
}

/// What can be done with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    /// Read and execute.
    Read,
    /// Read, execute, write, make and remove.
    Change,
    /// Read, write and control a device that is there.
    Device,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The workspace is part of the system, or contains it.
    #[error("{path} cannot be a workspace: commands must be able to run what is below {system}")]
    System {
        /// The workspace.
        path: String,
        /// What it has in common with the system.
        system: String,
    },
    /// The path is not absolute.
    #[error("{path} is not an absolute path without links")]
    NotAbsolute {
        /// The path.
        path: String,
    },
    /// A loopback of their own needs a network namespace.
    #[error("network `loopback` needs tier `full`; tier `landlock` has `none` and `full`")]
    Loopback,
    /// In this tier commands would run as the administrator.
    #[error(
        "tier `landlock` runs commands as the owner of {path}, which must not be root; \
         give it away with `chown -R {user}:{user} {path}`, run Carrel as another user, or use tier `full`"
    )]
    OwnedByRoot {
        /// The workspace.
        path: String,
        /// A user that it could belong to.
        user: u32,
    },
    /// A path that commands can see would show what they must not see.
    #[error(
        "commands can see {path} and must not see {hidden}; \
         keep workspaces and Carrel's records elsewhere, or grant less"
    )]
    Reveals {
        /// The path that commands can see.
        path: String,
        /// What must stay hidden.
        hidden: String,
    },
    /// Landlock is not there.
    #[error("tier `landlock` needs Landlock, which this kernel does not offer")]
    NoLandlock,
}

impl Coded for PlanError {
    fn code(&self) -> Code {
        match self {
            Self::System { .. } | Self::NotAbsolute { .. } | Self::Reveals { .. } => {
                Code::InvalidPath
            }
            Self::OwnedByRoot { .. } | Self::Loopback | Self::NoLandlock => {
                Code::SandboxUnavailable
            }
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::System { path, .. }
            | Self::NotAbsolute { path }
            | Self::OwnedByRoot { path, .. }
            | Self::Reveals { path, .. } => json!({ "path": path }),
            Self::Loopback | Self::NoLandlock => json!({}),
        }
    }
}

impl Plan {
    /// Makes the plan for a policy on a machine, in a tier.
    pub fn new(policy: &Policy, host: &Host, tier: Tier) -> Result<Self, PlanError> {
        check(policy, host)?;
        if tier == Tier::Landlock && policy.network == Network::Loopback {
            return Err(PlanError::Loopback);
        }
        if tier == Tier::Landlock && host.landlock == 0 {
            return Err(PlanError::NoLandlock);
        }
        let run_as = command_user(policy, host, tier)?;
        Ok(Self {
            tier,
            network: policy.network,
            workspace: policy.workspace.clone(),
            scratch: policy.scratch.clone(),
            run_as,
            tree: match tier {
                Tier::Full => root_tree::own_root(policy, host, run_as),
                Tier::Landlock => Vec::new(),
            },
            landlock: landlock(policy, host, tier),
            seccomp: SeccompFilter::standard(tier, policy.network),
        })
    }

    /// Leaves out the filter if it is the usual one, which is most of a plan, for whoever knows to
    /// complete it.
    #[must_use]
    pub fn without_standard_filter(mut self) -> Self {
        if self.seccomp == SeccompFilter::standard(self.tier, self.network) {
            self.seccomp.rules.clear();
        }
        self
    }

    /// Puts in the usual filter if there is none. There is no plan that is meant to have none.
    #[must_use]
    pub fn with_standard_filter(mut self) -> Self {
        if self.seccomp.rules.is_empty() {
            self.seccomp = SeccompFilter::standard(self.tier, self.network);
        }
        self
    }

    /// Returns the path that stands for the directory of temporary files.
    pub fn temporary(&self) -> PathBuf {
        match self.tier {
            Tier::Full => "/tmp".into(),
            Tier::Landlock => self.scratch.join("tmp"),
        }
    }

    /// Returns where git finds its settings for all repositories.
    pub fn git_settings(&self) -> PathBuf {
        match self.tier {
            Tier::Full => root_tree::GIT_SETTINGS.into(),
            Tier::Landlock => self.scratch.join("gitconfig"),
        }
    }
}

/// Refuses a workspace that overlaps with what every command must be able to read.
fn check(policy: &Policy, host: &Host) -> Result<(), PlanError> {
    for path in [&policy.workspace, &policy.scratch] {
        if !path.is_absolute() || path.components().any(|part| part.as_os_str() == "..") {
            return Err(PlanError::NotAbsolute { path: path.display().to_string() });
        }
    }
    let system = host.system.iter().map(|entry| entry.path.as_path());
    let fixed = ["/etc", "/dev", "/proc", "/sys", "/tmp", "/var", "/run"].map(Path::new);
    for system in system.chain(fixed) {
        if system.starts_with(&policy.workspace) {
            return Err(PlanError::System {
                path: policy.workspace.display().to_string(),
                system: system.display().to_string(),
            });
        }
    }
    check_hidden(policy, host)
}

/// Refuses to show what must stay hidden, whoever would show it.
fn check_hidden(policy: &Policy, host: &Host) -> Result<(), PlanError> {
    let granted = policy.readable.iter().chain(&policy.writable);
    if let Some(hidden) = policy.hidden.iter().find(|path| path.starts_with(&policy.workspace)) {
        let (path, hidden) = (policy.workspace.display().to_string(), hidden.display().to_string());
        return Err(PlanError::Reveals { path, hidden });
    }
    let directories = host.system.iter().filter(|visible| visible.kind == HostEntryKind::Directory);
    for path in granted.chain(directories.map(|visible| &visible.path)) {
        let shows = |hidden: &&PathBuf| hidden.starts_with(path) || path.starts_with(hidden);
        if let Some(hidden) = policy.hidden.iter().find(shows) {
            let (path, hidden) = (path.display().to_string(), hidden.display().to_string());
            return Err(PlanError::Reveals { path, hidden });
        }
    }
    Ok(())
}

/// Decides who commands run as: never the administrator, who owns half of the host and could change
/// modes there even without any right that others lack.
fn command_user(policy: &Policy, host: &Host, tier: Tier) -> Result<CommandUser, PlanError> {
    if !host.is_root() {
        return Ok(CommandUser::Server(host.server));
    }
    let user = policy.users.first + scatter(&policy.workspace) % policy.users.count.max(1);
    match tier {
        Tier::Full => {
            let outside = Owner { user, group: user };
            Ok(CommandUser::Mapped { inside: INSIDE, outside, disk: policy.owner })
        }
        Tier::Landlock if policy.owner.user != 0 => Ok(CommandUser::WorkspaceOwner(policy.owner)),
        Tier::Landlock => {
            Err(PlanError::OwnedByRoot { path: policy.workspace.display().to_string(), user })
        }
    }
}

/// Spreads paths evenly over numbers (FNV-1a). Two workspaces on one number share nothing but some
/// limits that the kernel counts by user.
fn scatter(path: &Path) -> u32 {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str()
        .as_bytes()
        .iter()
        .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

fn landlock(policy: &Policy, host: &Host, tier: Tier) -> Landlock {
    let version = host.landlock;
    let rules = match tier {
        Tier::Full => rules_of_own_root(policy),
        Tier::Landlock => rules_of_host(policy, host),
    };
    Landlock {
        version,
        handled: Handled::everything(version, policy.network == Network::None),
        supervisor: match tier {
            Tier::Full => Handled::default(),
            Tier::Landlock => Handled::signals(version),
        },
        rules,
        supervised: match tier {
            Tier::Full => Vec::new(),
            Tier::Landlock => vec![Rule { path: "/".into(), access: FileAccess::Change }],
        },
    }
}

/// In a root of their own commands may read whatever there is; it was chosen.
fn rules_of_own_root(policy: &Policy) -> Vec<Rule> {
    let mut rules = vec![read("/")];
    rules.extend(own(policy, "/tmp".into()));
    rules.push(Rule { path: "/dev/shm".into(), access: FileAccess::Change });
    rules.push(Rule { path: "/var/tmp".into(), access: FileAccess::Change });
    rules.push(Rule { path: "/dev/pts".into(), access: FileAccess::Device });
    rules.extend(devices());
    rules
}

fn rules_of_host(policy: &Policy, host: &Host) -> Vec<Rule> {
    let resolver = host.resolver.iter().filter(|_| policy.network == Network::Full);
    let entries = host.system.iter().chain(&host.name_files).chain(resolver);
    let mut rules: Vec<Rule> = entries
        .filter(|entry| !matches!(entry.kind, HostEntryKind::Link(_)))
        .map(|entry| read(&entry.path))
        .collect();
    rules.push(read("/proc"));
    rules.extend(policy.readable.iter().map(read));
    rules.extend(own(policy, policy.scratch.join("tmp")));
    rules.push(read(policy.scratch.join("gitconfig")));
    rules.extend(devices());
    rules
}

/// The rules for what belongs to the workspace.
fn own(policy: &Policy, temporary: PathBuf) -> Vec<Rule> {
    let access = match policy.access {
        WorkspaceAccess::ReadWrite => FileAccess::Change,
        WorkspaceAccess::ReadOnly => FileAccess::Read,
    };
    let mut rules = vec![
        Rule { path: policy.workspace.clone(), access },
        Rule { path: temporary, access: FileAccess::Change },
    ];
    let writable = policy.writable.iter().cloned();
    rules.extend(writable.map(|path| Rule { path, access: FileAccess::Change }));
    rules
}

fn devices() -> impl Iterator<Item = Rule> {
    DEVICES
        .into_iter()
        .map(|name| Rule { path: Path::new("/dev").join(name), access: FileAccess::Device })
}

fn read(path: impl AsRef<Path>) -> Rule {
    Rule { path: path.as_ref().to_owned(), access: FileAccess::Read }
}
