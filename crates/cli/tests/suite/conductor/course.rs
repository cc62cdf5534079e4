use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::ConductorFixture;
use crate::Run;

const COMMAND: &str =
    "agent:\n  kind: command\n  max_turns: 1\n  sandbox: {writable: [OUTSIDE]}\n  command: ";

#[test]
fn the_example_works_an_issue_off() {
    let fixture = ConductorFixture::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/local/WORKFLOW.md");
    std::fs::copy(example, fixture.fixture.path("WORKFLOW.md")).unwrap();
    fixture.issue("Greet the reader");
    let running = fixture.start();
    let workspace = fixture.fixture.path("home/carrel/CAR-1");
    running.until("the issue is done", || fixture.state("CAR-1") == "Done");
    running.until("the workspace is gone", || !workspace.exists());
    let origin = fixture.fixture.path("home/carrel-example.git");
    let mut git = std::process::Command::new("git");
    git.arg("-C").arg(origin).args(["log", "--all", "--format=%s"]);
    assert_eq!(Run::of(git).stdout, "CAR-1: take a note\n");
    let shown = Run::of(fixture.command(&["issue", "show", "CAR-1", "--json"]));
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["comments"][0]["author"], "hook");
    assert_eq!(running.end(), 0);
}

#[test]
fn item_001_002_083_084_and_093_the_file_that_is_named_is_used_and_else_the_one_here() {
    let fixture = ConductorFixture::with(&format!("{COMMAND}echo here | tee -a OUTSIDE/used"));
    let here = fixture.fixture.path("WORKFLOW.md");
    std::fs::create_dir(fixture.fixture.path("flows")).unwrap();
    let named = std::fs::read_to_string(&here).unwrap().replace("echo here", "echo named");
    std::fs::write(fixture.fixture.path("flows/other.md"), named).unwrap();
    fixture.issue("one");
    for (file, used) in [(&["flows/other.md"][..], "named\n"), (&[], "named\nhere\n")] {
        let run = Run::of(fixture.command(&[&["run"], file, &["--once"]].concat()));
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(fixture.notes("used"), used);
    }
}

#[test]
fn item_088_and_100_once_runs_every_hook_and_tells_how_it_went() {
    let hooks = "hooks:\n  after_create: echo create >> OUTSIDE/hooks\n  before_run: echo before >> OUTSIDE/hooks\n  after_run: sleep 0.2; echo after >> OUTSIDE/hooks\n  before_remove: echo remove >> OUTSIDE/hooks\n";
    let fixture = ConductorFixture::with(&format!(
        "{hooks}{COMMAND}cat > prompt.txt; date +%N; test ! -e fail"
    ));
    fixture.issue("one");
    let run = fixture.once();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(
        serde_json::from_str::<Value>(&run.stdout).unwrap(),
        json!({ "succeeded": 1, "failed": [] })
    );
    assert_eq!(fixture.notes("hooks"), "create\nbefore\nafter\n");
    let prompt = std::fs::read_to_string(fixture.workspace("CAR-1").join("prompt.txt")).unwrap();
    assert_eq!(prompt, "Do CAR-1.");
    std::fs::write(fixture.workspace("CAR-1").join("fail"), "").unwrap();
    let run = fixture.once();
    assert_eq!((run.code, &run.error()["code"]), (1, &json!("E_RUN_FAILED")), "{}", run.stderr);
    assert_eq!(run.error()["detail"]["issues"], json!(["CAR-1"]));
    assert_eq!(fixture.notes("hooks"), "create\nbefore\nafter\nbefore\nafter\n");
    // Closed issues lose their workspaces at the next look.
    fixture.shift("CAR-1", "Done");
    assert_eq!(fixture.once().code, 0);
    assert!(!fixture.workspace("CAR-1").exists());
    assert_eq!(fixture.notes("hooks"), "create\nbefore\nafter\nbefore\nafter\nremove\n");
}

#[test]
fn item_023_a_hook_that_fails_before_the_run_starts_no_agent() {
    let hooks = "hooks:\n  before_run: exit 3\n  after_run: echo after >> OUTSIDE/hooks\n";
    let fixture = ConductorFixture::with(&format!("{hooks}{COMMAND}touch OUTSIDE/agent"));
    fixture.issue("one");
    let run = fixture.once();
    assert_eq!(run.code, 1);
    assert!(
        run.error()["message"].as_str().unwrap().contains("hook before_run failed with status 3")
    );
    assert_eq!(fixture.notes("hooks"), "after\n");
    assert!(!fixture.fixture.path("outside/agent").exists());
    let mut lines = run.stderr.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let named = lines.find_map(|line| line["fields"]["transcript"].as_str().map(str::to_owned));
    let transcript = std::fs::read_to_string(named.expect(&run.stderr)).unwrap();
    assert!(transcript.contains("hook before_run failed"), "{transcript}");
}

#[test]
fn item_023_a_hook_that_takes_too_long_before_the_run_starts_no_agent() {
    let fixture = ConductorFixture::with(&format!(
        "hooks: {{timeout_ms: 500, before_run: sleep 100}}\n{COMMAND}touch OUTSIDE/agent"
    ));
    fixture.issue("one");
    let run = fixture.once();
    assert_eq!(run.code, 1);
    assert!(run.error()["message"].as_str().unwrap().contains("hook before_run"), "{}", run.stderr);
    assert!(!fixture.fixture.path("outside/agent").exists());
}

#[test]
fn item_024_a_hook_that_fails_after_the_run_is_logged_and_changes_nothing() {
    for hook in ["exit 3", "sleep 100"] {
        let fixture = ConductorFixture::with(&format!(
            "hooks: {{timeout_ms: 500, after_run: {hook}}}\n{COMMAND}touch OUTSIDE/agent"
        ));
        fixture.issue("one");
        let run = fixture.once();
        assert_eq!(run.code, 0, "{hook}: {}", run.stderr);
        let warned = |line: &str| line.contains("warn") && line.contains("after_run");
        assert!(run.stderr.lines().any(warned), "{hook}: {}", run.stderr);
        assert!(fixture.fixture.path("outside/agent").exists());
    }
}

#[test]
fn neither_hooks_nor_agents_see_secrets_of_trackers() {
    let hooks = "hooks:\n  before_run: env > OUTSIDE/hook\n";
    let fixture = ConductorFixture::with(&format!("{hooks}{COMMAND}env > OUTSIDE/agent"));
    fixture.issue("one");
    let mut command = fixture.command(&["run", "--once"]);
    command.env("LINEAR_API_KEY", "lin_hidden_value").env("GITHUB_TOKEN", "ghp_hidden_value");
    let run = Run::of(command);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for who in ["hook", "agent"] {
        let seen = fixture.notes(who);
        assert!(seen.contains("CARREL_ISSUE_IDENTIFIER=CAR-1"), "{who}: {seen}");
        assert!(!seen.contains("hidden"), "{who}: {seen}");
    }
}

#[test]
fn blockers_priorities_and_places_decide_who_is_first() {
    let fixture = ConductorFixture::with(&format!(
        "{COMMAND}echo $CARREL_ISSUE_IDENTIFIER >> OUTSIDE/order\n  max_concurrent_agents: 1"
    ));
    fixture.issue("blocker");
    let new = |arguments: &[&str]| {
        let run =
            Run::of(fixture.command(&[&["issue", "new", "--title", "x"], arguments].concat()));
        assert_eq!(run.code, 0, "{}", run.stderr);
    };
    new(&["--blocked-by", "CAR-1", "--priority", "1"]);
    new(&["--priority", "2"]);
    new(&["--priority", "1"]);
    new(&["--state", "Backlog"]);
    let run = fixture.once();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(fixture.notes("order"), "CAR-4\nCAR-3\nCAR-1\n");
    fixture.shift("CAR-1", "Done");
    fixture.once();
    assert!(
        fixture.notes("order").ends_with("CAR-2\n") || fixture.notes("order").contains("CAR-2")
    );
}

#[test]
fn item_078_109_and_110_a_log_file_is_written_beside_the_lines() {
    let fixture = ConductorFixture::with(&format!("{COMMAND}'true'"));
    fixture.issue("one");
    let logs = fixture.fixture.path("logs");
    let run = Run::of(fixture.command(&["run", "--once", "--logs-root", logs.to_str().unwrap()]));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = std::fs::read_to_string(logs.join("log/carrel.log")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown = Run::of(fixture.command(&["issue", "show", "CAR-1", "--json"]));
    let id = serde_json::from_str::<Value>(&shown.stdout).unwrap()["id"].clone();
    for message in ["Dispatched", "Session started", "Run ended"] {
        let line = lines.iter().find(|line| line["message"] == message).expect(message);
        assert_eq!(line["fields"]["issue_identifier"], "CAR-1", "{line}");
        assert_eq!(line["fields"]["issue_id"], id, "{line}");
        assert_eq!(line["fields"]["session_id"].is_string(), message != "Dispatched", "{line}");
        assert!(line["at"].is_string(), "{line}");
    }
    assert!(run.stderr.contains("INFO Dispatched"), "{}", run.stderr);
}

#[test]
fn item_085_086_and_088_what_cannot_be_started_says_why() {
    let fixture = ConductorFixture::new();
    for (file, missing) in [(&[][..], "WORKFLOW.md"), (&["flows/other.md"], "flows/other.md")] {
        let run = Run::of(fixture.command(&[&["run", "--json"], file].concat()));
        assert_eq!((run.code, &run.error()["code"]), (1, &json!("E_WORKFLOW_MISSING")));
        let named = run.error()["detail"]["file"].as_str().unwrap().to_owned();
        assert!(named.ends_with(missing), "{named}");
        let run = Run::of(fixture.command(&[&["run"], file].concat()));
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.lines().count()), (1, "", 1));
        assert!(run.stderr.contains(missing), "{}", run.stderr);
    }
    fixture.write("agent: {kind: command, command: 'sleep 100'}");
    let database = fixture.fixture.path("data/carrel.db");
    std::fs::create_dir(database.parent().unwrap()).unwrap();
    std::fs::write(&database, "not a database").unwrap();
    for arguments in [&["run", "--once", "--json"][..], &["issue", "ls", "--json"]] {
        let run = Run::of(fixture.command(arguments));
        assert_eq!((run.code, &run.error()["code"]), (1, &json!("E_RECORD_UNREADABLE")));
        let message = run.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(database.to_str().unwrap()), "{message}");
    }
    std::fs::remove_file(database).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, port) = (taken.local_addr().unwrap(), taken.local_addr().unwrap().port());
    let run = Run::of(fixture.command(&["run", "--once", "--port", &port.to_string()]));
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains(&format!("could not listen on {address}")), "{}", run.stderr);
    fixture.issue("one");
    let running = fixture.start();
    running.until("it has begun", || running.log().contains("Dispatched"));
    let second = Run::of(fixture.command(&["run", "--json"]));
    assert_eq!((second.code, &second.error()["code"]), (1, &json!("E_WORKSPACE_BUSY")));
    let message = second.error()["message"].as_str().unwrap().to_owned();
    assert!(message.contains(&format!("process {}", running.child.id())), "{message}");
    assert_eq!(running.end(), 0);
}

#[test]
fn the_state_before_each_turn_can_be_restored() {
    let script = "agent:\n  kind: command\n  max_turns: 3\n  command: echo turn >> made.txt";
    let fixture = ConductorFixture::with(script);
    fixture.issue("one");
    let running = fixture.start();
    let workspace = fixture.workspace("CAR-1");
    let made = || std::fs::read_to_string(workspace.join("made.txt")).unwrap_or_default();
    running.until("there were three turns", || made().lines().count() >= 3);
    assert_eq!(running.end(), 0);
    let snapshot = |words: &[&str]| {
        let mut command = fixture.command(&[&["snapshot"], words].concat());
        command.arg("--workspace").arg(&workspace);
        let run = Run::of(command);
        assert_eq!(run.code, 0, "{words:?}: {}", run.stderr);
        run.stdout
    };
    let list: Value = serde_json::from_str(&snapshot(&["ls", "--automatic", "--json"])).unwrap();
    for one in list["structured"]["snapshots"].as_array().unwrap() {
        let description = one["description"].as_str().unwrap();
        assert!(description.starts_with("before turn "), "{description}");
        assert!(description.ends_with(" of the agent of CAR-1"), "{description}");
    }
    // That before the first has nothing, and each one more has one line more.
    for number in [3, 2] {
        snapshot(&["restore", &format!("@{number}")]);
        assert_eq!(made(), "turn\n".repeat(number - 1));
    }
    snapshot(&["restore", "@1"]);
    assert!(!workspace.join("made.txt").exists());
}

#[test]
fn an_operator_can_do_without_snapshots_before_turns() {
    let fixture =
        ConductorFixture::with("agent:\n  kind: command\n  max_turns: 1\n  command: 'true'");
    let policy = fixture.fixture.path("policy.toml");
    std::fs::write(&policy, "snapshots.turns = false\n").unwrap();
    let store = fixture.fixture.root().join(".carrel/snapshots/CAR-1");
    fixture.issue("one");
    let run = |policy: Option<&std::path::PathBuf>| {
        let mut command = fixture.command(&["run", "--once", "--json"]);
        command.envs(policy.map(|policy| ("CARREL_POLICY", policy)));
        Run::of(command);
        assert!(fixture.workspace("CAR-1").exists());
    };
    run(Some(&policy));
    assert!(!store.exists());
    run(None);
    assert!(store.exists());
}
