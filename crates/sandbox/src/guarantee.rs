//! Guarantees: the properties of a command's sandbox, enforced or not.
//!
//! Every plan is judged by the same list of names in the same order, so that a reader can tell a guarantee
//! that does not hold from one that does not exist. A guarantee that holds names the layer that enforces
//! it; one that does not names what is missing and how to get it. Every result of a command carries both
//! lists, because the sandbox depends on the kernel, the tier and the policy: a caller must not assume
//! more than this command had.
//!
//! A guarantee is about what a command *can* do, not about what the policy intended. Where the policy
//! itself grants something, such as the host's network, the guarantee about it does not hold.
//!
//! Guarantees are derived from the plan and the control groups, without probing. They are sound because a
//! cell applies the whole plan or fails: there is no partially applied plan. Limits of single processes
//! always hold, since no command is started without them.
//!
//! ```text
//! yes other_files_hidden: a root directory of its own                            (tier full)
//! no  other_files_hidden: Landlock lets names, sizes and times be looked up; ... (tier landlock)
//! ```

#[cfg(test)]
mod tests;

use std::path::Path;

use carrel_domain::{Network, Tier};
use serde::{Deserialize, Serialize};

use crate::plan::{CommandUser, FileAccess, Plan, RootEntry};

/// The Landlock ABI versions that guarantees depend on.
const LANDLOCK_FILES: u32 = 1;
const LANDLOCK_TRUNCATE: u32 = 3;
const LANDLOCK_DEVICES: u32 = 5;
const LANDLOCK_SCOPES: u32 = 6;

/// The limits that a control group enforces for all processes of a command together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupLimits {
    /// True if the sum of their memory is limited; otherwise each process is limited by itself.
    pub memory: bool,
    /// True if their number is limited.
    pub processes: bool,
}

/// A property of the sandbox, judged for one plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Guarantee {
    /// The stable name, such as `workspace_only_writes`.
    pub name: &'static str,
    /// True if the property is enforced.
    pub holds: bool,
    /// The layer that enforces it, or what is missing and how to get it.
    pub why: String,
}

/// Returns the names of the guarantees that hold.
pub fn enforced(guarantees: &[Guarantee]) -> Vec<&'static str> {
    guarantees.iter().filter(|one| one.holds).map(|one| one.name).collect()
}

/// Returns the names of the guarantees that do not hold.
pub fn not_enforced(guarantees: &[Guarantee]) -> Vec<&'static str> {
    guarantees.iter().filter(|one| !one.holds).map(|one| one.name).collect()
}

/// Judges every guarantee for a plan, always the same names in the same order.
pub fn guarantees(plan: &Plan, cgroup: CgroupLimits) -> Vec<Guarantee> {
    let facts = Facts { plan, cgroup };
    GUARANTEES.iter().map(|(name, basis)| facts.judge(basis).named(name)).collect()
}

/// Lists every guarantee as not enforced, for a command without a sandbox.
pub fn without_sandbox() -> Vec<Guarantee> {
    let why = "there is no sandbox";
    GUARANTEES.iter().map(|(name, _)| NotEnforced(why.to_owned()).named(name)).collect()
}

/// The judgement of one guarantee, with its reason.
enum Judgement {
    Enforced(String),
    NotEnforced(String),
}

use Judgement::{Enforced, NotEnforced};

impl Judgement {
    fn named(self, name: &'static str) -> Guarantee {
        match self {
            Enforced(why) => Guarantee { name, holds: true, why },
            NotEnforced(why) => Guarantee { name, holds: false, why },
        }
    }
}

fn enforced_by(why: &str) -> Judgement {
    Enforced(why.to_owned())
}

fn not_enforced_because(why: &str) -> Judgement {
    NotEnforced(why.to_owned())
}

/// The facts that decide a guarantee.
enum Basis {
    /// Holds under every plan, by this layer.
    Always(&'static str),
    /// Holds in tier `full` by the first; the second is missing in tier `landlock`.
    Namespaces(&'static str, &'static str),
    /// Holds in tier `full` by the first text, and in tier `landlock` from this version of Landlock on by
    /// the second. The third is the effect that needs the version.
    Landlock(u32, &'static str, &'static str, &'static str),
    /// Holds without the host's network: in tier `full` by the first for network `none` and by the second
    /// for `loopback`.
    Network(&'static str, &'static str),
    /// Holds by the seccomp filter, unless the plan has none.
    Filter(&'static str),
    /// Needs more than the tier and one version.
    Judged(fn(&Facts<'_>) -> Judgement),
}

macro_rules! guarantees {
    ($($name:literal $basis:ident($($argument:expr),+);)+) => {
        const GUARANTEES: &[(&str, Basis)] = &[$(($name, Basis::$basis($($argument),+))),+];
    };
}

guarantees! {
    "workspace_only_writes" Landlock(LANDLOCK_TRUNCATE,
        "a root directory of its own, in which only the workspace, /tmp, /dev/shm and what the \
         operator named can be changed",
        "Landlock: only the workspace, $TMPDIR and what the operator named can be changed",
        "keeping files outside from being cut short");
    "outside_metadata_unchanged" Namespaces(
        "files outside are not there, or their mounts are read-only",
        "Landlock does not rule modes, times and owners: those of files of the same user can be \
         changed; this needs tier full");
    "system_read_only" Judged(system_read_only);
    "truncate_limited" Landlock(LANDLOCK_TRUNCATE,
        "read-only mounts", "Landlock", "ruling truncate()");
    "device_ioctl_limited" Landlock(LANDLOCK_DEVICES,
        "a /dev of its own, and no devices elsewhere", "Landlock", "ruling ioctl() on devices");
    "other_files_unreadable" Landlock(LANDLOCK_FILES, OWN_ROOT, NAMED_ONLY, RULING_OPENS);
    "other_files_hidden" Namespaces(OWN_ROOT,
        "Landlock lets names, sizes and times be looked up; this needs tier full");
    // Records are always among the policy's hidden paths, and a plan that would show one is refused.
    "server_records_unreadable" Landlock(LANDLOCK_FILES, OWN_ROOT, NAMED_ONLY, RULING_OPENS);
    "git_hooks_read_only" Judged(git_hooks_read_only);
    "private_tmp" Landlock(LANDLOCK_FILES,
        "/tmp and /dev/shm are directories of the workspace's own",
        "$TMPDIR is the workspace's own, and Landlock keeps /tmp shut",
        "keeping /tmp shut");
    "processes_hidden" Namespaces("a process namespace, with its own /proc",
        "/proc is the host's, so command lines can be read; this needs tier full");
    "process_memory_unreadable" Landlock(LANDLOCK_FILES,
        "a process namespace",
        "Landlock: memory, environment and descriptors of processes outside cannot be read",
        "keeping processes apart");
    "signals_stay_inside" Judged(signals_stay_inside);
    "kill_tree" Judged(kill_tree);
    "ipc_separate" Judged(ipc_separate);
    "private_hostname" Namespaces("a UTS namespace",
        "the name of the host can be read; this needs tier full");
    "outside_network_unreachable" Network("a network namespace without an interface, and seccomp",
        "a network namespace with nothing but a loopback of its own");
    "host_loopback_unreachable" Network(OWN_NETWORK, OWN_NETWORK);
    "local_services_unreachable" Judged(local_services_unreachable);
    "abstract_sockets_separate" Judged(abstract_sockets_separate);
    "no_new_privileges" Always("no_new_privs");
    "no_capabilities" Always("all capabilities are given up, also for later programs");
    "unprivileged_user" Judged(unprivileged_user);
    "dangerous_calls_refused" Filter("seccomp");
    "terminal_injection_refused" Judged(terminal_injection_refused);
    "set_user_id_files_refused" Filter(
        "seccomp; the contents of one that is there already can be changed");
    "refused_calls_explained" Filter("seccomp notifies Carrel of them");
    "memory_limit" Judged(memory_limit);
    "process_limit" Judged(process_limit);
    "cpu_limit_per_process" Always("RLIMIT_CPU");
    "file_size_limit" Always("RLIMIT_FSIZE");
    "open_files_limit" Always("RLIMIT_NOFILE");
}

const OWN_ROOT: &str = "a root directory of its own";
const NAMED_ONLY: &str = "Landlock: what the plan does not name cannot be opened";
const RULING_OPENS: &str = "ruling which files are opened";

struct Facts<'a> {
    plan: &'a Plan,
    cgroup: CgroupLimits,
}

impl Facts<'_> {
    fn judge(&self, basis: &Basis) -> Judgement {
        match *basis {
            Basis::Namespaces(why, _) if self.full() => enforced_by(why),
            Basis::Namespaces(_, missing) => not_enforced_because(missing),
            Basis::Landlock(version, full, landlock, effect) => {
                self.by(full, version, landlock, effect)
            }
            Basis::Network(none, loopback) => match (self.plan.network, self.plan.tier) {
                (Network::Full, _) => not_enforced_because(WHOLE_NETWORK),
                (Network::None, Tier::Full) => enforced_by(none),
                (Network::Loopback, Tier::Full) => enforced_by(loopback),
                (Network::None | Network::Loopback, Tier::Landlock) => enforced_by(SOCKETS_REFUSED),
            },
            Basis::Filter(_) if self.plan.seccomp.rules.is_empty() => {
                not_enforced_because("the plan has no seccomp filter")
            }
            Basis::Always(why) | Basis::Filter(why) => enforced_by(why),
            Basis::Judged(judge) => judge(self),
        }
    }

    fn full(&self) -> bool {
        self.plan.tier == Tier::Full
    }

    fn landlock(&self) -> u32 {
        self.plan.landlock.version
    }

    /// A guarantee that needs a newer Landlock or tier `full`.
    fn needs_landlock(&self, version: u32, what: &str) -> Judgement {
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
        NotEnforced(format!(
            "{what} needs Landlock {version} (Linux {kernel}) {way}; this kernel has Landlock {here}"
        ))
    }

    /// Judges by a mount or namespace in tier `full`, and by the version of Landlock in tier `landlock`.
    fn by(&self, full: &str, version: u32, landlock: &str, what: &str) -> Judgement {
        if self.full() {
            enforced_by(full)
        } else if self.landlock() >= version {
            enforced_by(landlock)
        } else {
            self.needs_landlock(version, what)
        }
    }

    fn runs_as_root(&self) -> bool {
        match self.plan.run_as {
            CommandUser::Server(owner) | CommandUser::WorkspaceOwner(owner) => owner.user == 0,
            CommandUser::Mapped { outside, .. } => outside.user == 0,
        }
    }

    /// Returns the visible paths with the access to them.
    fn visible_paths(&self) -> Vec<(&Path, FileAccess)> {
        fn bound(entry: &RootEntry) -> Option<(&Path, FileAccess)> {
            match entry {
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

    fn workspace_is_read_only(&self) -> bool {
        let workspace = self.plan.workspace.as_path();
        let mut above = self.visible_paths();
        above.retain(|(path, _)| workspace.starts_with(path));
        if self.full() {
            // The mount of the workspace hides those around it, such as /tmp. Rules of Landlock add up.
            let innermost = above.iter().map(|(path, _)| path.components().count()).max();
            above.retain(|(path, _)| Some(path.components().count()) == innermost);
        }
        above.iter().all(|(_, access)| *access != FileAccess::Change)
    }
}

fn system_read_only(facts: &Facts<'_>) -> Judgement {
    if !facts.full() && !facts.runs_as_root() && facts.landlock() >= LANDLOCK_FILES {
        return enforced_by("Landlock, and an ordinary user");
    }
    facts.by(
        "read-only mounts",
        LANDLOCK_TRUNCATE,
        "Landlock",
        "keeping root from cutting system files short",
    )
}

fn git_hooks_read_only(facts: &Facts<'_>) -> Judgement {
    if facts.workspace_is_read_only() {
        return enforced_by("the workspace can only be read");
    }
    let hooks = facts.plan.workspace.join(".git/hooks");
    let is_bound =
        |(path, access): &(&Path, FileAccess)| *path == hooks && *access == FileAccess::Read;
    if facts.full() && facts.visible_paths().iter().any(is_bound) {
        return enforced_by("a read-only mount over .git/hooks");
    }
    let instead = "what changes is found by comparing after the command";
    if facts.full() {
        NotEnforced(format!("there were no hooks when the sandbox was made; {instead}"))
    } else {
        NotEnforced(format!("this needs a mount and so tier full; {instead}"))
    }
}

fn signals_stay_inside(facts: &Facts<'_>) -> Judgement {
    let scoped = facts.plan.landlock.handled.signals_stay_inside();
    match (facts.full(), scoped) {
        (true, _) => enforced_by("a process namespace"),
        (false, true) => enforced_by("Landlock"),
        (false, false) => facts.needs_landlock(LANDLOCK_SCOPES, "keeping signals inside"),
    }
}

fn kill_tree(facts: &Facts<'_>) -> Judgement {
    let scoped = facts.plan.landlock.supervisor.signals_stay_inside();
    match (facts.full(), scoped) {
        (true, _) => enforced_by("a process namespace, which ends with its first process"),
        (false, true) => {
            enforced_by("a supervisor whose signals reach exactly the tree, by Landlock")
        }
        (false, false) => facts.needs_landlock(
            LANDLOCK_SCOPES,
            "the tree is walked and killed process by process, and one that forks fast enough \
             can slip through; an exact kill",
        ),
    }
}

fn ipc_separate(facts: &Facts<'_>) -> Judgement {
    if facts.full() {
        enforced_by("an IPC namespace for each command")
    } else {
        enforced_by("seccomp refuses System V objects and message queues")
    }
}

const SOCKETS_REFUSED: &str = "seccomp: no sockets can be opened";
const OWN_NETWORK: &str = "a network namespace of the workspace's own";
const WHOLE_NETWORK: &str =
    "the policy gives the host's network; network none or loopback does not";

/// About sockets in the file system, such as that of a container engine.
fn local_services_unreachable(facts: &Facts<'_>) -> Judgement {
    match (facts.plan.tier, facts.plan.network) {
        (Tier::Full, _) => enforced_by("the sockets of services are not in its root directory"),
        (Tier::Landlock, Network::None | Network::Loopback) => enforced_by(SOCKETS_REFUSED),
        (Tier::Landlock, Network::Full) => not_enforced_because(
            "Landlock does not rule connecting to sockets that are files; this needs network none \
             or tier full",
        ),
    }
}

fn abstract_sockets_separate(facts: &Facts<'_>) -> Judgement {
    match (facts.plan.network, facts.plan.tier) {
        (Network::None | Network::Loopback, Tier::Full) => enforced_by(OWN_NETWORK),
        (Network::None | Network::Loopback, Tier::Landlock) => enforced_by(SOCKETS_REFUSED),
        (Network::Full, _) if facts.landlock() >= LANDLOCK_SCOPES => enforced_by("Landlock"),
        (Network::Full, _) => NotEnforced(format!(
            "with the host's network this needs Landlock {LANDLOCK_SCOPES} (Linux 6.12); this \
             kernel has Landlock {}",
            facts.landlock()
        )),
    }
}

fn unprivileged_user(facts: &Facts<'_>) -> Judgement {
    match facts.plan.run_as {
        _ if facts.runs_as_root() => not_enforced_because(
            "commands run as root without its capabilities, and own its files; run Carrel as \
             another user, give the workspace another owner, or use tier full",
        ),
        CommandUser::Server(_) => enforced_by("the user that Carrel runs as, who is not root"),
        CommandUser::WorkspaceOwner(_) => {
            enforced_by("the owner of the workspace, who is not root")
        }
        CommandUser::Mapped { .. } => enforced_by("a user of the workspace's own"),
    }
}

fn terminal_injection_refused(facts: &Facts<'_>) -> Judgement {
    if facts.plan.seccomp.rules.iter().any(|rule| rule.syscall.name() == "ioctl") {
        enforced_by("seccomp, and a session of its own")
    } else {
        not_enforced_because("the plan has no seccomp filter for terminals")
    }
}

const HOW_TO_GET_GROUPS: &str = "delegate a control group to Carrel (systemd: Delegate=yes)";

fn memory_limit(facts: &Facts<'_>) -> Judgement {
    if facts.cgroup.memory {
        enforced_by("a control group for each command")
    } else {
        NotEnforced(format!(
            "only each process by itself is limited, by RLIMIT_DATA; {HOW_TO_GET_GROUPS}"
        ))
    }
}

fn process_limit(facts: &Facts<'_>) -> Judgement {
    if facts.cgroup.processes {
        enforced_by("a control group for each command")
    } else if facts.full() {
        enforced_by("RLIMIT_NPROC in a user namespace, for all commands of the workspace together")
    } else {
        NotEnforced(format!("nothing counts them; {HOW_TO_GET_GROUPS}, or use tier full"))
    }
}
