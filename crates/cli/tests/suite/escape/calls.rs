//! System calls that no command needs, each of which has let somebody out of some sandbox.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Scenario, Tier, Who, scenes};

const CALLS: &str = include_str!("probes/calls.py");
const CONVENTIONS: &str = include_str!("probes/conventions.py");

/// Calls that do not exist inside, where the others are not permitted.
const ABSENT: [&str; 7] = [
    "clone3",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "openat2",
    "memfd_secret",
    "of the future",
];

/// What an ordinary user may do outside, so that the probe of it is known to work.
const ORDINARY: [&str; 13] = [
    "unshare user",
    "clone user",
    "clone3",
    "fsconfig",
    "io_uring_setup",
    "io_uring_enter",
    "keyctl",
    "add_key",
    "request_key",
    "kcmp",
    "openat2",
    "personality",
    "pidfd_getfd",
];

fn given(group: &str) -> Value {
    json!({ "group": group, "handle_of": "/etc/passwd" })
}

/// Makes a group of calls inside, where each is refused in the one interface that the filter has for it.
fn assert_refused(tier: Tier, group: &str) {
    for scenario in scenes(tier) {
        let seen = scenario.inside(CALLS, &given(group));
        let seen = seen.as_object().unwrap();
        for (call, came) in seen {
            let expected = if ABSENT.contains(&call.as_str()) { "ENOSYS" } else { "EPERM" };
            assert_eq!(came, expected, "{call} as {:?}", scenario.who);
        }
        assert_different_outside(&scenario, group, seen);
    }
}

/// Shows that it was the filter: outside, the same calls come to something else.
fn assert_different_outside(
    scenario: &Scenario,
    group: &str,
    inside: &serde_json::Map<String, Value>,
) {
    let user = match scenario.who {
        Who::Root => 0,
        Who::Ordinary => scenario.carrel_user(),
    };
    let outside = scenario.outside_as(user, CALLS, &given(group));
    let same = |call: &&String| outside[call.as_str()] == inside[call.as_str()];
    let same: BTreeSet<&str> = inside.keys().filter(same).map(String::as_str).collect();
    match scenario.who {
        // Which calls a kernel has, and a container leaves even root, is not for this test to say.
        Who::Root => assert!(same.len() <= inside.len() / 3, "nothing differs for {same:?}"),
        Who::Ordinary => {
            let hidden: Vec<_> = ORDINARY.iter().filter(|call| same.contains(**call)).collect();
            assert_eq!(hidden, Vec::<&&str>::new());
        }
    }
}

fn assert_conventions_refused(tier: Tier) {
    for scenario in scenes(tier) {
        let outside = scenario.outside_as(scenario.carrel_user(), CONVENTIONS, &json!({}));
        if !outside.as_object().unwrap().contains_key("int 0x80") {
            carrel_skip::unavailable("a second convention for system calls");
            continue;
        }
        let seen = scenario.inside(CONVENTIONS, &json!({}));
        let expected = json!({
            // Its numbers mean other calls, so the process is ended.
            "int 0x80": "SIGSYS",
            "x32": "ENOSYS",
            "x32 alone": "ENOSYS",
            "upper half": "EPERM",
            "upper half of flags": "EPERM",
        });
        assert_eq!(seen, expected, "{:?}; outside: {outside}", scenario.who);
    }
}

/// The kernel itself reports what its filter refused, so the layer is known, not guessed.
fn assert_reported(tier: Tier) {
    for scenario in scenes(tier) {
        let line = "mkdir m; unshare -U true; unshare -m true; nsenter -t $$ -u true;
                    mount --bind . m; mount -t sysfs x m; /usr/sbin/chroot . /none; mknod device b 7 0; true";
        let answer = scenario.line(line);
        let refused = answer.refused_by_seccomp();
        for call in ["unshare", "setns", "mount", "chroot", "mknodat"] {
            assert!(refused.contains(call), "{call}: {:#}", answer.0);
        }
        assert!(answer.stderr().contains("Operation not permitted"));
        assert!(!scenario.workspace().join("device").exists());
    }
}

mod full {
    use super::*;

    #[test]
    fn seccomp_refuses_namespaces_nested_users_included() {
        assert_refused(Tier::Full, "namespaces");
    }

    #[test]
    fn seccomp_refuses_mounts_and_ways_around_paths() {
        assert_refused(Tier::Full, "mounts");
    }

    #[test]
    fn seccomp_refuses_io_uring_keyrings_perf_userfaultfd_bpf_and_ptrace() {
        assert_refused(Tier::Full, "kernel");
    }

    #[test]
    fn seccomp_refuses_what_belongs_to_the_operator_of_the_machine() {
        assert_refused(Tier::Full, "machine");
    }

    #[test]
    fn seccomp_is_not_deceived_by_other_calling_conventions() {
        assert_conventions_refused(Tier::Full);
    }

    #[test]
    fn seccomp_reports_the_tools_that_it_stopped() {
        assert_reported(Tier::Full);
    }
}

mod landlock {
    use super::*;

    #[test]
    fn seccomp_refuses_namespaces_nested_users_included() {
        assert_refused(Tier::Landlock, "namespaces");
    }

    #[test]
    fn seccomp_refuses_mounts_and_ways_around_paths() {
        assert_refused(Tier::Landlock, "mounts");
    }

    #[test]
    fn seccomp_refuses_io_uring_keyrings_perf_userfaultfd_bpf_and_ptrace() {
        assert_refused(Tier::Landlock, "kernel");
    }

    #[test]
    fn seccomp_refuses_what_belongs_to_the_operator_of_the_machine() {
        assert_refused(Tier::Landlock, "machine");
    }

    #[test]
    fn seccomp_is_not_deceived_by_other_calling_conventions() {
        assert_conventions_refused(Tier::Landlock);
    }

    #[test]
    fn seccomp_reports_the_tools_that_it_stopped() {
        assert_reported(Tier::Landlock);
    }
}
