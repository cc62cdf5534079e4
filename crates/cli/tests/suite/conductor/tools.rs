//! Carrel's own tools, used by the agents of issues from behind their sandbox.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use carrel_testkit::processes::processes_with;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::ConductorFixture;
use crate::network_cap::HostService;
use crate::{Run, eventually};

/// An agent that speaks to `carrel mcp` as clients do, and keeps what it is answered outside.
const AGENT: &str = r#"#!/bin/bash
coproc RELAY { exec carrel mcp; }
id=0
say() { printf '%s\n' "$1" >&"${RELAY[1]}"; }
hear() { read -r line <&"${RELAY[0]}"; printf '%s\n' "$line" >> OUTSIDE/answers; }
ask() { id=$((id + 1)); say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"method\":\"$1\",\"params\":$2}"; }
use() { ask tools/call "{\"name\":\"$1\",\"arguments\":$2}"; }
ask initialize '{"protocolVersion":"2025-11-25","clientInfo":{"name":"scripted"}}'; hear
"#;

/// An fixture whose agent follows a script.
pub(crate) fn fixture(settings: &str, script: &str) -> ConductorFixture {
    let fixture = ConductorFixture::with(&format!(
        "agent:\n  kind: command\n  max_turns: 1\n{settings}\n  sandbox: {{writable: [OUTSIDE]}}\n  command: bash OUTSIDE/agent.sh"
    ));
    let outside = fixture.fixture.path("outside");
    let text = format!("{AGENT}{script}\n").replace("OUTSIDE", outside.to_str().unwrap());
    std::fs::write(outside.join("agent.sh"), text).unwrap();
    fixture.issue("one");
    fixture
}

fn answers(fixture: &ConductorFixture) -> Vec<Value> {
    let notes = fixture.notes("answers");
    notes.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the text of an answer, and whether it is an error.
fn told(answer: &Value) -> (&str, bool) {
    let result = &answer["result"];
    (result["content"][0]["text"].as_str().unwrap(), result["isError"] == true)
}

/// The same command with another copy of the program.
fn with_program(command: &Command, program: &Path) -> Command {
    let mut copy = Command::new(program);
    copy.args(command.get_args()).env_clear().stdin(Stdio::null());
    copy.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    copy.current_dir(command.get_current_dir().unwrap());
    copy
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn an_agent_has_the_tools_of_the_tracker_and_of_carrel_for_its_workspace_alone() {
    let fixture = fixture(
        "  tools: [default]",
        r#"ask tools/list '{}'; hear
        use Write '{"file_path":"made.txt","content":"by a tool\n"}'; hear
        use Read '{"file_path":"made.txt"}'; hear
        use Bash '{"command":"cat made.txt; ls OUTSIDE; pwd"}'; hear
        use Read '{"file_path":"made.txt","workspace":"CAR-2"}'; hear
        use Read '{"file_path":"../CAR-2/secret"}'; hear
        use workspaces '{}'; hear
        use issue_move '{"state":"Done"}'; hear"#,
    );
    std::fs::create_dir_all(fixture.fixture.root().join("CAR-2")).unwrap();
    std::fs::write(fixture.fixture.root().join("CAR-2/secret"), "not yours").unwrap();
    let run = fixture.once();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let answers = answers(&fixture);
    let names = names(&answers[1]);
    for name in ["issue_move", "Read", "Write", "Bash", "git", "run_tests"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(!names.contains(&"secret") && !names.contains(&"secrets_available"), "{names:?}");
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len(), "no two tools have the same name");
    assert!(!told(&answers[2]).1, "{}", answers[2]);
    assert!(told(&answers[3]).0.contains("by a tool"), "{}", answers[3]);
    assert_eq!(answers[3]["result"]["structuredContent"]["path"], "made.txt", "{}", answers[3]);
    let (text, is_error) = told(&answers[4]);
    let workspace = fixture.workspace("CAR-1");
    assert!(text.contains("by a tool") && text.contains(workspace.to_str().unwrap()), "{text}");
    assert!(
        text.contains("No such file") && !is_error,
        "what the agent may see is not seen: {text}"
    );
    let (text, is_error) = told(&answers[5]);
    assert!(is_error && text.contains("unknown workspace \"CAR-2\""), "{text}");
    let (text, is_error) = told(&answers[6]);
    assert!(is_error && !text.contains("not yours"), "{text}");
    let (text, _) = told(&answers[7]);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(!told(&answers[8]).1, "{}", answers[8]);
    assert_eq!(fixture.state("CAR-1"), "Done");
    let events = std::fs::read_to_string(fixture.fixture.path("data/events.jsonl")).unwrap();
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let called = events.iter().find(|event| event["tool"] == "Bash").unwrap();
    assert_eq!((&called["interface"], &called["workspace"]), (&json!("agent"), &json!("CAR-1")));
}

#[test]
fn tools_work_behind_walls_without_namespaces() {
    let fixture = fixture(
        "  tools: [default]",
        r#"use Write '{"file_path":"made.txt","content":"by a tool\n"}'; hear
        cat made.txt >> OUTSIDE/seen; echo more >> made.txt
        use Bash '{"command":"cat made.txt; id -u; ls OUTSIDE"}'; hear
        id -u >> OUTSIDE/seen"#,
    );
    if rustix::process::geteuid().is_root() {
        let file = fixture.fixture.path("WORKFLOW.md");
        let give =
            "hooks: {after_create: 'chown -R 2000000000:2000000000 . && chmod o+x ..'}\nagent:\n";
        let text = std::fs::read_to_string(&file).unwrap().replace("agent:\n", give);
        std::fs::write(file, text).unwrap();
        for (name, mode) in [("", 0o711), ("outside", 0o777)] {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(fixture.fixture.path(name), mode).unwrap();
        }
    }
    // The owner of the workspace may not pass through the build directory.
    let program = fixture.fixture.path("carrel");
    std::fs::copy(env!("CARGO_BIN_EXE_carrel"), &program).unwrap();
    let command = fixture.command(&["run", "--once", "--json", "--tier", "landlock"]);
    let run = Run::of(with_program(&command, &program));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let answers = answers(&fixture);
    assert!(!told(&answers[1]).1, "{}", answers[1]);
    let seen = fixture.notes("seen");
    let (text, user) = seen.split_once('\n').unwrap();
    assert_eq!(text, "by a tool", "the agent reads what a tool wrote");
    let (text, _) = told(&answers[2]);
    assert!(text.starts_with(&format!("by a tool\nmore\n{user}")), "{text}");
    assert!(text.contains("Permission denied"), "what the agent may see is not seen: {text}");
    assert_ne!(user.trim(), "0");
}

#[test]
fn an_agent_is_offered_nothing_of_carrel_unless_it_is_asked_for() {
    let fixture = fixture("", "ask tools/list '{}'; hear; use Bash '{\"command\":\"id\"}'; hear");
    let run = fixture.once();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let answers = answers(&fixture);
    assert_eq!(names(&answers[1]).iter().filter(|name| !name.starts_with("issue_")).count(), 0);
    assert!(told(&answers[2]).1, "{}", answers[2]);
    assert!(!fixture.fixture.path("data/events.jsonl").exists(), "it costs nothing");
}

#[test]
fn tools_reach_no_more_of_the_network_than_their_agent() {
    let fixture = fixture(
        "  tools: [workspace]\n  network: loopback",
        r#"ask tools/list '{}'; hear
        use workspace_exec '{"command":"echo here"}'; hear
        use workspace_git '{"operation":"clone","args":["https://example.com/x.git"]}'; hear"#,
    );
    let run = fixture.once();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let answers = answers(&fixture);
    assert!(names(&answers[1]).contains(&"workspace_exec"), "{}", answers[1]);
    assert!(told(&answers[2]).0.contains("here"), "{}", answers[2]);
    let result = answers[3]["result"].to_string();
    assert!(result.contains("E_NETWORK_REFUSED"), "{result}");
}

#[test]
fn commands_of_tools_ask_for_no_more_of_the_network_than_their_agent_has() {
    let host = HostService::start();
    let attack = format!(r#"{{"command":"{}","network":"full"}}"#, host.attack());
    let script = format!("use Bash '{attack}'; hear");
    let allowed = fixture("  tools: [default]", &script);
    assert_eq!(allowed.once().code, 0);
    assert!(host.was_reached(), "agent.network is `full` by default: {:?}", answers(&allowed));
    for network in ["none", "loopback"] {
        let capped = fixture(&format!("  tools: [default]\n  network: {network}"), &script);
        assert_eq!(capped.once().code, 0);
        let (text, is_error) = {
            let answers = answers(&capped);
            let (text, is_error) = told(&answers[1]);
            (text.to_owned(), is_error)
        };
        let expected = format!(
            "network full denied: the agent's network allows {network} at most; the operator decides"
        );
        assert_eq!((text, is_error), (expected, true));
        assert!(!host.was_reached(), "{network}");
    }
}

#[test]
fn tools_end_with_the_run_of_their_agent() {
    let word = format!("77{}", std::process::id());
    let fixture = fixture(
        "  tools: [default]",
        &format!(
            r#"use Bash '{{"command":"sleep {word}","run_in_background":true}}'; hear
            use Bash '{{"command":"touch begun; sleep {word}","timeout":500000}}'; hear; sleep 1000"#
        ),
    );
    let sleeps = format!("sleep\0{word}");
    let running = fixture.start();
    let begun = fixture.workspace("CAR-1").join("begun");
    running.until("both commands run", || begun.exists() && processes_with(&sleeps) == 2);
    fixture.shift("CAR-1", "Done");
    running.until("the workspace is gone", || !fixture.workspace("CAR-1").exists());
    assert_eq!(processes_with(&sleeps), 0, "before the workspace is removed, all of it has ended");
    assert_eq!(running.end(), 0);
}

#[test]
fn tools_end_with_a_carrel_that_is_killed() {
    let word = format!("78{}", std::process::id());
    let script = format!(
        r#"use Bash '{{"command":"sleep {word}","run_in_background":true}}'; hear
        use Bash '{{"command":"sleep {word}"}}'; hear"#
    );
    let fixture = fixture("  tools: [default]", &script);
    let sleeps = format!("sleep\0{word}");
    let mut running = fixture.start();
    running.until("both commands run", || processes_with(&sleeps) == 2);
    running.signal(rustix::process::Signal::KILL);
    running.wait();
    eventually("nothing is left", || processes_with(&sleeps) == 0);
}

#[test]
fn a_word_that_is_no_group_of_tools_is_named_with_those_that_are() {
    let fixture =
        ConductorFixture::with("agent: {kind: command, command: 'true', tools: [files, symbols]}");
    let run = crate::Run::of(fixture.command(&["check"]));
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("agent.tools"), "{}", run.stderr);
    let named = "unknown tool group \"symbols\"; the groups are files, shell, verify, git, code, snapshot, secrets, workspace";
    assert!(run.stderr.contains(named), "{}", run.stderr);
    fixture.write("agent: {kind: command, command: 'true', tools: [files, git]}");
    let run = crate::Run::of(fixture.command(&["check"]));
    let line = run.stdout.lines().find(|line| line.starts_with("agent.tools")).unwrap();
    assert!(line.contains("line ") && line.contains("git"), "{line}");
}
