//! What the sandbox of a command promises, and what it does not.
//!
//! Every plan answers for the same names, so that a reader can tell a promise that does not hold
//! from one that nobody thought of. A promise that holds names the layer that keeps it; one that
//! does not says what is missing and how to get it. Where the policy itself gives something away,
//! such as the host's network, the promise about it does not hold: it is about what a command can
//! do, not about what it should.
//!
//! Limits of single processes count as kept, since no command is started without them.

#[cfg(test)]
mod tests;

use std::path::Path;

use carrel_domain::{Network, Tier};
use serde::{Deserialize, Serialize};

use crate::plan::{CommandUser, FileAccess, Plan, RootEntry};

/// The versions of Landlock that brought something a promise depends on, and their kernels.
const LANDLOCK_FILES: u32 = 1;
const LANDLOCK_TRUNCATE: u32 = 3;
const LANDLOCK_DEVICES: u32 = 5;
const LANDLOCK_SCOPES: u32 = 6;

/// Which limits hold for all processes of a command together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupLimits {
    /// Their memory.
    pub memory: bool,
    /// Their number.
    pub processes: bool,
}

/// One promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Guarantee {
    /// Its name, which never changes.
    pub name: &'static str,
    /// Whether it is kept.
    pub holds: bool,
    /// What keeps it, or what is missing and how to get it.
    pub why: String,
}

/// Returns the names of the promises that are kept.
pub fn enforced(guarantees: &[Guarantee]) -> Vec<&'static str> {
    guarantees.iter().filter(|one| one.holds).map(|one| one.name).collect()
}

/// Returns the names of those that are not.
pub fn not_enforced(guarantees: &[Guarantee]) -> Vec<&'static str> {
    guarantees.iter().filter(|one| !one.holds).map(|one| one.name).collect()
}

/// Lists every promise, always the same ones in the same order.
pub fn guarantees(plan: &Plan, cgroup: CgroupLimits) -> Vec<Guarantee> {
    let facts = Facts { plan, cgroup };
    PROMISES.iter().map(|(name, decide)| decide(&facts).named(name)).collect()
}

/// Lists every promise as broken, for a command without walls.
pub fn without_sandbox() -> Vec<Guarantee> {
    let why = "there is no sandbox";
    PROMISES.iter().map(|(name, _)| Broken(why.to_owned()).named(name)).collect()
}

/// Whether a promise is kept, and why.
enum Verdict {
    Kept(String),
    Broken(String),
}

use Verdict::{Broken, Kept};

impl Verdict {
    fn named(self, name: &'static str) -> Guarantee {
        match self {
            Kept(why) => Guarantee { name, holds: true, why },
            Broken(why) => Guarantee { name, holds: false, why },
        }
    }
}

fn kept(why: &str) -> Verdict {
    Kept(why.to_owned())
}

fn broken(why: &str) -> Verdict {
    Broken(why.to_owned())
}

/// What promises are decided from.
struct Facts<'a> {
    plan: &'a Plan,
    cgroup: CgroupLimits,
}

type Decide = fn(&Facts<'_>) -> Verdict;

const PROMISES: &[(&str, Decide)] = &[
    ("workspace_only_writes", workspace_only_writes),
    ("outside_metadata_unchanged", outside_metadata_unchanged),
    ("system_read_only", system_read_only),
    ("truncate_limited", truncate_limited),
    ("device_ioctl_limited", device_ioctl_limited),
    ("other_files_unreadable", other_files_unreadable),
    ("other_files_hidden", other_files_hidden),
    ("server_records_unreadable", server_records_unreadable),
    ("git_hooks_read_only", git_hooks_read_only),
    ("private_tmp", private_tmp),
    ("processes_hidden", processes_hidden),
    ("process_memory_unreadable", process_memory_unreadable),
    ("signals_stay_inside", signals_stay_inside),
    ("kill_tree", kill_tree),
    ("ipc_separate", ipc_separate),
    ("private_hostname", private_hostname),
    ("outside_network_unreachable", outside_network_unreachable),
    ("host_loopback_unreachable", host_loopback_unreachable),
    ("local_services_unreachable", local_services_unreachable),
    ("abstract_sockets_separate", abstract_sockets_separate),
    ("no_new_privileges", |_| kept("no_new_privs")),
    ("no_capabilities", |_| kept("all capabilities are given up, also for later programs")),
    ("unprivileged_user", unprivileged_user),
    ("dangerous_calls_refused", dangerous_calls_refused),
    ("terminal_injection_refused", terminal_injection_refused),
    ("set_user_id_files_refused", set_user_id_files_refused),
    ("refused_calls_explained", refused_calls_explained),
    ("memory_limit", memory_limit),
    ("process_limit", process_limit),
    ("cpu_limit_per_process", |_| kept("RLIMIT_CPU")),
    ("file_size_limit", |_| kept("RLIMIT_FSIZE")),
    ("open_files_limit", |_| kept("RLIMIT_NOFILE")),
];

impl Facts<'_> {
    fn full(&self) -> bool {
        self.plan.tier == Tier::Full
    }

    fn landlock(&self) -> u32 {
        self.plan.landlock.version
    }

    /// Names the version that is there and the one that it takes.
    fn takes(&self, version: u32, what: &str) -> Verdict {
        let kernel = match version {
            0 | LANDLOCK_FILES => "5.13",
            2 => "5.19",
            LANDLOCK_TRUNCATE => "6.2",
            4 => "6.7",
            LANDLOCK_DEVICES => "6.10",
            _ => "6.12",
        };
        let here = self.landlock();
        let way = "or tier full";
        Broken(format!(
            "{what} takes Landlock {version} (Linux {kernel}) {way}; this kernel has Landlock {here}"
        ))
    }

    /// Decides by a mount or a namespace in tier `full`, and by a version of Landlock elsewhere.
    fn by(&self, full: &str, version: u32, landlock: &str, what: &str) -> Verdict {
        if self.full() {
            kept(full)
        } else if self.landlock() >= version {
            kept(landlock)
        } else {
            self.takes(version, what)
        }
    }

    fn runs_as_root(&self) -> bool {
        match self.plan.run_as {
            CommandUser::Server(owner) | CommandUser::WorkspaceOwner(owner) => owner.user == 0,
            CommandUser::Mapped { outside, .. } => outside.user == 0,
        }
    }

    /// Returns what can be read or changed, by where it is seen.
    fn shown(&self) -> Vec<(&Path, FileAccess)> {
        fn bound(node: &RootEntry) -> Option<(&Path, FileAccess)> {
            match node {
                RootEntry::Bind { path, access, .. } => Some((path, *access)),
                RootEntry::Copy(path) => Some((path, FileAccess::Read)),
                RootEntry::Directory(_)
                | RootEntry::Link { .. }
                | RootEntry::File { .. }
                | RootEntry::Proc(_)
                | RootEntry::DevPts(_) => None,
            }
        }
        match self.plan.tier {
            Tier::Full => self.plan.tree.iter().filter_map(bound).collect(),
            Tier::Landlock => {
                let rules = self.plan.landlock.rules.iter();
                rules.map(|rule| (rule.path.as_path(), rule.access)).collect()
            }
        }
    }

    /// Returns whether the workspace can be read only.
    fn workspace_is_read_only(&self) -> bool {
        let workspace = self.plan.workspace.as_path();
        let above = |(path, access): &(&Path, FileAccess)| {
            workspace.starts_with(path) && *access == FileAccess::Change
        };
        !self.shown().iter().any(above)
    }
}

fn workspace_only_writes(facts: &Facts<'_>) -> Verdict {
    facts.by(
        "a root directory of its own, in which only the workspace, /tmp, /dev/shm and what the \
         operator named can be changed",
        LANDLOCK_TRUNCATE,
        "Landlock: only the workspace, $TMPDIR and what the operator named can be changed",
        "keeping files outside from being cut short",
    )
}

fn outside_metadata_unchanged(facts: &Facts<'_>) -> Verdict {
    if facts.full() {
        kept("files outside are not there, or their mounts are read-only")
    } else {
        broken(
            "Landlock does not rule modes, times and owners: those of files of the same user can \
             be changed; this takes tier full",
        )
    }
}

fn system_read_only(facts: &Facts<'_>) -> Verdict {
    if !facts.full() && !facts.runs_as_root() && facts.landlock() >= LANDLOCK_FILES {
        return kept("Landlock, and an ordinary user");
    }
    facts.by(
        "read-only mounts",
        LANDLOCK_TRUNCATE,
        "Landlock",
        "keeping root from cutting system files short",
    )
}

fn truncate_limited(facts: &Facts<'_>) -> Verdict {
    facts.by("read-only mounts", LANDLOCK_TRUNCATE, "Landlock", "ruling truncate()")
}

fn device_ioctl_limited(facts: &Facts<'_>) -> Verdict {
    facts.by(
        "a /dev of its own, and no devices elsewhere",
        LANDLOCK_DEVICES,
        "Landlock",
        "ruling ioctl() on devices",
    )
}

fn other_files_unreadable(facts: &Facts<'_>) -> Verdict {
    facts.by(
        "a root directory of its own",
        LANDLOCK_FILES,
        "Landlock: what the plan does not name cannot be opened",
        "ruling which files are opened",
    )
}

fn other_files_hidden(facts: &Facts<'_>) -> Verdict {
    if facts.full() {
        kept("a root directory of its own")
    } else {
        broken("Landlock lets names, sizes and times be looked up; this takes tier full")
    }
}

/// A plan that would show them is refused.
fn server_records_unreadable(facts: &Facts<'_>) -> Verdict {
    other_files_unreadable(facts)
}

fn git_hooks_read_only(facts: &Facts<'_>) -> Verdict {
    if facts.workspace_is_read_only() {
        return kept("the workspace can only be read");
    }
    let hooks = facts.plan.workspace.join(".git/hooks");
    let is_bound =
        |(path, access): &(&Path, FileAccess)| *path == hooks && *access == FileAccess::Read;
    if facts.full() && facts.shown().iter().any(is_bound) {
        return kept("a read-only mount over .git/hooks");
    }
    let instead = "what changes is found by comparing after the command";
    if facts.full() {
        Broken(format!("there were no hooks when the sandbox was made; {instead}"))
    } else {
        Broken(format!("this takes a mount, so tier full; {instead}"))
    }
}

fn private_tmp(facts: &Facts<'_>) -> Verdict {
    facts.by(
        "/tmp and /dev/shm are directories of the workspace's own",
        LANDLOCK_FILES,
        "$TMPDIR is the workspace's own, and Landlock keeps /tmp shut",
        "keeping /tmp shut",
    )
}

fn processes_hidden(facts: &Facts<'_>) -> Verdict {
    if facts.full() {
        kept("a process namespace, with its own /proc")
    } else {
        broken("/proc is the host's, so command lines can be read; this takes tier full")
    }
}

fn process_memory_unreadable(facts: &Facts<'_>) -> Verdict {
    facts.by(
        "a process namespace",
        LANDLOCK_FILES,
        "Landlock: memory, environment and descriptors of processes outside cannot be read",
        "keeping processes apart",
    )
}

fn signals_stay_inside(facts: &Facts<'_>) -> Verdict {
    let scoped = facts.plan.landlock.handled.signals_stay_inside();
    match (facts.full(), scoped) {
        (true, _) => kept("a process namespace"),
        (false, true) => kept("Landlock"),
        (false, false) => facts.takes(LANDLOCK_SCOPES, "keeping signals inside"),
    }
}

fn kill_tree(facts: &Facts<'_>) -> Verdict {
    let scoped = facts.plan.landlock.supervisor.signals_stay_inside();
    match (facts.full(), scoped) {
        (true, _) => kept("a process namespace, which ends with its first process"),
        (false, true) => kept("a supervisor whose signals reach exactly the tree, by Landlock"),
        (false, false) => facts.takes(
            LANDLOCK_SCOPES,
            "the tree is walked and killed process by process, and one that forks fast enough \
             can slip through; an exact kill",
        ),
    }
}

fn ipc_separate(facts: &Facts<'_>) -> Verdict {
    if facts.full() {
        kept("an IPC namespace for each command")
    } else {
        kept("seccomp refuses System V objects and message queues")
    }
}

fn private_hostname(facts: &Facts<'_>) -> Verdict {
    if facts.full() {
        kept("a UTS namespace")
    } else {
        broken("the name of the host can be read; this takes tier full")
    }
}

const SOCKETS_REFUSED: &str = "seccomp: no sockets can be opened";
const OWN_NETWORK: &str = "a network namespace of the workspace's own";
const WHOLE_NETWORK: &str =
    "the policy gives the host's network; network none or loopback does not";

fn outside_network_unreachable(facts: &Facts<'_>) -> Verdict {
    match (facts.plan.network, facts.plan.tier) {
        (Network::Full, _) => broken(WHOLE_NETWORK),
        (Network::None, Tier::Full) => {
            kept("a network namespace without an interface, and seccomp")
        }
        (Network::Loopback, Tier::Full) => {
            kept("a network namespace with nothing but a loopback of its own")
        }
        (Network::None | Network::Loopback, Tier::Landlock) => kept(SOCKETS_REFUSED),
    }
}

fn host_loopback_unreachable(facts: &Facts<'_>) -> Verdict {
    match (facts.plan.network, facts.plan.tier) {
        (Network::Full, _) => broken(WHOLE_NETWORK),
        (Network::None | Network::Loopback, Tier::Full) => kept(OWN_NETWORK),
        (Network::None | Network::Loopback, Tier::Landlock) => kept(SOCKETS_REFUSED),
    }
}

/// Sockets that are files.
fn local_services_unreachable(facts: &Facts<'_>) -> Verdict {
    match (facts.plan.tier, facts.plan.network) {
        (Tier::Full, _) => kept("the sockets of services are not in its root directory"),
        (Tier::Landlock, Network::None | Network::Loopback) => kept(SOCKETS_REFUSED),
        (Tier::Landlock, Network::Full) => broken(
            "Landlock does not rule connecting to sockets that are files; this takes network none \
             or tier full",
        ),
    }
}

fn abstract_sockets_separate(facts: &Facts<'_>) -> Verdict {
    match (facts.plan.network, facts.plan.tier) {
        (Network::None | Network::Loopback, Tier::Full) => kept(OWN_NETWORK),
        (Network::None | Network::Loopback, Tier::Landlock) => kept(SOCKETS_REFUSED),
        (Network::Full, _) if facts.landlock() >= LANDLOCK_SCOPES => kept("Landlock"),
        (Network::Full, _) => Broken(format!(
            "with the host's network this takes Landlock {LANDLOCK_SCOPES} (Linux 6.12); this \
             kernel has Landlock {}",
            facts.landlock()
        )),
    }
}

fn unprivileged_user(facts: &Facts<'_>) -> Verdict {
    match facts.plan.run_as {
        _ if facts.runs_as_root() => broken(
            "commands run as root without its capabilities, and own its files; run Carrel as \
             another user, give the workspace another owner, or use tier full",
        ),
        CommandUser::Server(_) => kept("the user that Carrel runs as, who is not root"),
        CommandUser::WorkspaceOwner(_) => kept("the owner of the workspace, who is not root"),
        CommandUser::Mapped { .. } => kept("a user of the workspace's own"),
    }
}

fn dangerous_calls_refused(facts: &Facts<'_>) -> Verdict {
    if facts.plan.seccomp.rules.is_empty() {
        broken("the plan has no seccomp filter")
    } else {
        kept("seccomp")
    }
}

fn terminal_injection_refused(facts: &Facts<'_>) -> Verdict {
    if facts.plan.seccomp.rules.iter().any(|rule| rule.syscall.name() == "ioctl") {
        kept("seccomp, and a session of its own")
    } else {
        broken("the plan has no seccomp filter for terminals")
    }
}

fn set_user_id_files_refused(facts: &Facts<'_>) -> Verdict {
    if facts.plan.seccomp.rules.is_empty() {
        return broken("the plan has no seccomp filter");
    }
    kept("seccomp; the contents of one that is there already can be changed")
}

fn refused_calls_explained(facts: &Facts<'_>) -> Verdict {
    if facts.plan.seccomp.rules.is_empty() {
        broken("the plan has no seccomp filter")
    } else {
        kept("seccomp notifies Carrel of them")
    }
}

const HOW_TO_GET_GROUPS: &str = "delegate a control group to Carrel (systemd: Delegate=yes)";

fn memory_limit(facts: &Facts<'_>) -> Verdict {
    if facts.cgroup.memory {
        kept("a control group for each command")
    } else {
        Broken(format!(
            "only each process by itself is limited, by RLIMIT_DATA; {HOW_TO_GET_GROUPS}"
        ))
    }
}

fn process_limit(facts: &Facts<'_>) -> Verdict {
    if facts.cgroup.processes {
        kept("a control group for each command")
    } else if facts.full() {
        kept("RLIMIT_NPROC in a user namespace, for all commands of the workspace together")
    } else {
        Broken(format!("nothing counts them; {HOW_TO_GET_GROUPS}, or use tier full"))
    }
}
