//! The plan: every kernel restriction of a workspace's commands, as plain data.
//!
//! [`Plan::new`] is a pure function of a policy, the facts about a host and a tier. It runs in the server
//! and decides everything: the user, the entries of the root directory, the Landlock rules and the seccomp
//! filter. The plan is then sent to the process that becomes a [`Cell`](crate::Cell), which applies it
//! without further decisions. So the whole sandbox can be snapshot-tested, printed, compared, and read by
//! [`guarantees`](crate::guarantees) and [`explain_denials`](crate::explain_denials), which never look at
//! the host.
//!
//! A policy that cannot be enforced has no plan. In particular, no plan shows a hidden path, has a
//! workspace that contains system directories, or runs commands as root: there is no weaker plan to fall
//! back to within a tier. Falling back from tier `full` to tier `landlock` is the caller's decision.
//!
//! The tiers differ in mechanism. In tier `full` commands get a root directory of their own
//! ([`Plan::tree`]) and Landlock is the second layer, with few rules. In tier `landlock` they see the host's
//! tree, and the rules list each system path that they may read.
//!
//! ```text
//! Policy { workspace: /srv/w/ABC-1, network: none, .. } + Host + Tier::Full
//!   -> run_as   Mapped { inside: 1000, outside: 2000012345, disk: 0 }
//!      tree     /usr read, /etc/ssl/certs read, /tmp change (scratch), /srv/w/ABC-1 change, ..
//!      landlock handle every right of the ABI; read /, change /srv/w/ABC-1, /tmp, ..
//!      seccomp  SeccompFilter::standard(full, none)
//! ```

pub(crate) mod root_tree;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use carrel_domain::{Code, Coded, Network, Tier, WorkspaceAccess, exact_path};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::host::{DEVICES, Host, HostEntryKind};
use crate::landlock::Handled;
use crate::policy::{Owner, Policy, WorkspaceSource};
use crate::seccomp::SeccompFilter;

pub use root_tree::{BindSource, GIT_SETTINGS_TEXT, RootEntry};

/// The user as which a command sees itself if it runs as a mapped user.
const INSIDE: Owner = Owner { user: 1000, group: 1000 };

/// The host name in the UTS namespace of cells.
pub(crate) const HOST_NAME: &str = "carrel";

/// Restrictions for the commands of one workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The strength of the sandbox.
    pub tier: Tier,
    /// The network that commands can reach.
    pub network: Network,
    /// The absolute path of the workspace, the same inside and outside the sandbox.
    #[serde(with = "exact_path")]
    pub workspace: PathBuf,
    /// The scratch directory, which holds `/tmp` and `/dev/shm`.
    #[serde(with = "exact_path")]
    pub scratch: PathBuf,
    /// The home directory as commands see it.
    #[serde(with = "exact_path")]
    pub home: PathBuf,
    /// The user that commands run as.
    pub run_as: CommandUser,
    /// The entries of the root directory in the order in which they are built; empty in tier `landlock`.
    pub tree: Vec<RootEntry>,
    /// The restrictions on files, ports, sockets and signals.
    pub landlock: Landlock,
    /// The system calls that are denied.
    pub seccomp: SeccompFilter,
}

/// The user that commands run as, which is never root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandUser {
    /// The user that Carrel runs as, if that is not root.
    Server(Owner),
    /// The owner of the workspace: in tier `landlock`, if Carrel runs as root.
    WorkspaceOwner(Owner),
    /// A user of a user namespace: in tier `full`, if Carrel runs as root. Through id-mapped mounts the
    /// files of `disk` belong to the commands' user inside, and files that commands create belong to
    /// `disk` outside.
    Mapped {
        /// The user inside the namespace.
        inside: Owner,
        /// The user on the host, from the policy's range of unused ids.
        outside: Owner,
        /// The owner of the workspace.
        disk: Owner,
    },
}

/// The Landlock rulesets of a plan: one for commands and one for their supervisors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landlock {
    /// The version of the ABI that the plan was made for.
    pub version: u32,
    /// The rights that are denied to commands unless a rule grants them.
    pub handled: Handled,
    /// The rights that are denied to supervisors: in tier `landlock`, signals to processes outside, so that
    /// `kill(-1)` ends exactly the command's tree.
    pub supervisor: Handled,
    /// The rules for commands.
    pub rules: Vec<Rule>,
    /// The rules for supervisors.
    pub supervised: Vec<Rule>,
}

/// A grant of access to a path and everything beneath it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The absolute path, without links.
    #[serde(with = "exact_path")]
    pub path: PathBuf,
    /// The access that is granted.
    pub access: FileAccess,
}

/// The access of commands to files, for mounts and Landlock rules alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    /// Read and execute.
    Read,
    /// Read, execute, write, create and remove; no devices can be created.
    Change,
    /// Read, write and `ioctl` an existing device.
    Device,
}

/// A policy that cannot be enforced on this host in this tier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The workspace contains a system directory that every command must be able to read.
    #[error("{path} cannot be a workspace: commands must be able to run what is below {system}")]
    System {
        /// The workspace.
        path: String,
        /// The system directory inside it.
        system: String,
    },
    /// The path of the workspace or scratch directory is relative or has `..` in it.
    #[error("{path} is not an absolute path without links")]
    NotAbsolute {
        /// The path.
        path: String,
    },
    /// Network `loopback` needs a network namespace, which tier `landlock` does not have.
    #[error("network `loopback` needs tier `full`; tier `landlock` has `none` and `full`")]
    Loopback,
    /// The tree of a fork is mounted in a mount namespace, which tier `landlock` does not have.
    #[error(
        "the tree of a fork is an overlay, which needs tier `full`; in tier `landlock` it is a copy"
    )]
    Overlay,
    /// Carrel runs as root and the workspace belongs to root, so commands would run as root in tier
    /// `landlock`.
    #[error(
        "tier `landlock` runs commands as the owner of {path}, which must not be root; \
         give it away with `chown -R {user}:{user} {path}`, run Carrel as another user, or use tier `full`"
    )]
    OwnedByRoot {
        /// The workspace.
        path: String,
        /// An unused user id that the workspace could be given to.
        user: u32,
    },
    /// A visible path contains, or lies in, a path that must stay hidden.
    #[error(
        "commands can see {path} and must not see {hidden}; \
         keep workspaces and Carrel's records elsewhere, or grant less"
    )]
    Reveals {
        /// The path that commands can see.
        path: String,
        /// The path that must stay hidden.
        hidden: String,
    },
    /// The kernel offers no Landlock.
    #[error("tier `landlock` needs Landlock, which this kernel does not offer")]
    NoLandlock,
}

impl PlanError {
    fn reveals(path: &Path, hidden: &Path) -> Self {
        Self::Reveals { path: path.display().to_string(), hidden: hidden.display().to_string() }
    }
}

impl Coded for PlanError {
    fn code(&self) -> Code {
        match self {
            Self::System { .. } | Self::NotAbsolute { .. } | Self::Reveals { .. } => {
                Code::InvalidPath
            }
            Self::OwnedByRoot { .. } | Self::Loopback | Self::Overlay | Self::NoLandlock => {
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
            Self::Loopback | Self::Overlay | Self::NoLandlock => json!({}),
        }
    }
}

impl Plan {
    /// Makes the plan for a policy on a host, in a tier.
    pub fn new(policy: &Policy, host: &Host, tier: Tier) -> Result<Self, PlanError> {
        check(policy, host)?;
        if tier == Tier::Landlock && policy.network == Network::Loopback {
            return Err(PlanError::Loopback);
        }
        if tier == Tier::Landlock && policy.workspace_source == WorkspaceSource::Overlay {
            return Err(PlanError::Overlay);
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
            home: home(policy, tier),
            run_as,
            tree: match tier {
                Tier::Full => root_tree::own_root(policy, host, run_as),
                Tier::Landlock => Vec::new(),
            },
            landlock: landlock(policy, host, tier),
            seccomp: SeccompFilter::standard(tier, policy.network),
        })
    }

    /// Removes the filter's rules if it is the standard filter, which makes up most of a serialised plan.
    /// The receiver restores it by [`with_standard_filter`](Self::with_standard_filter).
    #[must_use]
    pub fn without_standard_filter(mut self) -> Self {
        if self.seccomp == SeccompFilter::standard(self.tier, self.network) {
            self.seccomp.rules.clear();
        }
        self
    }

    /// Inserts the standard filter if the plan has no rules. No plan is meant to have none.
    #[must_use]
    pub fn with_standard_filter(mut self) -> Self {
        if self.seccomp.rules.is_empty() {
            self.seccomp = SeccompFilter::standard(self.tier, self.network);
        }
        self
    }

    /// Returns whether commands see an overlay, the tree of a fork, at the path of the workspace.
    pub fn shows_overlay(&self) -> bool {
        let is_overlay = |entry: &RootEntry| {
            matches!(entry, RootEntry::Bind { source: BindSource::Overlay, .. })
        };
        self.tree.iter().any(is_overlay)
    }

    /// Returns the path of the temporary directory as commands see it.
    pub fn temporary(&self) -> PathBuf {
        match self.tier {
            Tier::Full => "/tmp".into(),
            Tier::Landlock => self.scratch.join("tmp"),
        }
    }

    /// Returns the path of the global git configuration as commands see it.
    pub fn git_settings(&self) -> PathBuf {
        match self.tier {
            Tier::Full => root_tree::GIT_SETTINGS.into(),
            Tier::Landlock => self.scratch.join("gitconfig"),
        }
    }
}

/// Rejects workspaces that contain a system directory, and grants that reveal hidden paths.
fn check(policy: &Policy, host: &Host) -> Result<(), PlanError> {
    for path in [&policy.workspace, &policy.scratch].into_iter().chain(&policy.home) {
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

/// Rejects a policy under which the workspace, a grant or a system directory would show a hidden path.
fn check_hidden(policy: &Policy, host: &Host) -> Result<(), PlanError> {
    let granted = policy.readable.iter().chain(&policy.writable);
    if let Some(hidden) = policy.hidden.iter().find(|path| path.starts_with(&policy.workspace)) {
        return Err(PlanError::reveals(&policy.workspace, hidden));
    }
    let directories = host.system.iter().filter(|visible| visible.kind == HostEntryKind::Directory);
    for path in granted.chain(directories.map(|visible| &visible.path)) {
        let shows = |hidden: &&PathBuf| hidden.starts_with(path) || path.starts_with(hidden);
        if let Some(hidden) = policy.hidden.iter().find(shows) {
            return Err(PlanError::reveals(path, hidden));
        }
    }
    Ok(())
}

/// Chooses the user of commands. It is never root, who owns most files of the host and could change their
/// modes even without capabilities.
fn command_user(policy: &Policy, host: &Host, tier: Tier) -> Result<CommandUser, PlanError> {
    if !host.is_root() {
        return Ok(CommandUser::Server(host.server));
    }
    let user = policy.users.first + path_hash(&policy.workspace) % policy.users.count.max(1);
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

/// Returns the home directory as commands see it.
fn home(policy: &Policy, tier: Tier) -> PathBuf {
    match (&policy.home, tier) {
        (None, _) => policy.workspace.clone(),
        (Some(home), Tier::Landlock) => home.clone(),
        (Some(_), Tier::Full) => root_tree::home_mount(policy).into(),
    }
}

/// Hashes a path (FNV-1a) to choose a user id. Workspaces with the same id share only limits that the
/// kernel counts by user.
fn path_hash(path: &Path) -> u32 {
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

/// In tier `full` every file of the root directory may be read, because the plan chose each of them.
fn rules_of_own_root(policy: &Policy) -> Vec<Rule> {
    let mut rules = vec![read("/")];
    rules.extend(workspace_rules(policy, Tier::Full, "/tmp".into()));
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
    rules.extend(workspace_rules(policy, Tier::Landlock, policy.scratch.join("tmp")));
    rules.push(read(policy.scratch.join("gitconfig")));
    rules.extend(devices());
    rules
}

/// The rules for the workspace, its temporary directory, its home and the granted writable paths.
fn workspace_rules(policy: &Policy, tier: Tier, temporary: PathBuf) -> Vec<Rule> {
    let access = match policy.access {
        WorkspaceAccess::ReadWrite => FileAccess::Change,
        WorkspaceAccess::ReadOnly => FileAccess::Read,
    };
    let mut rules = vec![
        Rule { path: policy.workspace.clone(), access },
        Rule { path: temporary, access: FileAccess::Change },
    ];
    let home = policy.home.iter().map(|_| home(policy, tier));
    let writable = home.chain(policy.writable.iter().cloned());
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
