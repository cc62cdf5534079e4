use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::Office;
use crate::Run;

const COMMAND: &str =
    "agent:\n  kind: command\n  max_turns: 1\n  sandbox: {writable: [OUTSIDE]}\n  command: ";

#[test]
fn the_example_works_an_issue_off() {
    let office = Office::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/local/WORKFLOW.md");
    std::fs::copy(example, office.world.path("WORKFLOW.md")).unwrap();
    office.issue("Greet the reader");
    let running = office.start();
    let workspace = office.world.path("home/carrel/CAR-1");
    running.until("the issue is done", || office.state("CAR-1") == "Done");
    running.until("the workspace is gone", || !workspace.exists());
    let origin = office.world.path("home/carrel-example.git");
    let mut git = std::process::Command::new("git");
    git.arg("-C").arg(origin).args(["log", "--all", "--format=%s"]);
    assert_eq!(Run::of(git).stdout, "CAR-1: take a note\n");
    let shown = Run::of(office.command(&["issue", "show", "CAR-1", "--json"]));
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["comments"][0]["author"], "hook");
    assert_eq!(running.end(), 0);
}

#[test]
fn once_runs_every_hook_and_tells_how_it_went() {
    let hooks = "hooks:\n  after_create: echo create >> OUTSIDE/hooks\n  before_run: echo before >> OUTSIDE/hooks\n  after_run: sleep 0.2; echo after >> OUTSIDE/hooks\n";
    let office =
        Office::with(&format!("{hooks}{COMMAND}cat > prompt.txt; date +%N; test ! -e fail"));
    office.issue("one");
    let run = office.once();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(
        serde_json::from_str::<Value>(&run.stdout).unwrap(),
        json!({ "succeeded": 1, "failed": [] })
    );
    assert_eq!(office.notes("hooks"), "create\nbefore\nafter\n");
    let prompt = std::fs::read_to_string(office.workspace("CAR-1").join("prompt.txt")).unwrap();
    assert_eq!(prompt, "Do CAR-1.");
    std::fs::write(office.workspace("CAR-1").join("fail"), "").unwrap();
    let run = office.once();
    assert_eq!((run.code, &run.error()["code"]), (1, &json!("E_RUN_FAILED")), "{}", run.stderr);
    assert_eq!(run.error()["detail"]["issues"], json!(["CAR-1"]));
    assert_eq!(office.notes("hooks"), "create\nbefore\nafter\nbefore\nafter\n");
    // Closed issues lose their workspaces at the next look.
    office.shift("CAR-1", "Done");
    assert_eq!(office.once().code, 0);
    assert!(!office.workspace("CAR-1").exists());
    assert_eq!(office.notes("hooks").lines().count(), 5);
}

#[test]
fn a_hook_that_fails_before_the_run_starts_no_agent() {
    let hooks = "hooks:\n  before_run: exit 3\n  after_run: echo after >> OUTSIDE/hooks\n";
    let office = Office::with(&format!("{hooks}{COMMAND}touch OUTSIDE/agent"));
    office.issue("one");
    let run = office.once();
    assert_eq!(run.code, 1);
    assert!(
        run.error()["message"].as_str().unwrap().contains("hook before_run failed with status 3")
    );
    assert_eq!(office.notes("hooks"), "after\n");
    assert!(!office.world.path("outside/agent").exists());
}

#[test]
fn neither_hooks_nor_agents_see_secrets_of_trackers() {
    let hooks = "hooks:\n  before_run: env > OUTSIDE/hook\n";
    let office = Office::with(&format!("{hooks}{COMMAND}env > OUTSIDE/agent"));
    office.issue("one");
    let mut command = office.command(&["run", "--once"]);
    command.env("LINEAR_API_KEY", "lin_hidden_value").env("GITHUB_TOKEN", "ghp_hidden_value");
    let run = Run::of(command);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for who in ["hook", "agent"] {
        let seen = office.notes(who);
        assert!(seen.contains("CARREL_ISSUE_IDENTIFIER=CAR-1"), "{who}: {seen}");
        assert!(!seen.contains("hidden"), "{who}: {seen}");
    }
}

#[test]
fn blockers_priorities_and_places_decide_who_is_first() {
    let office = Office::with(&format!(
        "{COMMAND}echo $CARREL_ISSUE_IDENTIFIER >> OUTSIDE/order\n  max_concurrent_agents: 1"
    ));
    office.issue("blocker");
    let new = |arguments: &[&str]| {
        let run = Run::of(office.command(&[&["issue", "new", "--title", "x"], arguments].concat()));
        assert_eq!(run.code, 0, "{}", run.stderr);
    };
    new(&["--blocked-by", "CAR-1", "--priority", "1"]);
    new(&["--priority", "2"]);
    new(&["--priority", "1"]);
    new(&["--state", "Backlog"]);
    let run = office.once();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(office.notes("order"), "CAR-4\nCAR-3\nCAR-1\n");
    office.shift("CAR-1", "Done");
    office.once();
    assert!(office.notes("order").ends_with("CAR-2\n") || office.notes("order").contains("CAR-2"));
}

#[test]
fn a_log_file_is_written_beside_the_lines() {
    let office = Office::with(&format!("{COMMAND}'true'"));
    office.issue("one");
    let logs = office.world.path("logs");
    let run = Run::of(office.command(&["run", "--once", "--logs-root", logs.to_str().unwrap()]));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = std::fs::read_to_string(logs.join("log/carrel.log")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let dispatched = lines.iter().find(|line| line["message"] == "Dispatched").unwrap();
    assert_eq!(dispatched["fields"]["issue_identifier"], "CAR-1");
    assert!(dispatched["at"].is_string());
    let started = lines.iter().find(|line| line["message"] == "Session started").unwrap();
    assert!(started["fields"]["session_id"].is_string(), "{started}");
    assert!(run.stderr.contains("INFO Dispatched"), "{}", run.stderr);
}

#[test]
fn what_cannot_be_started_says_why() {
    let office = Office::new();
    let run = Run::of(office.command(&["run", "--json"]));
    assert_eq!((run.code, &run.error()["code"]), (1, &json!("E_WORKFLOW_MISSING")));
    office.write("agent: {kind: command, command: 'sleep 100'}");
    office.issue("one");
    let running = office.start();
    running.until("it has begun", || running.log().contains("Dispatched"));
    let second = Run::of(office.command(&["run", "--json"]));
    assert_eq!((second.code, &second.error()["code"]), (1, &json!("E_WORKSPACE_BUSY")));
    let message = second.error()["message"].as_str().unwrap().to_owned();
    assert!(message.contains(&format!("process {}", running.child.id())), "{message}");
    assert_eq!(running.end(), 0);
}
