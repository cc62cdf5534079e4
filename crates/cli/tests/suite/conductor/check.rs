use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::ConductorFixture;
use crate::Run;

#[test]
fn every_setting_is_printed_with_its_origin_and_no_secret() {
    let fixture = ConductorFixture::new();
    let text = "---\ntracker:\n  kind: linear\n  provider: {project_slug: p, api_key: $MY_KEY}\nhooks:\n  before_run: curl -H 'key lin_hidden_value'\nagnet: {}\n---\n";
    std::fs::write(fixture.fixture.path("WORKFLOW.md"), text).unwrap();
    let check = |format: &[&str]| {
        let mut command = fixture.command(&[&["check"], format].concat());
        command.env("MY_KEY", "lin_hidden_value");
        Run::of(command)
    };
    let run = check(&["--json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    let setting = |key: &str| {
        let found = told["settings"].as_array().unwrap().iter().find(|one| one["key"] == key);
        let found = found.unwrap_or_else(|| panic!("{key} is not listed"));
        (found["value"].clone(), found["origin"].clone())
    };
    let key = setting("tracker.provider.api_key");
    assert_eq!(key, (json!("***"), json!({ "from": "variable", "name": "MY_KEY" })));
    assert_eq!(setting("tracker.kind"), (json!("linear"), json!({ "from": "file", "line": 3 })));
    assert_eq!(setting("agent.kind"), (json!("codex"), json!({ "from": "default" })));
    assert!(told["warnings"][0].as_str().unwrap().contains("agnet"), "{told}");
    let text = check(&[]);
    assert!(text.stdout.contains("tracker.provider.api_key"), "{}", text.stdout);
    for shown in [&run.stdout, &run.stderr, &text.stdout, &text.stderr] {
        assert!(!shown.contains("hidden"), "{shown}");
    }
}

#[test]
fn the_limits_of_an_issue_are_printed_by_the_check_and_at_the_start() {
    let fixture = ConductorFixture::with("agent: {kind: command, command: 'sleep 100'}");
    let limits = "an issue may take 100 turns, 20 attempts, 480 minutes and 10000000 tokens; 3 turns without progress block it";
    let check = Run::of(fixture.command(&["check"]));
    assert!(check.stderr.contains(limits), "{}", check.stderr);
    for (setting, value) in [
        ("agent.max_turns_without_progress", "3"),
        ("budgets.issue.turns", "100"),
        ("budgets.issue.attempts", "20"),
        ("budgets.issue.minutes", "480"),
        ("budgets.issue.tokens", "10000000"),
        ("workspace.keep_unsaved", "14d"),
    ] {
        let line = check.stdout.lines().find(|line| line.starts_with(setting));
        let words: Vec<_> = line.expect(setting).split_whitespace().collect();
        assert_eq!(words, [setting, "default", value]);
    }
    let running = fixture.start();
    running.until("it says what may be spent", || running.log().contains(limits));
    assert_eq!(running.end(), 0);
}

#[test]
fn item_077_everything_that_is_wrong_is_said_at_once() {
    let fixture = ConductorFixture::new();
    let text = "---\ntracker: {kind: lineer}\npolling: {interval_ms: soon}\n---\n{{ issue.title | shout }}";
    std::fs::write(fixture.fixture.path("WORKFLOW.md"), text).unwrap();
    let run = Run::of(fixture.command(&["check", "--json"]));
    assert_eq!(run.code, 1);
    for part in ["lineer", "polling.interval_ms", "shout"] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    let missing = Run::of(fixture.command(&["check", "nowhere.md", "--json"]));
    assert_eq!((missing.code, &missing.error()["code"]), (1, &json!("E_WORKFLOW_MISSING")));
}
