//! The kernel's own files, through which root on a machine is everything on it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Scenario, Tier, Who, scenes};

const MACHINE: &str = include_str!("probes/machine.py");

/// Files of `/proc`, which commands see in part.
const SETTINGS: [(&str, &str); 8] = [
    ("core_pattern", "/proc/sys/kernel/core_pattern"),
    ("modprobe", "/proc/sys/kernel/modprobe"),
    ("sysrq-trigger", "/proc/sysrq-trigger"),
    ("sysrq", "/proc/sys/kernel/sysrq"),
    ("binfmt_misc", "/proc/sys/fs/binfmt_misc/register"),
    ("overcommit", "/proc/sys/vm/overcommit_memory"),
    ("forwarding", "/proc/sys/net/ipv4/ip_forward"),
    ("interrupts", "/proc/irq/default_smp_affinity"),
];

/// Devices, which they do not see at all.
const DEVICES: [(&str, &str); 8] = [
    ("kmsg", "/dev/kmsg"),
    ("mem", "/dev/mem"),
    ("port", "/dev/port"),
    ("console", "/dev/console"),
    ("fuse", "/dev/fuse"),
    ("kvm", "/dev/kvm"),
    ("tun", "/dev/net/tun"),
    ("loop", "/dev/loop-control"),
];

/// What can be read, and would tell about the machine or its other users.
const READ: [(&str, &str); 5] = [
    ("kernel log", "/proc/kmsg"),
    ("memory", "/proc/kcore"),
    ("devices", "/sys/devices"),
    ("groups", "/sys/fs/cgroup"),
    ("device directory", "/dev/mapper"),
];

/// Whatever the machine has that cannot be named beforehand.
fn found() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
        let path = entry.path().join("release_agent");
        if path.exists() {
            found.insert(path.display().to_string(), path);
        }
    }
    for entry in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let path = PathBuf::from("/dev").join(entry.file_name());
        if path.exists() {
            found.insert(path.display().to_string(), path);
        }
    }
    for path in ["/sys/kernel/uevent_helper", "/sys/power/state", "/sys/fs/cgroup/cgroup.procs"] {
        if PathBuf::from(path).exists() {
            found.insert(path.to_owned(), path.into());
        }
    }
    found
}

fn given() -> Value {
    let named = SETTINGS.iter().chain(&DEVICES);
    let named = named.map(|(label, path)| ((*label).to_owned(), PathBuf::from(path)));
    let write: BTreeMap<_, _> = named.chain(found()).collect();
    let read: BTreeMap<_, _> = READ.into_iter().collect();
    json!({ "write": write, "read": read })
}

/// Shows that root opens what is tried inside.
fn assert_open_to_root(scenario: &Scenario) {
    if scenario.who == Who::Root {
        let write = json!({ "core_pattern": "/proc/sys/kernel/core_pattern" });
        let read = json!({ "devices": "/sys/devices" });
        let seen = scenario.outside_as(0, MACHINE, &json!({ "write": write, "read": read }));
        assert_eq!(seen, json!({ "core_pattern": "done", "devices": "done" }));
    }
}

fn is_setting(label: &str) -> bool {
    SETTINGS.iter().any(|(name, _)| *name == label)
}

mod full {
    use super::*;

    #[test]
    fn mount_namespace_has_no_devices_and_no_sys_and_its_proc_is_read_only() {
        for scenario in scenes(Tier::Full) {
            assert_open_to_root(&scenario);
            let seen = scenario.inside(MACHINE, &given());
            for (label, came) in seen.as_object().unwrap() {
                let refused: &[&str] = match label.as_str() {
                    // A file of `/proc` may also be missing from this kernel.
                    label if is_setting(label) => &["EACCES", "EROFS", "ENOENT"],
                    "kernel log" | "memory" => &["EACCES", "EPERM", "ENOENT"],
                    _ => &["ENOENT"],
                };
                let came = came.as_str().unwrap();
                assert!(refused.contains(&came), "{label} as {:?}: {came}", scenario.who);
            }
        }
    }

    #[test]
    fn mount_namespace_has_exactly_these_devices() {
        for scenario in scenes(Tier::Full) {
            let answer =
                scenario.line("cd /dev; echo *; ls -A /sys; find / -xdev -type b 2>/dev/null");
            let expected =
                "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero\n";
            assert_eq!(answer.stdout(), expected);
        }
    }

    #[test]
    fn read_only_proc_keeps_settings_of_the_process_and_the_namespace() {
        for scenario in scenes(Tier::Full) {
            let answer = scenario.line(
                "for file in /proc/self/oom_score_adj /proc/self/setgroups /proc/self/uid_map \
                     /proc/sys/kernel/hostname /proc/sys/user/max_user_namespaces \
                     /proc/sys/kernel/ns_last_pid /proc/sys/net/ipv4/ping_group_range; do
                     { : >> $file; } 2>/dev/null && echo $file; done; true",
            );
            assert_eq!(answer.stdout(), "", "{:?}", scenario.who);
        }
    }
}

mod landlock {
    use super::*;

    #[test]
    fn path_rules_shut_devices_and_sys_and_leave_proc_read_only() {
        for scenario in scenes(Tier::Landlock) {
            assert_open_to_root(&scenario);
            let seen = scenario.inside(MACHINE, &given());
            for (label, came) in seen.as_object().unwrap() {
                let came = came.as_str().unwrap();
                // What this kernel does not have cannot be opened either.
                let refused = ["EACCES", "EPERM", "ENOENT"];
                assert!(refused.contains(&came), "{label} as {:?}: {came}", scenario.who);
            }
            for label in ["core_pattern", "devices", "groups"] {
                assert_eq!(seen[label], "EACCES", "{label}");
            }
        }
    }
}
