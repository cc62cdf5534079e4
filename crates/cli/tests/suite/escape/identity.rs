//! Users and rights: becoming root, gaining capabilities, leaving something behind that lends them.

use std::os::unix::fs::PermissionsExt;

use rustix::process::geteuid;
use serde_json::{Value, json};

use super::{NOBODY, OWNER, Scenario, Tier, Who, scenes, set_mode};

const MODES: &str = include_str!("probes/modes.py");
const IDENTITY: &str = include_str!("probes/identity.py");

/// Nothing lends its owner afterwards, whatever a probe was told.
fn assert_nothing_lends(scenario: &Scenario) {
    for path in scenario.names_below("workspace") {
        let mode = path.symlink_metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o6000, 0, "{} has mode {mode:o}", path.display());
    }
}

fn assert_modes_refused(tier: Tier) {
    for scenario in scenes(tier) {
        let outside = scenario.outside(MODES, &json!({}));
        for call in ["fchmod", "fchmodat", "openat", "mknodat"] {
            assert_eq!(outside[call], "done", "{call}");
        }
        for path in scenario.names_below("workspace") {
            std::fs::remove_file(path).unwrap();
        }
        let seen = scenario.inside(MODES, &json!({}));
        for (call, came) in seen.as_object().unwrap() {
            let expected = if call == "openat2" { "ENOSYS" } else { "EPERM" };
            assert_eq!(came, expected, "{call} as {:?}", scenario.who);
        }
        assert_nothing_lends(&scenario);
    }
}

fn assert_nobody_else(tier: Tier) {
    for scenario in scenes(tier) {
        let mut seen = scenario.inside(IDENTITY, &json!({}));
        for attack in ["setuid", "setgid", "setresuid", "setreuid", "setgroups", "chown"] {
            let came = seen[attack].take();
            // Where root is nobody at all, its number is not even a valid one.
            assert!(came == "EPERM" || came == "EINVAL", "{attack} as {:?}: {came}", scenario.who);
        }
        let users: Vec<u64> =
            seen["kernel's user"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
        let groups = seen["groups"].take();
        assert_eq!(groups.as_array().unwrap().iter().filter(|group| **group == 0).count(), 0);
        for right in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(seen[right], "0", "{right}");
        }
        assert_eq!((&seen["NoNewPrivs"], &seen["Seccomp"]), (&json!("1"), &json!("2")));
        match (tier, scenario.who) {
            (Tier::Full, Who::Root) => {
                assert_eq!(seen["user"], json!([1000, 1000, 1000]));
                assert!(users[0] >= 2_000_000_000, "{users:?}");
            }
            (Tier::Full, Who::Ordinary) => {
                assert_eq!(users, [u64::from(scenario.carrel_user())]);
            }
            (Tier::Landlock, Who::Root) => assert_eq!(seen["user"], json!([OWNER, OWNER, OWNER])),
            (Tier::Landlock, Who::Ordinary) => {
                let user = scenario.carrel_user();
                assert_eq!(seen["user"], json!([user, user, user]));
            }
        }
    }
}

/// Puts a copy of `id` into the workspace that lends root, as an operator's careless build might.
fn plant_lending_program(scenario: &Scenario) -> bool {
    let program = scenario.workspace().join("id");
    std::fs::copy("/usr/bin/id", &program).unwrap();
    super::own(&program, 0);
    set_mode(&program, 0o6755);
    let mut control = scenario.host_as(NOBODY, &program);
    let output = control.arg("-u").output().unwrap();
    // On a file system that lends nobody there is nothing to be tried.
    output.stdout == b"0\n"
}

fn assert_nothing_borrowed(tier: Tier) {
    carrel_skip::needs!(Root);
    for scenario in scenes(tier) {
        if !plant_lending_program(&scenario) {
            carrel_skip::unavailable("a temporary directory that honours set-user-id");
            continue;
        }
        let answer = scenario.line("./id -u; ./id -g; ./id -ru; ./id -rg; ./id -G");
        let zeros = answer.stdout().split_whitespace().filter(|id| *id == "0").count();
        assert_eq!((answer.stdout().lines().count(), zeros), (5, 0), "{}", answer.stdout());
    }
}

/// Starts a program of the system that lends root, and tells as whom it runs while it waits for a
/// password that never comes.
const BORROW: &str = "su root -c true < <(exec sleep 1 2> /dev/null) > /dev/null 2>&1 & program=$!
    for turn in {1..100}; do
        read -r name < /proc/$program/comm; [ $name = su ] && break; sleep 0.01
    done
    sleep 0.05; while read -r field real effective rest; do
        [ $field = Uid: ] && echo $name $effective
    done < /proc/$program/status; kill $program";

fn assert_system_programs_lend_nothing(tier: Tier) {
    for scenario in scenes(tier) {
        let user = if geteuid().is_root() { NOBODY } else { scenario.carrel_user() };
        let control = scenario.host_as(user, "bash").args(["-c", BORROW]).output().unwrap();
        if control.stdout != b"su 0\n" {
            carrel_skip::unavailable("a set-user-id su");
            continue;
        }
        let answer = scenario.line(BORROW);
        let lent = answer.stdout().trim();
        assert!(lent.starts_with("su ") && lent != "su 0", "{:?}: {lent:?}", scenario.who);
    }
}

mod full {
    use super::*;

    #[test]
    fn seccomp_refuses_to_make_files_that_lend_their_owner_and_devices() {
        assert_modes_refused(Tier::Full);
    }

    #[test]
    fn user_namespace_and_no_new_privileges_leave_nobody_to_become() {
        assert_nobody_else(Tier::Full);
    }

    #[test]
    fn nosuid_mounts_and_no_new_privileges_borrow_nothing_from_a_lending_program() {
        assert_nothing_borrowed(Tier::Full);
    }

    #[test]
    fn nosuid_mounts_and_no_new_privileges_borrow_nothing_from_the_system() {
        assert_system_programs_lend_nothing(Tier::Full);
    }
}

mod landlock {
    use super::*;

    #[test]
    fn seccomp_refuses_to_make_files_that_lend_their_owner_and_devices() {
        assert_modes_refused(Tier::Landlock);
    }

    #[test]
    fn no_new_privileges_and_no_capabilities_leave_nobody_to_become() {
        assert_nobody_else(Tier::Landlock);
    }

    #[test]
    fn no_new_privileges_borrow_nothing_from_a_lending_program() {
        assert_nothing_borrowed(Tier::Landlock);
    }

    #[test]
    fn no_new_privileges_borrow_nothing_from_the_system() {
        assert_system_programs_lend_nothing(Tier::Landlock);
    }
}
