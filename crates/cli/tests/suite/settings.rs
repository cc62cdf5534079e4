use serde_json::json;

use crate::{Run, TestRoot};

fn create(fixture: &TestRoot, extra: &[&str]) -> Run {
    Run::of(fixture.bare(&[&["workspace", "create", "A", "--json"], extra].concat()))
}

fn path_of(run: &Run) -> String {
    assert_eq!(run.code, 0, "{}", run.stderr);
    let value: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    value["path"].as_str().unwrap().to_owned()
}

#[test]
fn a_root_is_read_in_all_its_forms() {
    let fixture = TestRoot::new();
    let home = fixture.path("home").display().to_string();
    assert_eq!(path_of(&create(&fixture, &["--root", "~/ws"])), format!("{home}/ws/A"));
    let here = fixture.path("relative/A").display().to_string();
    assert_eq!(path_of(&create(&fixture, &["--root", "relative"])), here);
    let mut command = fixture.bare(&["workspace", "create", "A", "--json", "--root", "$MY_ROOT"]);
    command.env("MY_ROOT", "~/from-variable");
    assert_eq!(path_of(&Run::of(command)), format!("{home}/from-variable/A"));
}

#[test]
fn a_root_that_would_surprise_is_refused_with_the_form_that_works() {
    let fixture = TestRoot::new();
    for (root, hint) in
        [("$UNSET", "UNSET"), ("$HOME/ws", "~/ws"), ("${WS}", "$WS"), ("~other/ws", "~/")]
    {
        let run = create(&fixture, &["--root", root]);
        assert_eq!(run.code, 1, "{root}");
        let error = run.error();
        assert_eq!(error["code"], "E_ROOT_REFUSED", "{root}");
        assert!(error["message"].as_str().unwrap().contains(hint), "{root}: {error}");
    }
    let mut command = fixture.bare(&["workspace", "create", "A", "--json", "--root", "$EMPTY"]);
    command.env("EMPTY", "");
    assert_eq!(Run::of(command).error()["code"], "E_ROOT_REFUSED");
}

#[test]
fn the_workflow_file_of_the_current_directory_applies_when_none_is_named() {
    let fixture = TestRoot::with_hooks("after_create: touch made-by-hook");
    let path = path_of(&create(&fixture, &[]));
    assert!(std::path::Path::new(&path).join("made-by-hook").exists());
    // A root that is named stands for itself.
    let other = path_of(&create(&fixture, &["--root", "other"]));
    assert!(!std::path::Path::new(&other).join("made-by-hook").exists());
}

#[test]
fn without_any_setting_the_root_is_in_the_temporary_directory() {
    let fixture = TestRoot::new();
    let mut command = fixture.bare(&["workspace", "create", "A", "--json"]);
    command.env("TMPDIR", fixture.path("home"));
    let expected = fixture.path("home/carrel_workspaces/A").display().to_string();
    assert_eq!(path_of(&Run::of(command)), expected);
}

#[test]
fn a_relative_root_is_relative_to_the_workflow_file_and_warned_about_once() {
    let fixture = TestRoot::new();
    std::fs::create_dir(fixture.path("project")).unwrap();
    std::fs::write(fixture.path("project/WORKFLOW.md"), "---\nworkspace: {root: ws}\n---\n")
        .unwrap();
    let run = create(&fixture, &["--config", "project/WORKFLOW.md"]);
    let expected = fixture.path("project/ws/A").display().to_string();
    assert_eq!(path_of(&run), expected);
    let resolved = fixture.path("project/ws").display().to_string();
    assert_eq!(run.stderr.matches(&resolved).count(), 1, "{}", run.stderr);
}

#[test]
fn only_workspace_and_hooks_of_the_file_must_be_right() {
    let fixture = TestRoot::new();
    let text = format!(
        "---\ntracker: {{kind: nonsense}}\nworkspace: {{root: {}}}\npolling: {{interval_ms: soon}}\n---\n{{{{ broken",
        fixture.root().display()
    );
    std::fs::write(fixture.path("WORKFLOW.md"), text).unwrap();
    assert_eq!(fixture.run(&["create", "A"]).code, 0);
    std::fs::write(fixture.path("WORKFLOW.md"), "---\nhooks:\n  timeout_ms: soon\n---\n").unwrap();
    let error = fixture.run(&["create", "A", "--json"]).error();
    assert_eq!(error["code"], "E_WORKFLOW_INVALID");
    assert_eq!(
        (&error["detail"]["line"], &error["detail"]["key"]),
        (&json!(3), &json!("hooks.timeout_ms"))
    );
    assert!(error["message"].as_str().unwrap().contains("WORKFLOW.md:3:"), "{error}");
    let missing = create(&fixture, &["--config", "nowhere.md"]).error();
    assert_eq!(missing["kind"], "missing_workflow_file");
}

#[test]
fn misspelt_keys_are_warned_about_with_a_suggestion() {
    let fixture = TestRoot::with_hooks("after_creat: touch x");
    let run = fixture.run(&["create", "A", "--json"]);
    let warning: serde_json::Value =
        serde_json::from_str(run.stderr.lines().next().unwrap()).unwrap();
    assert_eq!(warning["level"], "warn");
    assert!(warning["message"].as_str().unwrap().contains("after_create"), "{warning}");
}

#[test]
fn a_root_inside_a_repository_warns() {
    let fixture = TestRoot::new();
    std::fs::create_dir(fixture.path(".git")).unwrap();
    let run = fixture.run(&["create", "A"]);
    assert_eq!(run.code, 0);
    assert!(run.stderr.contains("Workspace root lies inside a git work tree"), "{}", run.stderr);
}
