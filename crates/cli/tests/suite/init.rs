use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{Run, TestRoot};

fn run(fixture: &TestRoot, arguments: &[&str]) -> Run {
    Run::of(fixture.bare(arguments))
}

#[test]
fn a_new_workflow_file_passes_the_check_as_it_is() {
    let fixture = TestRoot::new();
    let written = run(&fixture, &["init"]);
    assert_eq!((written.code, written.stdout.as_str()), (0, "wrote WORKFLOW.md\n"));
    let checked = run(&fixture, &["check", "--json"]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    let told: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(told["warnings"], json!([]));
    let text = std::fs::read_to_string(fixture.path("WORKFLOW.md")).unwrap();
    for setting in ["#  root:", "#  timeout_ms: 60000", "#    tokens: 10000000", "  kind: local"] {
        assert!(text.lines().any(|line| line == setting), "{setting} in\n{text}");
    }
}

#[test]
fn a_new_policy_file_is_the_users_and_is_loaded() {
    let fixture = TestRoot::new();
    let written = run(&fixture, &["init", "policy", "--json"]);
    let path = fixture.path("home/.config/carrel/policy.toml");
    let told: Value = serde_json::from_str(&written.stdout).unwrap();
    assert_eq!((written.code, told), (0, json!({ "kind": "policy", "path": path })));
    let doctor = run(&fixture, &["doctor"]);
    assert_eq!((doctor.code, doctor.stderr.as_str()), (0, ""));
    // It is the file that counts.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("#tier = \"auto\"", "tier = \"none\"")).unwrap();
    let refused = run(&fixture, &["doctor", "--json"]).error();
    assert_eq!(refused["code"], "E_POLICY_INVALID");
    assert!(refused["message"].as_str().unwrap().contains(path.to_str().unwrap()), "{refused}");
}

#[test]
fn a_file_that_exists_is_not_overwritten() {
    let fixture = TestRoot::new();
    std::fs::write(fixture.path("mine.md"), "mine").unwrap();
    let refused = run(&fixture, &["init", "workflow", "mine.md"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.starts_with("error: mine.md exists and is not overwritten; "));
    assert_eq!(std::fs::read_to_string(fixture.path("mine.md")).unwrap(), "mine");
}
