use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{Run, TestRoot};

fn check(arguments: &[&str]) -> (i32, Value) {
    let fixture = TestRoot::new();
    let run = Run::of(fixture.bare(&[&["policy", "check", "--json"], arguments].concat()));
    (run.code, serde_json::from_str(&run.stdout).unwrap())
}

#[test]
fn an_allowed_command_line_is_told_with_its_commands() {
    let (code, verdict) = check(&["cargo test && git commit -m 'fix; mount'"]);
    assert_eq!((code, &verdict["verdict"]), (0, &json!("allow")));
    let names: Vec<_> =
        verdict["commands"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["cargo", "git"]);
}

#[test]
fn a_refused_command_line_names_the_rule_and_the_command() {
    for (command, rule) in [
        ("rm -r -f /", "recursive_remove"),
        ("\"su\"do ls", "privilege"),
        ("$(echo sudo) ls", "not_understood"),
    ] {
        let (code, verdict) = check(&[command]);
        assert_eq!((code, &verdict["rule"]), (1, &json!(rule)), "{command}");
        assert!(!verdict["message"].as_str().unwrap().is_empty());
    }
}

#[test]
fn the_preset_decides_how_much_is_refused() {
    for (preset, code) in [("allowlist", 1), ("denylist", 0), ("open", 0)] {
        assert_eq!(check(&["./build.sh", "--preset", preset]).0, code, "{preset}");
    }
    let fixture = TestRoot::new();
    let run = Run::of(fixture.bare(&["policy", "check", "ls", "--preset", "strict", "--json"]));
    assert_eq!((run.code, &run.error()["code"]), (2, &json!("E_USAGE")));
    assert!(run.error()["message"].as_str().unwrap().contains("allowlist"), "{}", run.stderr);
}

#[test]
fn the_own_workspace_may_be_named_by_its_path() {
    let command = "rm -rf /srv/ws/A/target";
    assert_eq!(check(&[command]).0, 1);
    assert_eq!(check(&[command, "--workspace", "/srv/ws/A"]).0, 0);
}
