//! The operator's terminal, from which Carrel is started and into which nothing may be typed.

use serde_json::{Value, json};

use super::{CANARY, PYTHON, Scenario, Tier, scenes};

const TERMINAL: &str = include_str!("probes/terminal.py");

/// Runs a line of a shell that has a terminal, and returns what appeared there.
fn in_terminal(scenario: &Scenario, line: &str, arguments: &[&str]) -> String {
    let quoted: Vec<String> =
        arguments.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
    let mut command = scenario.host("script");
    command.args(["-qec", &format!("set -- {}; {line}", quoted.join(" ")), "/dev/null"]);
    command.env("SHELL", "/bin/bash");
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Makes the probe under `carrel exec` in a terminal.
fn attack(scenario: &Scenario, own: bool) -> Value {
    let workspace = scenario.workspace();
    let carrel = scenario.path("carrel");
    let line = "\"$1\" exec --tier \"$2\" --workspace \"$3\" -- \"$4\" -c \"$5\" \
                \"{\\\"own\\\": $6, \\\"terminal\\\": \\\"$(tty)\\\"}\" 2>/dev/null";
    let text = super::whole(TERMINAL);
    let own = own.to_string();
    let arguments = [
        carrel.to_str().unwrap(),
        scenario.tier.name(),
        workspace.to_str().unwrap(),
        PYTHON,
        &text,
        &own,
    ];
    let shown = in_terminal(scenario, line, &arguments);
    serde_json::from_str(&shown).expect(&shown)
}

/// Shows that the terminal is one, and that the call reaches it.
fn assert_typed_outside(scenario: &Scenario) {
    let line = "\"$1\" -c \"$2\" '{\"own\": false, \"terminal\": \"\"}'";
    let shown = in_terminal(scenario, line, &[PYTHON, &super::whole(TERMINAL)]);
    let json = &shown[shown.find('{').expect(&shown)..=shown.rfind('}').expect(&shown)];
    let seen: Value = serde_json::from_str(json).expect(&shown);
    assert_eq!(seen["are terminals"], json!([true, true, true]));
    // Kernels can be told to refuse it to everybody, with this error.
    let came = seen["controlling terminal"].as_str().unwrap();
    assert!(came == "done" || came == "EIO", "{came}");
}

/// Names out of a hostile repository must not reach the operator's terminal as they are.
fn assert_shown_plainly(tier: Tier) {
    for scenario in scenes(tier) {
        let line = format!(
            "git init -q; git config \"alias.$(printf 'x\\033]0;{CANARY}\\007')y\" '!evil'
             printf '[url \"\\033]0;{CANARY}\\007\"]\\n\\tinsteadOf = x\\n' >> .git/config
             mkdir -p .git/hooks
             printf '#!/bin/sh\\n' > \".git/hooks/$(printf 'x\\033]0;{CANARY}\\007')\"
             cat \"$(printf '/x\\033]0;{CANARY}\\007')\" 2>/dev/null"
        );
        let mut command = scenario.carrel(&["exec", "--tier", tier.name(), "--workspace"]);
        command.arg(scenario.workspace()).args(["--", "bash", "-c", &line]);
        let output = command.output().unwrap();
        let notes = String::from_utf8(output.stderr).unwrap();
        assert!(notes.contains("restored"), "{notes}");
        assert!(!notes.contains('\x1b') && !notes.contains('\x07'), "{notes:?}");
    }
}

mod full {
    use super::*;

    #[test]
    fn seccomp_and_a_session_of_its_own_keep_the_terminal_from_being_typed_into() {
        for scenario in scenes(Tier::Full) {
            assert_typed_outside(&scenario);
            let expected = json!({
                "are terminals": [false, false, false],
                "controlling terminal": "ENXIO",
                // Terminals of its own, among which the operator's is not.
                "operator's terminal": "ENOENT",
                "own terminal": "EPERM",
                "TIOCSTI 0": "EPERM", "TIOCSTI 1": "EPERM", "TIOCSTI 2": "EPERM",
                "TIOCLINUX": "EPERM", "TIOCSETD": "EPERM",
            });
            assert_eq!(attack(&scenario, true), expected, "{:?}", scenario.who);
        }
    }

    #[test]
    fn notes_about_a_command_show_its_control_characters() {
        assert_shown_plainly(Tier::Full);
    }
}

mod landlock {
    use super::*;

    #[test]
    fn seccomp_and_a_session_of_its_own_keep_the_terminal_from_being_typed_into() {
        for scenario in scenes(Tier::Landlock) {
            assert_typed_outside(&scenario);
            let expected = json!({
                "are terminals": [false, false, false],
                "controlling terminal": "ENXIO",
                "operator's terminal": "EACCES",
                "TIOCSTI 0": "EPERM", "TIOCSTI 1": "EPERM", "TIOCSTI 2": "EPERM",
                "TIOCLINUX": "EPERM", "TIOCSETD": "EPERM",
            });
            assert_eq!(attack(&scenario, false), expected, "{:?}", scenario.who);
        }
    }

    #[test]
    fn notes_about_a_command_show_its_control_characters() {
        assert_shown_plainly(Tier::Landlock);
    }
}
