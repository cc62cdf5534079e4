//! Processes outside: signals to them, their memory, their environment, their share of the machine.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::{CANARY, PYTHON, Scenario, Tier, scenes};

const SIGNALS: &str = include_str!("probes/signals.py");
const LOOK: &str = include_str!("probes/look.py");
const SCHEDULE: &str = include_str!("probes/schedule.py");

/// A process outside, of the same user as the command, with a secret in its environment.
struct Victim {
    child: Child,
    notes: BufReader<ChildStdout>,
    /// Its own, since others of its kind may be around.
    secret: String,
}

impl Victim {
    fn start(scenario: &Scenario) -> Self {
        let mut command = scenario.host_as(scenario.command_user(), PYTHON);
        let secret = format!("{CANARY}-{}", fastrand::u64(..));
        command.args(["-c", include_str!("probes/victim.py")]).env("SECRET", &secret);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let notes = BufReader::new(child.stdout.take().unwrap());
        let mut victim = Self { child, notes, secret };
        assert_eq!(victim.line(), "ready\n");
        victim
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.notes.read_line(&mut line).unwrap();
        line
    }

    /// What reached it, and whether it is scheduled as before; nothing if it is not there any more.
    fn notes(&mut self) -> String {
        let asked = self.child.stdin.as_mut().unwrap().write_all(b"\n");
        if asked.is_err() { String::new() } else { self.line() }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

const UNHARMED: &str = "[] as before\n";

fn signals(victim: &Victim, deadly: bool) -> Value {
    json!({ "victim": victim.id(), "inside": true, "deadly": deadly })
}

fn look(victim: &Victim) -> Value {
    json!({ "victim": victim.id(), "canary": victim.secret, "address": 0x1000 })
}

/// Shows that the probes reach a victim where nothing is in the interface.
fn assert_reachable_outside(scenario: &Scenario) {
    let mut victim = Victim::start(scenario);
    let given = json!({ "victim": victim.id(), "inside": false, "deadly": false });
    let seen = scenario.outside(SIGNALS, &given);
    for interface in ["probe", "plain", "thread", "queued", "by descriptor"] {
        assert_eq!(seen[interface], "done", "{interface}");
    }
    let notes = victim.notes();
    assert!(notes.contains("SIGUSR1"), "{notes}");
}

fn assert_visible_outside(scenario: &Scenario, victim: &Victim) {
    let seen = scenario.outside(LOOK, &look(victim));
    for name in ["environ", "maps", "cwd", "exe", "fd/0", "its tree", "ptrace", "kcmp"] {
        assert_eq!(seen[name], "done", "{name}");
    }
    // The right is there, and at that address is nothing.
    assert_eq!(seen["process_vm_readv"], "EFAULT");
    assert_eq!(seen["found"], json!([format!("{}/environ", victim.id())]));
}

fn assert_schedulable_outside(scenario: &Scenario) {
    let mut victim = Victim::start(scenario);
    let seen = scenario.outside(SCHEDULE, &json!({ "victim": victim.id() }));
    for what in ["priority", "policy", "processors", "disk", "limits"] {
        assert_eq!(seen[what], "done", "{what}");
    }
    assert!(victim.notes().contains("became"));
}

mod full {
    use super::*;

    #[test]
    fn pid_namespace_leaves_nobody_outside_to_signal() {
        for scenario in scenes(Tier::Full) {
            assert_reachable_outside(&scenario);
            let mut victim = Victim::start(&scenario);
            let seen = scenario.inside(SIGNALS, &signals(&victim, true));
            let expected = json!({
                "probe": "ESRCH", "plain": "ESRCH", "thread": "ESRCH", "queued": "ESRCH",
                "by descriptor": "ESRCH", "its group": "ESRCH", "deadly": "ESRCH",
                // The supervisor, in whose sight the kernel lets nobody end it.
                "parent": "EPERM",
            });
            assert_eq!(seen, expected, "{:?}", scenario.who);
            assert_eq!(victim.notes(), UNHARMED);
        }
    }

    #[test]
    fn pid_namespace_keeps_a_signal_to_everybody_inside() {
        for scenario in scenes(Tier::Full) {
            let mut victim = Victim::start(&scenario);
            // Not tried where it would reach anybody else.
            let answer = scenario.line(
                "[ $(ls -d /proc/[0-9]* | wc -l) -le 8 ] || exit
                 sleep 60 & kill -9 -1; wait; echo alone",
            );
            assert_eq!(answer.stdout(), "alone\n");
            assert_eq!(victim.notes(), UNHARMED);
        }
    }

    #[test]
    fn pid_namespace_and_seccomp_keep_memory_and_environment_of_others_unseen() {
        for scenario in scenes(Tier::Full) {
            let mut victim = Victim::start(&scenario);
            assert_visible_outside(&scenario, &victim);
            let mut seen = scenario.inside(LOOK, &look(&victim));
            for call in ["process_vm_readv", "process_vm_writev", "ptrace", "kcmp"] {
                assert_eq!(seen[call].take(), "EPERM", "{call}");
            }
            assert_eq!(seen["found"].take(), json!([]));
            let rest = seen.as_object().unwrap().values().filter(|came| !came.is_null());
            assert_eq!(rest.filter(|came| **came != "ENOENT").count(), 0, "{seen:#}");
            assert_eq!(victim.notes(), UNHARMED);
        }
    }

    #[test]
    fn pid_namespace_keeps_others_at_their_priority() {
        for scenario in scenes(Tier::Full) {
            assert_schedulable_outside(&scenario);
            let mut victim = Victim::start(&scenario);
            let seen = scenario.inside(SCHEDULE, &json!({ "victim": victim.id() }));
            let expected = json!({
                "priority": "ESRCH", "policy": "ESRCH", "processors": "ESRCH", "disk": "ESRCH",
                "limits": "EPERM", "who is killed first": "ENOENT", "name": "ENOENT",
            });
            assert_eq!(seen, expected, "{:?}", scenario.who);
            assert_eq!(victim.notes(), UNHARMED);
        }
    }

    #[test]
    fn pid_namespace_keeps_the_supervisor_from_being_looked_into() {
        for scenario in scenes(Tier::Full) {
            let answer = scenario.line(
                "set -- /proc/[0-9]*; echo $#
                 cat /proc/1/environ /proc/1/maps /proc/1/mem /proc/1/auxv
                 ls /proc/1/fd/ /proc/1/root/ /proc/1/cwd/ /proc/1/map_files/; readlink /proc/1/exe
                 for fd in 0 1 2 3 4 5 6 7 8 9; do cat /proc/1/fd/$fd; done; true",
            );
            // The supervisor and the shell.
            assert_eq!(answer.stdout(), "2\n", "{:?}", scenario.who);
        }
    }

    #[test]
    fn ipc_namespace_keeps_shared_memory_apart() {
        for scenario in scenes(Tier::Full) {
            let shared = Shared::make(&scenario);
            assert_eq!(shared.reached_from_inside(&scenario), "ENOENT", "{:?}", scenario.who);
        }
    }
}

mod landlock {
    use super::*;

    #[test]
    fn signal_scope_keeps_kill_inside() {
        for scenario in scenes(Tier::Landlock) {
            assert_reachable_outside(&scenario);
            let mut victim = Victim::start(&scenario);
            let deadly = scenario.promises("signals_stay_inside");
            let seen = scenario.inside(SIGNALS, &signals(&victim, deadly));
            let expected = json!({
                "probe": "EPERM", "plain": "EPERM", "thread": "EPERM", "queued": "EPERM",
                "by descriptor": "EPERM", "deadly": "EPERM", "parent": "EPERM",
                // It leads no group.
                "its group": "ESRCH",
            });
            assert_eq!(seen, expected, "{:?}", scenario.who);
            assert_eq!(victim.notes(), UNHARMED);
        }
    }

    #[test]
    fn ptrace_rules_and_seccomp_keep_memory_and_environment_of_others_unseen() {
        for scenario in scenes(Tier::Landlock) {
            let mut victim = Victim::start(&scenario);
            assert_visible_outside(&scenario, &victim);
            let mut seen = scenario.inside(LOOK, &look(&victim));
            for call in ["process_vm_readv", "process_vm_writev", "ptrace", "kcmp"] {
                assert_eq!(seen[call].take(), "EPERM", "{call}");
            }
            // Carrel's own command line names the secret; a command line is no secret here.
            let found = seen["found"].take();
            let found = found.as_array().unwrap().iter().map(|path| path.as_str().unwrap());
            assert_eq!(found.filter(|path| path.ends_with("environ")).count(), 0);
            let rest = seen.as_object().unwrap().values().filter(|came| !came.is_null());
            let refused = ["EACCES", "EPERM"].map(Value::from);
            assert_eq!(rest.filter(|came| !refused.contains(came)).count(), 0, "{seen:#}");
            assert_eq!(victim.notes(), UNHARMED);
        }
    }

    #[test]
    fn command_lines_are_seen_exactly_where_doctor_says_so() {
        for scenario in scenes(Tier::Landlock) {
            let victim = Victim::start(&scenario);
            let answer = scenario.line(&format!("cat /proc/{}/cmdline", victim.id()));
            let hidden = answer.stdout().is_empty();
            assert_eq!(hidden, scenario.promises("processes_hidden"), "{:?}", scenario.who);
        }
    }

    #[test]
    fn seccomp_keeps_others_at_their_priority_and_limits() {
        for scenario in scenes(Tier::Landlock) {
            assert_schedulable_outside(&scenario);
            let mut victim = Victim::start(&scenario);
            let seen = scenario.inside(SCHEDULE, &json!({ "victim": victim.id() }));
            let expected = json!({
                "priority": "EPERM", "policy": "EPERM", "processors": "EPERM", "disk": "EPERM",
                "limits": "EPERM", "who is killed first": "EACCES", "name": "EACCES",
            });
            assert_eq!(seen, expected, "{:?}", scenario.who);
            assert_eq!(victim.notes(), UNHARMED);
        }
    }

    #[test]
    fn shared_memory_is_reached_exactly_where_doctor_says_so() {
        for scenario in scenes(Tier::Landlock) {
            let shared = Shared::make(&scenario);
            let apart = shared.reached_from_inside(&scenario) != "done";
            assert_eq!(apart, scenario.promises("ipc_separate"), "{:?}", scenario.who);
        }
    }
}

/// Shared memory of System V, which outlives its maker and is removed in the end.
struct Shared {
    key: u32,
    user: u32,
}

const REACH_SHARED: &str = "attempt('reach', lambda: call('shmget', given['key'], 0, 0))";

impl Shared {
    fn make(scenario: &Scenario) -> Self {
        let key = fastrand::u32(1..0x7fff_ffff);
        let make = "attempt('make', lambda: call('shmget', given['key'], 4096, 0o1666))";
        let user = scenario.command_user();
        assert_eq!(scenario.outside_as(user, make, &json!({ "key": key }))["make"], "done");
        assert_eq!(scenario.outside(REACH_SHARED, &json!({ "key": key }))["reach"], "done");
        Self { key, user }
    }

    fn reached_from_inside(&self, scenario: &Scenario) -> String {
        let seen = scenario.inside(REACH_SHARED, &json!({ "key": self.key }));
        seen["reach"].as_str().unwrap().to_owned()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let mut command = std::process::Command::new("setpriv");
        if rustix::process::geteuid().as_raw() != self.user {
            let user = self.user;
            command.args([format!("--reuid={user}"), format!("--regid={user}")]);
            command.arg("--clear-groups");
        }
        command.args(["ipcrm", "-M", &self.key.to_string()]);
        assert!(command.status().unwrap().success());
    }
}
