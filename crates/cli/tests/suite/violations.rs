//! `lifecycle.sandbox.violation`: one event for each refusal, whatever it came through. Tools are called over
//! MCP and the command line here; routes of the API are in `service::violations`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::Run;
use crate::conductor::ConductorFixture;
use crate::interfaces::Interface;
use crate::test_environment::TestEnvironment;

/// The promise is 100 ms after the reply; the rest is for a busy machine.
const PROMPTLY: Duration = Duration::from_secs(5);

/// What is compared of an event: operation, layer and code.
pub(crate) type Row = (String, String, Option<String>);

pub(crate) fn refused(tool: &str, code: &str) -> Row {
    (tool.to_owned(), "argument".to_owned(), Some(code.to_owned()))
}

pub(crate) fn denied(tool: &str) -> Row {
    (tool.to_owned(), "kernel".to_owned(), None)
}

/// The violations in an audit log.
pub(crate) struct Violations(PathBuf);

impl Violations {
    /// Those of the operator's own log.
    pub(crate) fn of_operator(test_env: &TestEnvironment) -> Self {
        Self::in_directory(&test_env.path("state/carrel"))
    }

    pub(crate) fn in_directory(directory: &Path) -> Self {
        Self(directory.join("events.jsonl"))
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|event| event["event"] == "lifecycle.sandbox.violation").collect()
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let row = |event: &Value| {
            let name = |field: &str| text(&event[field]).unwrap_or_default();
            (name("tool"), name("layer"), text(&event["code"]))
        };
        self.events().iter().map(row).collect()
    }

    /// Waits until there are as many, and returns the last of them.
    pub(crate) fn until(&self, count: usize) -> Value {
        let deadline = Instant::now() + PROMPTLY;
        loop {
            let events = self.events();
            if events.len() >= count {
                return events.last().cloned().unwrap_or_default();
            }
            assert!(Instant::now() < deadline, "{} of {count}: {events:?}", events.len());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn every_kind_of_refusal_of_a_tool_is_one_event_over_every_interface() {
    let calls = [
        ("Read", json!({ "file_path": "../x" }), "E_SANDBOX_VIOLATION"),
        ("shell_run", json!({ "cmd": "cat", "args": ["/etc/hosts"] }), "E_SANDBOX_VIOLATION"),
        ("Bash", json!({ "command": "true", "cwd": "../.." }), "E_SANDBOX_VIOLATION"),
        ("Bash", json!({ "command": "sudo true" }), "E_COMMAND_REFUSED"),
        ("Bash", json!({ "command": "true", "network": "full" }), "E_NETWORK_REFUSED"),
        ("git", json!({ "operation": "status", "args": "--upload-pack=x" }), "E_GIT_REFUSED"),
        ("Write", json!({ "file_path": ".git/hooks/pre-commit", "content": "x" }), "E_RUNS_LATER"),
    ];
    for interface in Interface::ALL {
        let test_env = TestEnvironment::usual();
        test_env.write(".git/HEAD", "ref: refs/heads/main\n");
        let workspace = test_env.workspace();
        let violations = Violations::of_operator(&test_env);
        let mut session = interface.open(&test_env, &["--workspace", workspace.to_str().unwrap()]);
        for (number, (tool, arguments, code)) in calls.iter().enumerate() {
            let answer = session.call(tool, arguments.clone());
            assert_eq!(answer.refused().0, *code, "{interface:?} {tool} {arguments}");
            let event = violations.until(number + 1);
            assert_eq!(event["workspace"], "workspace", "{event}");
            assert_eq!(event["interface"], interface.name(), "{event}");
        }
        drop(session);
        let expected: Vec<_> = calls.iter().map(|(tool, _, code)| refused(tool, code)).collect();
        assert_eq!(violations.rows(), expected, "{interface:?}");
    }
}

#[test]
fn a_call_about_every_workspace_is_one_event_for_each_that_refuses() {
    let test_env = TestEnvironment::usual();
    for name in ["one", "two"] {
        std::fs::create_dir(test_env.path(name)).unwrap();
    }
    let (one, two) = (test_env.path("one"), test_env.path("two"));
    let spec = format!("one={},two={}:ro", one.display(), two.display());
    let violations = Violations::of_operator(&test_env);
    let mut session = Interface::Stdio.open(&test_env, &["--workspaces", &spec]);
    session.call("Grep", json!({ "pattern": "x", "path": "../", "workspace": "all" }));
    violations.until(2);
    let write = json!({ "file_path": "a", "content": "x", "workspace": "two" });
    assert_eq!(session.call("Write", write).refused().0, "E_READ_ONLY");
    violations.until(3);
    let events = violations.events();
    let workspaces: Vec<_> = events.iter().map(|event| &event["workspace"]).collect();
    assert_eq!(workspaces, [&json!("one"), &json!("two"), &json!("two")]);
    let expected = ["Grep", "Grep"].map(|tool| refused(tool, "E_SANDBOX_VIOLATION")).to_vec();
    let expected = [expected, vec![refused("Write", "E_READ_ONLY")]].concat();
    assert_eq!(violations.rows(), expected);
}

#[test]
fn a_refusal_of_exec_is_one_event() {
    let test_env = TestEnvironment::usual();
    let violations = Violations::of_operator(&test_env);
    let limited = test_env.policy("network_limit = \"none\"\n");
    let own = test_env.workspace().join(".carrel");
    let cases: [(&[&str], Row); 6] = [
        (&["--cwd", "../..", "--", "true"], refused("exec", "E_SANDBOX_VIOLATION")),
        (&["--preset", "denylist", "-c", "sudo true"], refused("exec", "E_COMMAND_REFUSED")),
        (
            &["--preset", "denylist", "--", "cat", "/etc/hosts"],
            refused("exec", "E_SANDBOX_VIOLATION"),
        ),
        (
            &["--policy", &limited[1], "--network", "full", "--", "true"],
            refused("exec", "E_NETWORK_REFUSED"),
        ),
        (&["--", "touch", "/usr/planted"], denied("exec")),
        (&["-c", "exec 3<>/dev/tcp/127.0.0.1/9"], denied("exec")),
    ];
    let mut expected = Vec::new();
    for (options, row) in cases {
        for json in [&[][..], &["--json"]] {
            Run::of(test_env.exec(&[json, options].concat()));
            expected.push(row.clone());
            assert_eq!(violations.rows(), expected, "{options:?}");
        }
    }
    let events = violations.events();
    let workspace = test_env.workspace();
    assert_eq!(events.last().unwrap()["workspace"], workspace.to_str().unwrap());
    assert_eq!(events[0]["interface"], "cli");
    // A directory of Carrel itself is no workspace.
    std::fs::create_dir(&own).unwrap();
    for program in [&["exec", "--workspace"][..], &["mcp", "--workspace"], &["tool", "--workspace"]]
    {
        let mut command = test_env.carrel();
        command.args(program).arg(&own);
        if program[0] == "exec" {
            command.args(["--", "true"]);
        }
        Run::of(command);
        expected.push(refused(program[0], "E_SANDBOX_VIOLATION"));
        assert_eq!(violations.rows(), expected, "{program:?}");
    }
    // A command that keeps within its boundary costs no file.
    let quiet = TestEnvironment::usual();
    Run::of(quiet.exec(&["--", "true"]));
    assert!(!quiet.path("state/carrel/events.jsonl").exists());
}

#[test]
fn a_refusal_of_an_agent_a_hook_or_a_tool_of_the_conductor_is_one_event() {
    let fixture = ConductorFixture::with(
        "hooks: {sandbox: true, before_run: 'touch /usr/by-hook || true'}\nagent:\n  kind: command\n  max_turns: 1\n  network: none\n  command: touch /usr/by-agent || true",
    );
    fixture.issue("one");
    let run = fixture.once();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let violations = Violations::in_directory(&fixture.fixture.path("data"));
    violations.until(2);
    assert_eq!(violations.rows(), [denied("hook"), denied("agent")]);
    let events = violations.events();
    assert_eq!(
        (&events[1]["workspace"], &events[1]["interface"]),
        (&json!("CAR-1"), &json!("agent"))
    );

    let fixture = crate::conductor::tools_fixture(
        "  tools: [default]\n  network: none",
        r#"use Read '{"file_path":"../CAR-2/secret"}'; hear
        use Bash '{"command":"touch /usr/x"}'; hear
        use Bash '{"command":"true","network":"full"}'; hear"#,
    );
    let run = fixture.once();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let violations = Violations::in_directory(&fixture.fixture.path("data"));
    violations.until(3);
    let expected = [
        refused("Read", "E_SANDBOX_VIOLATION"),
        denied("Bash"),
        refused("Bash", "E_NETWORK_REFUSED"),
    ];
    assert_eq!(violations.rows(), expected);
}
