//! What Carrel itself has: descriptors and variables.

use std::process::{Command, Stdio};

use super::{Answer, CANARY, Scenario, Tier, Who, scenes};
use crate::Run;

/// `carrel exec` from a shell that leaves a directory and secrets of the host open.
fn with_open_descriptors(scenario: &Scenario, argv: &[&str]) -> Command {
    let secret = scenario.make_file("secret", CANARY);
    let mut command = scenario.host("bash");
    command.args(["-c", "exec 7<\"$0\" 8<\"$1\" 9<>\"$1\"; shift; exec \"$@\""]);
    command.arg(scenario.directory.path()).arg(secret).arg(scenario.path("carrel"));
    command.args(["exec", "--json", "--tier", scenario.tier.name(), "--workspace"]);
    command.arg(scenario.workspace()).arg("--").args(argv);
    command
}

fn assert_no_descriptor(tier: Tier) {
    for scenario in scenes(tier) {
        let mut control = scenario.host("bash");
        control
            .args(["-c", "exec 8<\"$0\"; exec cat <&8"])
            .arg(scenario.make_file("secret", CANARY));
        assert_eq!(Run::of(control).stdout, CANARY);
        let probe = "cat <&7; cat <&8; cat <&9; echo x >&9; cat /proc/self/fd/[3-9]* /dev/fd/[3-9]*
                     ls /proc/self/fd/7/ /proc/1/fd/; cd /proc/self/fd/7; for fd in /proc/self/fd/*; do
                         [ -e $fd ] && echo ${fd##*/}; done";
        let answer = Answer::of(with_open_descriptors(&scenario, &["bash", "-c", probe]));
        assert_eq!(answer.stdout(), "0\n1\n2\n", "{:?}", scenario.who);
        assert_eq!(std::fs::read_to_string(scenario.path("secret")).unwrap(), CANARY);
    }
}

fn assert_no_directory_as_input(tier: Tier) {
    for scenario in scenes(tier) {
        let mut command = scenario.exec_command(&[], &["bash", "-c", "cat /proc/self/fd/0/secret"]);
        scenario.make_file("secret", CANARY);
        let directory = std::fs::File::open(scenario.directory.path()).unwrap();
        let output = command.stdin(Stdio::from(directory)).output().unwrap();
        assert_eq!(output.status.code(), Some(125));
        assert_eq!(output.stdout, b"");
    }
}

/// What is open for reading stays so: it is no interface to write, and none to where it came from.
fn assert_input_is_only_input(tier: Tier) {
    for scenario in scenes(tier) {
        let secret = scenario.make_file("input", CANARY);
        let line = "cat; echo x > /proc/self/fd/0; echo x >> /dev/stdin; chmod 777 /proc/self/fd/0
                    ls /proc/self/fd/0/..; rm /proc/self/fd/0; true";
        let mut command = scenario.exec_command(&[], &["bash", "-c", line]);
        command.stdin(Stdio::from(std::fs::File::open(&secret).unwrap()));
        let answer = Answer::of(command);
        assert_eq!(answer.stdout(), CANARY, "{:?}", scenario.who);
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), CANARY, "{:?}", scenario.who);
    }
}

fn assert_no_variable(tier: Tier) {
    for scenario in scenes(tier) {
        let line =
            "env; export -p; cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/[0-9]*/task/*/environ";
        let mut command = scenario.exec_command(&["--env", "WANTED=yes"], &["bash", "-c", line]);
        let names = [
            "SECRET_CANARY",
            "DATABASE_URL",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "ANTHROPIC_API_KEY",
            "SSH_AUTH_SOCK",
            "LD_PRELOAD_CANARY",
            "CARREL_LOG_CANARY",
        ];
        command.envs(names.map(|name| (name, CANARY)));
        let answer = Answer::of(command);
        assert!(answer.stdout().contains("WANTED=yes"));
        assert!(!answer.stdout().contains(CANARY), "{:?}: {}", scenario.who, answer.stdout());
        for name in names {
            assert!(!answer.stdout().contains(name), "{name}");
        }
    }
}

mod full {
    use super::*;

    #[test]
    fn close_on_exec_leaves_three_descriptors() {
        assert_no_descriptor(Tier::Full);
    }

    #[test]
    fn confinement_refuses_a_directory_as_input() {
        assert_no_directory_as_input(Tier::Full);
    }

    #[test]
    fn path_rules_keep_a_file_that_is_read_from_being_written() {
        assert_input_is_only_input(Tier::Full);
    }

    #[test]
    fn environment_is_made_from_nothing() {
        assert_no_variable(Tier::Full);
    }
}

mod landlock {
    use super::*;

    #[test]
    fn close_on_exec_leaves_three_descriptors() {
        assert_no_descriptor(Tier::Landlock);
    }

    #[test]
    fn confinement_refuses_a_directory_as_input() {
        assert_no_directory_as_input(Tier::Landlock);
    }

    #[test]
    fn path_rules_keep_a_file_that_is_read_from_being_written() {
        assert_input_is_only_input(Tier::Landlock);
    }

    #[test]
    fn environment_is_made_from_nothing() {
        assert_no_variable(Tier::Landlock);
    }
}

/// A user who is not root reads the environment of its own processes, which is what makes the
/// scan above mean something.
#[test]
fn control_environment_of_own_processes_is_readable_outside() {
    for scenario in scenes(Tier::Full).into_iter().filter(|scenario| scenario.who == Who::Ordinary)
    {
        let mut command = scenario.host("bash");
        command.args(["-c", "tr '\\0' '\\n' < /proc/$$/environ"]).env("SECRET_CANARY", CANARY);
        assert!(Run::of(command).stdout.contains(CANARY));
    }
}
