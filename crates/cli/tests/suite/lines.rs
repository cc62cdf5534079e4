use crate::{Run, TestRoot};

/// Replaces what differs from run to run.
fn settled(fixture: &TestRoot, text: &str) -> String {
    let text = text.replace(fixture.directory.path().to_str().unwrap(), "DIR");
    let mut parts = text.trim_end().split("/logs/");
    let mut settled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (_, rest) = part.split_once(".log").unwrap_or_default();
        settled.push_str("/logs/LOG");
        settled.push_str(rest);
    }
    settled
}

fn stderr(fixture: &TestRoot, arguments: &[&str]) -> String {
    settled(fixture, &fixture.run(arguments).stderr)
}

#[test]
fn creation_reuse_and_removal_have_their_lines() {
    let fixture = TestRoot::new();
    insta::assert_snapshot!(stderr(&fixture, &["create", "XYZ/1", "-v"]), @"INFO Workspace created issue_id=XYZ/1 issue_identifier=XYZ/1 workspace=DIR/root/XYZ_1");
    insta::assert_snapshot!(stderr(&fixture, &["create", "XYZ/1", "--issue-id", "7", "-v"]), @"INFO Workspace reused issue_id=7 issue_identifier=XYZ/1 workspace=DIR/root/XYZ_1");
    insta::assert_snapshot!(stderr(&fixture, &["rm", "XYZ/1", "-v"]), @"INFO Workspace removed issue_id=7 issue_identifier=XYZ/1 workspace=DIR/root/XYZ_1");
    insta::assert_snapshot!(stderr(&fixture, &["rm", "XYZ/1"]), @r#"error: no workspace "XYZ/1" in DIR/root; list what there is with `carrel workspace ls` [E_WORKSPACE_NOT_FOUND]"#);
}

#[test]
fn a_hook_that_runs_into_its_deadline_has_its_line() {
    let fixture = TestRoot::with_hooks("timeout_ms: 50\nafter_create: sleep 60");
    insta::assert_snapshot!(stderr(&fixture, &["create", "A"]), @"error: hook after_create timed out after 50 ms, log DIR/root/.carrel/logs/LOG; raise hooks.timeout_ms in the workflow file [E_HOOK_TIMEOUT]");
}

#[test]
fn a_failed_hook_has_its_line_and_its_error() {
    let fixture = TestRoot::with_hooks("after_create: echo no luck; exit 3");
    insta::assert_snapshot!(stderr(&fixture, &["create", "A"]), @"error: hook after_create failed with status 3: no luck, log DIR/root/.carrel/logs/LOG; read what it printed in the log [E_HOOK_FAILED]");
    insta::assert_snapshot!(stderr(&fixture, &["create", "A", "-v"]), @r#"
    INFO Running workspace hook hook=after_create issue_id=A issue_identifier=A workspace=DIR/root/A
    WARN Workspace hook failed hook=after_create status=3 issue_id=A issue_identifier=A workspace=DIR/root/A log=DIR/root/.carrel/logs/LOG output="no luck\n"
    ERROR Workspace creation failed issue_id=A error="hook after_create failed with status 3: no luck, log DIR/root/.carrel/logs/LOG"
    error: hook after_create failed with status 3: no luck, log DIR/root/.carrel/logs/LOG; read what it printed in the log [E_HOOK_FAILED]
    "#);
    insta::assert_snapshot!(stderr(&fixture, &["create", "A", "--json"]), @r#"
    {"level":"warn","message":"Workspace hook failed","fields":{"hook":"after_create","status":"3","issue_id":"A","issue_identifier":"A","workspace":"DIR/root/A","log":"DIR/root/.carrel/logs/LOG","output":"no luck\n"}}
    {"level":"error","message":"Workspace creation failed","fields":{"issue_id":"A","error":"hook after_create failed with status 3: no luck, log DIR/root/.carrel/logs/LOG"}}
    {"error":{"code":"E_HOOK_FAILED","kind":"workspace_hook_failed","message":"hook after_create failed with status 3: no luck, log DIR/root/.carrel/logs/LOG; read what it printed in the log","detail":{"hook":"after_create","end":{"exited":3},"output":"no luck\n","log":"DIR/root/.carrel/logs/LOG"}}}
    "#);
}

#[test]
fn a_refused_place_has_its_line_and_its_error() {
    let fixture = TestRoot::new();
    fixture.run(&["create", "B"]);
    std::os::unix::fs::symlink("B", fixture.root().join("A")).unwrap();
    insta::assert_snapshot!(stderr(&fixture, &["create", "A"]), @"error: a symbolic link stands between the root and the workspace: DIR/root/A; remove the link; it is never followed and never deleted for you [E_WORKSPACE_SYMLINK_ESCAPE]");
    insta::assert_snapshot!(stderr(&fixture, &["rm", "A", "-v"]), @r#"
    WARN Workspace removal refused issue_id=A issue_identifier=A workspace=DIR/root/A error="a symbolic link stands between the root and the workspace: DIR/root/A"
    error: a symbolic link stands between the root and the workspace: DIR/root/A; remove the link; it is never followed and never deleted for you [E_WORKSPACE_SYMLINK_ESCAPE]
    "#);
}

#[test]
fn debug_shows_each_check_and_each_step() {
    let fixture = TestRoot::with_hooks("after_create: echo hello");
    insta::assert_snapshot!(stderr(&fixture, &["create", "A", "-vv"]), @r#"
    DEBUG directory made workspace=DIR/root/A
    DEBUG path and link check passed workspace=DIR/root/A
    INFO Running workspace hook hook=after_create issue_id=A issue_identifier=A workspace=DIR/root/A
    DEBUG hook printed hook=after_create issue_id=A line=hello
    DEBUG Workspace hook succeeded hook=after_create issue_id=A log=DIR/root/.carrel/logs/LOG
    DEBUG path and link check passed workspace=DIR/root/A
    INFO Workspace created issue_id=A issue_identifier=A workspace=DIR/root/A
    "#);
}

#[test]
fn the_variables_set_the_level_too() {
    let fixture = TestRoot::new();
    for (name, level, shown) in [
        ("CARREL_LOG", "info", true),
        ("LOG_LEVEL", "info", true),
        ("LOG_LEVEL", "INFO", true),
        ("CARREL_LOG", "error", false),
        ("CARREL_LOG", "no such level!!", false),
    ] {
        let mut command = fixture.command(&["create", "A"]);
        command.env(name, level);
        assert_eq!(Run::of(command).stderr.contains("INFO Workspace"), shown, "{name}={level}");
    }
}

#[test]
fn with_json_every_line_of_stderr_is_an_object_and_the_last_is_the_error() {
    let fixture = TestRoot::with_hooks("after_create: exit 1\nunknown: 1");
    let run = fixture.run(&["create", "A", "--json", "-vv"]);
    assert_eq!(run.stdout, "");
    let lines: Vec<serde_json::Value> =
        run.stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(lines.len() > 3);
    let (last, before) = lines.split_last().unwrap();
    assert_eq!(last["error"]["kind"], "workspace_hook_failed");
    assert!(before.iter().all(|line| line["error"].is_null() && line["level"].is_string()));
}
