//! What the operator hears: the same events, whichever session a call came through.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::interfaces::Interface;
use crate::test_environment::TestEnvironment;

/// The promise is 100 ms after the reply; the rest is for a busy machine.
const PROMPTLY: Duration = Duration::from_millis(500);

/// The file of events of a environment.
struct Log(PathBuf);

impl Log {
    fn of(test_env: &TestEnvironment) -> Self {
        Self(test_env.path("state/carrel/events.jsonl"))
    }

    fn read(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        // A line may be half written at this moment.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.read().into_iter().filter(|event| event["event"] == kind).collect()
    }

    /// Waits until there are as many of a kind, and no longer than an operator would.
    fn until(&self, kind: &str, count: usize) -> Vec<Value> {
        let deadline = Instant::now() + PROMPTLY;
        loop {
            let found = self.of_kind(kind);
            if found.len() >= count {
                return found;
            }
            assert!(Instant::now() < deadline, "{kind}: {} of {count}: {found:?}", found.len());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Makes calls through a session and holds what is written against them.
fn hear(interface: Interface) {
    let test_env = TestEnvironment::usual();
    test_env.write(
        "Cargo.toml",
        "[package]\nname = \"probe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n",
    );
    test_env.write("src/lib.rs", "//! Nothing.\n");
    std::fs::create_dir(test_env.path("outside")).unwrap();
    std::fs::write(test_env.path("outside/secret"), "outside\n").unwrap();
    let (workspace, log) = (test_env.workspace(), Log::of(&test_env));
    let mut session = interface.open(&test_env, &["--workspace", workspace.to_str().unwrap()]);
    let calls = [
        ("Read", json!({ "file_path": "src/lib.rs" }), ("ok", Value::Null)),
        (
            "Read",
            json!({ "file_path": "../outside/secret" }),
            ("refused", "E_SANDBOX_VIOLATION".into()),
        ),
        ("Read", json!({ "file_path": "nope" }), ("failed", "E_NOT_FOUND".into())),
        ("profile", json!({}), ("ok", Value::Null)),
        (
            "shell_run",
            json!({ "cmd": "cat", "args": ["/etc/hosts"] }),
            ("refused", "E_SANDBOX_VIOLATION".into()),
        ),
        ("Bash", json!({ "command": "exit 7" }), ("ok", Value::Null)),
        ("Raed", json!({}), ("failed", "E_UNKNOWN_TOOL".into())),
    ];
    for (number, (tool, arguments, (outcome, code))) in calls.iter().enumerate() {
        session.call(tool, arguments.clone());
        let heard = log.until("tool.call", number + 1);
        assert_eq!(heard.len(), number + 1, "one for each call");
        let event = &heard[number];
        // Events repeat no text of the client's.
        let tool = if *tool == "Raed" { "unknown" } else { tool };
        assert_eq!(
            (&event["tool"], &event["interface"], &event["outcome"], &event["code"]),
            (&json!(tool), &json!(interface.name()), &json!(outcome), code),
            "{event}"
        );
        assert!(event["duration_ms"].as_f64().is_some_and(|time| time > 0.0), "{event}");
        assert!(event["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{event}");
        assert!(event["session"].as_str().is_some_and(|session| !session.is_empty()), "{event}");
    }

    let sandboxes = log.until("lifecycle.workspace.sandbox", 1);
    let event = &sandboxes[0];
    assert_eq!(
        (&event["workspace"], &event["sandbox_root"], &event["read_only"], &event["interface"]),
        (&json!("workspace"), &json!(workspace), &json!(false), &json!(interface.name()))
    );
    // A session enters a workspace once; each call of the command line is a session of its own.
    let entered = if interface == Interface::Cli { calls.len() - 1 } else { 1 };
    assert_eq!(sandboxes.len(), entered, "{sandboxes:?}");

    let profiles = log.until("lifecycle.workspace.profile", 1);
    assert_eq!(profiles.len(), 1, "{profiles:?}");
    let event = &profiles[0];
    assert_eq!(
        (&event["ecosystem"], &event["package_manager"], &event["directory"], &event["interface"]),
        (&json!("rust"), &json!("cargo"), &json!("."), &json!(interface.name()))
    );
    let test = event["test_command"].as_str().unwrap_or_default();
    assert!(test.starts_with("cargo "), "{event}");

    let violations = log.until("lifecycle.sandbox.violation", 2);
    let rows: Vec<_> = violations
        .iter()
        .map(|event| (event["tool"].clone(), event["layer"].clone(), event["code"].clone()))
        .collect();
    let row = |tool: &str| (json!(tool), json!("argument"), json!("E_SANDBOX_VIOLATION"));
    assert_eq!(rows, [row("Read"), row("shell_run")]);
    assert_eq!(violations[0]["detail"]["path"], "../outside/secret", "what was refused");
    drop(session);

    // Numbers grow by one within a process, and no event was lost.
    let all = log.read();
    assert!(all.iter().all(|event| event.get("lost").is_none()), "{all:?}");
    if interface != Interface::Cli {
        let numbers: Vec<_> = all.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
        assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
    }
    let written = std::fs::read_to_string(&log.0).unwrap();
    assert!(!written.contains("exit 7"), "events hold no arguments");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&log.0).unwrap());
    assert_eq!(mode & 0o077, 0, "nobody else may read it");
}

#[test]
fn every_call_is_heard_of_over_stdio() {
    hear(Interface::Stdio);
}

#[test]
fn every_call_is_heard_of_over_http() {
    hear(Interface::Http);
}

#[test]
fn every_call_is_heard_of_from_the_command_line() {
    hear(Interface::Cli);
}

/// What the sandbox keep from a command is heard of too, and says so.
#[test]
fn what_the_kernel_refuses_is_heard_of() {
    let test_env = TestEnvironment::usual();
    std::fs::create_dir(test_env.path("outside")).unwrap();
    std::fs::write(test_env.path("outside/secret"), "outside\n").unwrap();
    let (workspace, log) = (test_env.workspace(), Log::of(&test_env));
    let mut session =
        Interface::Stdio.open(&test_env, &["--workspace", workspace.to_str().unwrap()]);
    let answer = session.call("Bash", json!({ "command": "echo x > /etc/planted" }));
    let denials = answer.structured["denials"].as_array().cloned().unwrap_or_default();
    assert!(!denials.is_empty(), "{answer:?}");
    let event = log.until("lifecycle.sandbox.violation", 1).remove(0);
    assert_eq!((&event["tool"], &event["layer"]), (&json!("Bash"), &json!("kernel")), "{event}");
}

#[test]
fn effects_are_heard_of_over_every_interface() {
    for interface in Interface::ALL {
        let test_env = TestEnvironment::usual();
        test_env.write(
            "carrel.toml",
            "[profile]\nformat = [\"true\"]\nlint = [\"false\"]\ninstall = [\"false\"]\n",
        );
        let (workspace, log) = (test_env.workspace(), Log::of(&test_env));
        let mut session = interface.open(&test_env, &["--workspace", workspace.to_str().unwrap()]);
        for (tool, kind, object, has_errors) in [
            ("format", "lifecycle.effect.format", json!({ "files": ["."] }), false),
            ("run_lint", "lifecycle.effect.lint", json!({ "files": ["."] }), true),
            ("install", "lifecycle.effect.install", json!({ "command": "false" }), true),
        ] {
            session.call(tool, json!({}));
            let found = log.until(kind, 1);
            assert_eq!(found.len(), 1, "{found:?}");
            let (name, value) = object.as_object().unwrap().iter().next().unwrap();
            assert_eq!(
                (&found[0]["interface"], &found[0][name], &found[0]["has_errors"]),
                (&json!(interface.name()), value, &json!(has_errors)),
                "{found:?}"
            );
        }
    }
}

/// Work goes on where events cannot be kept.
#[test]
fn a_place_that_cannot_be_written_costs_events_and_no_call() {
    let test_env = TestEnvironment::usual();
    test_env.write("a", "x\n");
    std::fs::create_dir_all(test_env.path("state/carrel/events.jsonl")).unwrap();
    let workspace = test_env.workspace();
    for interface in Interface::ALL {
        let mut session = interface.open(&test_env, &["--workspace", workspace.to_str().unwrap()]);
        assert_eq!(
            session.call("Read", json!({ "file_path": "a" })).ok(),
            "1\tx\n",
            "{interface:?}"
        );
    }
}

/// `carrel events ARGUMENTS` and its lines.
fn printed(test_env: &TestEnvironment, arguments: &[&str]) -> Vec<String> {
    let mut command = test_env.carrel();
    let output = command.arg("events").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_operator_reads_the_log_with_filters() {
    let test_env = TestEnvironment::usual();
    test_env.write("a", "x\n");
    let other = test_env.path("other");
    std::fs::create_dir(&other).unwrap();
    let (workspace, other) = (test_env.workspace(), other.to_str().unwrap().to_owned());
    let workspace = workspace.to_str().unwrap();
    assert_eq!(printed(&test_env, &[]), Vec::<String>::new(), "no log yet");
    for (directory, path) in [(workspace, "a"), (workspace, "../secret"), (&other, "a")] {
        let mut session = Interface::Cli.open(&test_env, &["--workspace", directory]);
        session.call("Read", json!({ "file_path": path }));
    }
    let all = printed(&test_env, &[]);
    assert!(all.iter().any(|line| line.contains("Read ok  ")), "{all:?}");
    let mine = printed(&test_env, &["--workspace", workspace]);
    let theirs = printed(&test_env, &["--workspace", &other]);
    assert_eq!(mine.len() + theirs.len(), all.len(), "{all:?}");
    assert!(theirs.iter().any(|line| line.contains("Read failed [E_NOT_FOUND]")), "{theirs:?}");
    let violations = printed(&test_env, &["--violations", "--since", "1h"]);
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert!(violations[0].contains("VIOLATION Read refused [E_SANDBOX_VIOLATION]"));
    assert!(violations[0].contains("../secret"), "{violations:?}");
    let lines = printed(&test_env, &["--json"]);
    let events: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events, Log::of(&test_env).read(), "as they were written");
}

#[test]
fn following_goes_on_through_a_rotation() {
    let test_env = TestEnvironment::usual();
    let log = test_env.path("state/carrel/events.jsonl");
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    let line = |tool: &str| format!("{{\"event\":\"tool.call\",\"tool\":\"{tool}\"}}\n");
    std::fs::write(log.with_added_extension("1"), line("one")).unwrap();
    std::fs::write(&log, line("two")).unwrap();
    let mut command = test_env.carrel();
    command.args(["events", "--follow", "--json"]).stdout(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap() + "\n";
    assert_eq!((next(), next()), (line("one"), line("two")));
    std::fs::rename(&log, log.with_added_extension("1")).unwrap();
    // Half a line is no line yet.
    let third = line("three");
    let mut file = std::fs::File::create_new(&log).unwrap();
    file.write_all(&third.as_bytes()[..9]).unwrap();
    file.write_all(&third.as_bytes()[9..]).unwrap();
    assert_eq!(next(), line("three"));
    running.kill().unwrap();
    running.wait().unwrap();
}
