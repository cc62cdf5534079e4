use carrel_domain::{Network, Tier, WorkspaceAccess};
use pretty_assertions::assert_eq;

use super::*;
use crate::host::{Host, HostEntry, HostEntryKind};
use crate::policy::{GitDirectory, Owner, Policy, UserRange, WorkspaceSource};

const NO_GROUPS: CgroupLimits = CgroupLimits { memory: false, processes: false };
const GROUPS: CgroupLimits = CgroupLimits { memory: true, processes: true };

const USER: Owner = Owner { user: 1000, group: 1000 };
const ROOT: Owner = Owner { user: 0, group: 0 };

fn host(landlock: u32, server: Owner) -> Host {
    let directory = |path: &str| HostEntry { path: path.into(), kind: HostEntryKind::Directory };
    Host {
        landlock,
        server,
        system: vec![directory("/usr"), directory("/opt")],
        name_files: vec![],
        resolver: None,
    }
}

fn policy(network: Network, owner: Owner) -> Policy {
    Policy {
        workspace: "/srv/root/ws".into(),
        owner,
        access: WorkspaceAccess::ReadWrite,
        workspace_source: WorkspaceSource::Directory,
        alias: None,
        git_directory: GitDirectory::WithHooks,
        scratch: "/srv/root/.carrel/scratch/ws".into(),
        home: None,
        readable: vec![],
        writable: vec![],
        hidden: vec![],
        network,
        users: UserRange::default(),
    }
}

fn plan(tier: Tier, landlock: u32, network: Network) -> Plan {
    Plan::new(&policy(network, USER), &host(landlock, USER), tier).expect("a plan")
}

fn missing(plan: &Plan, cgroup: CgroupLimits) -> Vec<&'static str> {
    not_enforced(&guarantees(plan, cgroup))
}

fn why(plan: &Plan, cgroup: CgroupLimits, name: &str) -> (bool, String) {
    let found = guarantees(plan, cgroup).into_iter().find(|one| one.name == name);
    found.map(|one| (one.holds, one.why)).expect("a promise of this name")
}

const NOTHING: [&str; 0] = [];
/// The guarantees that need namespaces.
const NAMESPACES: [&str; 5] = [
    "outside_metadata_unchanged",
    "other_files_hidden",
    "git_hooks_read_only",
    "processes_hidden",
    "private_hostname",
];
const WHOLE_NETWORK: [&str; 2] = ["outside_network_unreachable", "host_loopback_unreachable"];

#[test]
fn a_read_only_workspace_below_a_writable_mount_is_read_only() {
    let workspace = "/tmp/project".into();
    let read_only = Policy {
        workspace,
        access: WorkspaceAccess::ReadOnly,
        git_directory: GitDirectory::Absent,
        ..policy(Network::None, USER)
    };
    let planned = Plan::new(&read_only, &host(6, USER), Tier::Full).unwrap();
    assert_eq!(
        why(&planned, GROUPS, "git_hooks_read_only"),
        (true, "the workspace can only be read".to_owned())
    );
    let writable = Policy { access: WorkspaceAccess::ReadWrite, ..read_only };
    let planned = Plan::new(&writable, &host(6, USER), Tier::Full).unwrap();
    assert!(!why(&planned, GROUPS, "git_hooks_read_only").0);
}

#[test]
fn tier_full_keeps_everything_that_the_policy_does_not_give_away() {
    for landlock in [0, 1, 3, 5, 6, 7] {
        for network in [Network::None, Network::Loopback] {
            let plan = plan(Tier::Full, landlock, network);
            assert_eq!(missing(&plan, GROUPS), NOTHING, "{landlock} {network}");
            assert_eq!(missing(&plan, NO_GROUPS), ["memory_limit"]);
        }
    }
}

#[test]
fn the_hosts_network_is_a_promise_that_does_not_hold() {
    let names = |landlock| missing(&plan(Tier::Full, landlock, Network::Full), GROUPS);
    let newer = WHOLE_NETWORK.to_vec();
    let older = [&WHOLE_NETWORK[..], &["abstract_sockets_separate"]].concat();
    for (landlock, expected) in [(0, &older), (5, &older), (6, &newer), (7, &newer)] {
        assert_eq!(&names(landlock), expected, "Landlock {landlock}");
    }
}

#[test]
fn tier_landlock_keeps_what_its_version_can() {
    let expected = |landlock: u32| {
        let mut names = NAMESPACES.to_vec();
        names.extend(["memory_limit", "process_limit"]);
        if landlock < 3 {
            names.extend(["workspace_only_writes", "truncate_limited"]);
        }
        if landlock < 5 {
            names.push("device_ioctl_limited");
        }
        if landlock < 6 {
            names.extend(["signals_stay_inside", "kill_tree"]);
        }
        names.sort_unstable();
        names
    };
    for landlock in 1..=7 {
        let mut names = missing(&plan(Tier::Landlock, landlock, Network::None), NO_GROUPS);
        names.sort_unstable();
        assert_eq!(names, expected(landlock), "Landlock {landlock}");
    }
}

#[test]
fn tier_landlock_with_the_hosts_network_reaches_local_services() {
    for (landlock, separate) in [(5, false), (6, true)] {
        let plan = plan(Tier::Landlock, landlock, Network::Full);
        let holds = |name| why(&plan, GROUPS, name).0;
        assert_eq!(
            [
                holds("outside_network_unreachable"),
                holds("host_loopback_unreachable"),
                holds("local_services_unreachable"),
                holds("abstract_sockets_separate"),
            ],
            [false, false, false, separate],
            "Landlock {landlock}"
        );
    }
}

#[test]
fn limits_of_a_whole_command_take_groups_or_a_namespace() {
    let memory = CgroupLimits { memory: true, processes: false };
    let processes = CgroupLimits { memory: false, processes: true };
    let cases = [
        (Tier::Full, NO_GROUPS, [false, true]),
        (Tier::Full, GROUPS, [true, true]),
        (Tier::Landlock, NO_GROUPS, [false, false]),
        (Tier::Landlock, memory, [true, false]),
        (Tier::Landlock, processes, [false, true]),
        (Tier::Landlock, GROUPS, [true, true]),
    ];
    for (tier, cgroup, expected) in cases {
        let plan = plan(tier, 7, Network::None);
        let holds = |name| why(&plan, cgroup, name).0;
        assert_eq!([holds("memory_limit"), holds("process_limit")], expected, "{tier} {cgroup:?}");
    }
}

/// A plan that no policy leads to: commands as root, behind Landlock alone.
fn plan_of_root(landlock: u32, network: Network) -> Plan {
    Plan { run_as: CommandUser::Server(ROOT), ..plan(Tier::Landlock, landlock, network) }
}

#[test]
fn only_root_itself_counts_as_privileged() {
    let other =
        |tier| Plan::new(&policy(Network::None, USER), &host(7, ROOT), tier).expect("a plan");
    for (plan, expected) in [
        (plan(Tier::Full, 7, Network::None), true),
        (plan(Tier::Landlock, 7, Network::None), true),
        (other(Tier::Full), true),
        (other(Tier::Landlock), true),
        (plan_of_root(7, Network::None), false),
    ] {
        let holds = why(&plan, GROUPS, "unprivileged_user").0;
        assert_eq!(holds, expected, "{} {:?}", plan.tier, plan.run_as);
    }
}

#[test]
fn root_under_an_old_landlock_can_cut_system_files_short() {
    for (landlock, expected) in [(1, false), (2, false), (3, true)] {
        let plan = plan_of_root(landlock, Network::None);
        assert_eq!(why(&plan, GROUPS, "system_read_only").0, expected, "Landlock {landlock}");
    }
}

#[test]
fn hooks_are_kept_by_a_mount_or_by_a_workspace_that_can_only_be_read() {
    use GitDirectory::{Absent, WithHooks, WithoutHooks};
    use WorkspaceAccess::{ReadOnly, ReadWrite};
    let cases = [
        (Tier::Full, WithHooks, ReadWrite, true),
        (Tier::Full, WithoutHooks, ReadWrite, false),
        (Tier::Full, Absent, ReadWrite, false),
        (Tier::Full, Absent, ReadOnly, true),
        (Tier::Landlock, WithHooks, ReadWrite, false),
        (Tier::Landlock, WithHooks, ReadOnly, true),
    ];
    for (tier, git_directory, access, expected) in cases {
        let policy = Policy { access, git_directory, ..policy(Network::None, USER) };
        let plan = Plan::new(&policy, &host(7, USER), tier).unwrap();
        let holds = why(&plan, GROUPS, "git_hooks_read_only").0;
        assert_eq!(holds, expected, "{tier} {git_directory:?} {access:?}");
    }
}

#[test]
fn without_a_sandbox_nothing_holds() {
    let names: Vec<_> = without_sandbox().iter().map(|one| one.name).collect();
    assert_eq!(not_enforced(&without_sandbox()), names);
    let sandboxed = guarantees(&plan(Tier::Full, 7, Network::None), GROUPS);
    assert_eq!(names, sandboxed.iter().map(|one| one.name).collect::<Vec<_>>());
}

#[test]
fn every_plan_answers_for_the_same_names() {
    let names = |plan: &Plan, cgroup| -> Vec<_> {
        guarantees(plan, cgroup).iter().map(|one| one.name).collect()
    };
    let expected = names(&plan(Tier::Full, 7, Network::None), GROUPS);
    for tier in [Tier::Full, Tier::Landlock] {
        for landlock in 1..=7 {
            for network in [Network::None, Network::Full] {
                let plan = plan(tier, landlock, network);
                assert_eq!(names(&plan, NO_GROUPS), expected);
                let all = guarantees(&plan, NO_GROUPS);
                let both = enforced(&all).len() + not_enforced(&all).len();
                assert_eq!(both, expected.len());
            }
        }
    }
    let mut unique = expected.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), expected.len());
}

fn printed(plan: &Plan, cgroup: CgroupLimits) -> String {
    let line = |one: Guarantee| {
        let mark = if one.holds { "yes" } else { "no " };
        format!("{mark} {}: {}\n", one.name, one.why)
    };
    guarantees(plan, cgroup).into_iter().map(line).collect()
}

#[test]
fn the_weakest_plan_says_what_is_missing_and_how_to_get_it() {
    insta::assert_snapshot!(printed(&plan_of_root(1, Network::Full), NO_GROUPS), @r"
    no  workspace_only_writes: keeping files outside from being cut short needs Landlock 3 (Linux 6.2) or tier full; this kernel has Landlock 1
    no  outside_metadata_unchanged: Landlock does not rule modes, times and owners: those of files of the same user can be changed; this needs tier full
    no  system_read_only: keeping root from cutting system files short needs Landlock 3 (Linux 6.2) or tier full; this kernel has Landlock 1
    no  truncate_limited: ruling truncate() needs Landlock 3 (Linux 6.2) or tier full; this kernel has Landlock 1
    no  device_ioctl_limited: ruling ioctl() on devices needs Landlock 5 (Linux 6.10) or tier full; this kernel has Landlock 1
    yes other_files_unreadable: Landlock: what the plan does not name cannot be opened
    no  other_files_hidden: Landlock lets names, sizes and times be looked up; this needs tier full
    yes server_records_unreadable: Landlock: what the plan does not name cannot be opened
    no  git_hooks_read_only: this needs a mount and so tier full; what changes is found by comparing after the command
    yes private_tmp: $TMPDIR is the workspace's own, and Landlock keeps /tmp shut
    no  processes_hidden: /proc is the host's, so command lines can be read; this needs tier full
    yes process_memory_unreadable: Landlock: memory, environment and descriptors of processes outside cannot be read
    no  signals_stay_inside: keeping signals inside needs Landlock 6 (Linux 6.12) or tier full; this kernel has Landlock 1
    no  kill_tree: the tree is walked and killed process by process, and one that forks fast enough can slip through; an exact kill needs Landlock 6 (Linux 6.12) or tier full; this kernel has Landlock 1
    yes ipc_separate: seccomp refuses System V objects and message queues
    no  private_hostname: the name of the host can be read; this needs tier full
    no  outside_network_unreachable: the policy gives the host's network; network none or loopback does not
    no  host_loopback_unreachable: the policy gives the host's network; network none or loopback does not
    no  local_services_unreachable: Landlock does not rule connecting to sockets that are files; this needs network none or tier full
    no  abstract_sockets_separate: with the host's network this needs Landlock 6 (Linux 6.12); this kernel has Landlock 1
    yes no_new_privileges: no_new_privs
    yes no_capabilities: all capabilities are given up, also for later programs
    no  unprivileged_user: commands run as root without its capabilities, and own its files; run Carrel as another user, give the workspace another owner, or use tier full
    yes dangerous_calls_refused: seccomp
    yes terminal_injection_refused: seccomp, and a session of its own
    yes set_user_id_files_refused: seccomp; the contents of one that is there already can be changed
    yes refused_calls_explained: seccomp notifies Carrel of them
    no  memory_limit: only each process by itself is limited, by RLIMIT_DATA; delegate a control group to Carrel (systemd: Delegate=yes)
    no  process_limit: nothing counts them; delegate a control group to Carrel (systemd: Delegate=yes), or use tier full
    yes cpu_limit_per_process: RLIMIT_CPU
    yes file_size_limit: RLIMIT_FSIZE
    yes open_files_limit: RLIMIT_NOFILE
    ");
}

#[test]
fn the_strongest_plan_names_what_keeps_it() {
    insta::assert_snapshot!(printed(&plan(Tier::Full, 7, Network::None), GROUPS), @r"
    yes workspace_only_writes: a root directory of its own, in which only the workspace, /tmp, /dev/shm and what the operator named can be changed
    yes outside_metadata_unchanged: files outside are not there, or their mounts are read-only
    yes system_read_only: read-only mounts
    yes truncate_limited: read-only mounts
    yes device_ioctl_limited: a /dev of its own, and no devices elsewhere
    yes other_files_unreadable: a root directory of its own
    yes other_files_hidden: a root directory of its own
    yes server_records_unreadable: a root directory of its own
    yes git_hooks_read_only: a read-only mount over .git/hooks
    yes private_tmp: /tmp and /dev/shm are directories of the workspace's own
    yes processes_hidden: a process namespace, with its own /proc
    yes process_memory_unreadable: a process namespace
    yes signals_stay_inside: a process namespace
    yes kill_tree: a process namespace, which ends with its first process
    yes ipc_separate: an IPC namespace for each command
    yes private_hostname: a UTS namespace
    yes outside_network_unreachable: a network namespace without an interface, and seccomp
    yes host_loopback_unreachable: a network namespace of the workspace's own
    yes local_services_unreachable: the sockets of services are not in its root directory
    yes abstract_sockets_separate: a network namespace of the workspace's own
    yes no_new_privileges: no_new_privs
    yes no_capabilities: all capabilities are given up, also for later programs
    yes unprivileged_user: the user that Carrel runs as, who is not root
    yes dangerous_calls_refused: seccomp
    yes terminal_injection_refused: seccomp, and a session of its own
    yes set_user_id_files_refused: seccomp; the contents of one that is there already can be changed
    yes refused_calls_explained: seccomp notifies Carrel of them
    yes memory_limit: a control group for each command
    yes process_limit: a control group for each command
    yes cpu_limit_per_process: RLIMIT_CPU
    yes file_size_limit: RLIMIT_FSIZE
    yes open_files_limit: RLIMIT_NOFILE
    ");
}
