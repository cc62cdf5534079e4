use std::io::Write as _;
use std::process::{Command, Stdio};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{Run, TestRoot};

fn issue(fixture: &TestRoot, arguments: &[&str]) -> Run {
    Run::of(fixture.bare(&[&["issue"], arguments].concat()))
}

fn told(fixture: &TestRoot, arguments: &[&str]) -> Value {
    let run = issue(fixture, &[arguments, &["--json"]].concat());
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

/// Runs a command that reads a text.
fn fed(mut command: Command, text: &[u8]) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text).unwrap();
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn an_issue_is_made_listed_shown_moved_labelled_and_commented_on() {
    let fixture = TestRoot::new();
    assert_eq!(issue(&fixture, &["new", "--title", "First thing"]).stdout, "CAR-1\n");
    let made = told(
        &fixture,
        &[
            "new",
            "--title",
            "Second",
            "--state",
            "Backlog",
            "--priority",
            "1",
            "--label",
            "Bug",
            "--description",
            "Why\nand how",
            "--blocked-by",
            "car-1",
        ],
    );
    let blockers = json!([{ "identifier": "CAR-1", "state": "Todo" }]);
    for (name, value) in [
        ("identifier", json!("CAR-2")),
        ("state", json!("Backlog")),
        ("priority", json!(1)),
        ("labels", json!(["bug"])),
        ("description", json!("Why\nand how")),
        ("blocked_by", blockers),
    ] {
        assert_eq!(made[name], value, "{name}");
    }
    assert_eq!(issue(&fixture, &["move", "CAR-1", "Done"]).stdout, "CAR-1: Done\n");
    let labelled = issue(&fixture, &["label", "CAR-2", "UI", "ux", "--remove", "bug"]);
    assert_eq!(labelled.stdout, "CAR-2: ui, ux\n");
    let said = fed(fixture.bare(&["issue", "comment", "CAR-2", "-"]), b"from stdin\n");
    assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{}", said.stderr);
    issue(&fixture, &["comment", "CAR-2", "--author", "anna", "-x is broken"]);
    let shown = told(&fixture, &["show", "car-2"]);
    let authors: Vec<_> =
        shown["comments"].as_array().unwrap().iter().map(|c| &c["author"]).collect();
    assert_eq!(authors, ["operator", "anna"]);
    let listed = told(&fixture, &["ls", "--state", "done"]);
    assert_eq!(listed["issues"].as_array().unwrap().len(), 1);
    let text = issue(&fixture, &["ls"]).stdout;
    assert!(text.starts_with("ISSUE  STATE    PRIORITY  LABELS"), "{text}");
    let sheet = issue(&fixture, &["show", "CAR-2"]).stdout;
    assert!(sheet.contains("blocked by CAR-1") && sheet.contains("  and how\n"), "{sheet}");
}

#[test]
fn what_cannot_be_done_names_the_issue_and_the_way_out() {
    let fixture = TestRoot::new();
    let run = issue(&fixture, &["ls", "--json"]);
    assert_eq!((run.code, &run.error()["code"]), (1, &json!("E_NOT_FOUND")));
    assert!(run.stderr.contains("carrel issue new"), "{}", run.stderr);
    assert!(!fixture.path("data").exists());
    issue(&fixture, &["new", "--title", "one"]);
    for (arguments, code, said) in [
        (&["show", "CAR-9"][..], "E_ISSUE_NOT_FOUND", "CAR-9"),
        (&["move", "CAR-9", "Done"], "E_ISSUE_NOT_FOUND", "carrel issue ls"),
        (&["comment", "CAR-9", "hello"], "E_ISSUE_NOT_FOUND", "CAR-9"),
        (&["show", "ABC-1"], "E_INVALID_ARGUMENTS", "CAR-1"),
        (&["move", "CAR-1", " "], "E_INVALID_ARGUMENTS", "the state is empty"),
        (&["new", "--title", ""], "E_INVALID_ARGUMENTS", "the title is empty"),
        (&["new", "--title", "x", "--blocked-by", "CAR-7"], "E_ISSUE_NOT_FOUND", "CAR-7"),
        (&["new", "--title", "x", "--priority", "-1"], "E_INVALID_ARGUMENTS", "priority"),
    ] {
        let run = issue(&fixture, &[arguments, &["--json"]].concat());
        assert_eq!((run.code, &run.error()["code"]), (1, &json!(code)), "{arguments:?}");
        assert!(run.stderr.contains(said), "{arguments:?}: {}", run.stderr);
    }
    assert_eq!(issue(&fixture, &["label", "CAR-1"]).code, 2);
    let described = |text: &[u8]| {
        fed(fixture.bare(&["issue", "new", "--title", "x", "--description", "-", "--json"]), text)
    };
    for (text, said) in [
        (&b"x".repeat(300 << 10), "longer than 256 KiB"),
        // Wherever it is cut, that is inside a character.
        (&"\u{1f4dd}".repeat(75 << 10).into_bytes(), "longer than 256 KiB"),
        (&b"caf\xe9".to_vec(), "is not UTF-8"),
    ] {
        let run = described(text);
        assert_eq!((run.code, &run.error()["code"]), (1, &json!("E_INVALID_ARGUMENTS")), "{said}");
        assert!(run.stderr.contains(said), "{}", run.stderr);
    }
    assert_eq!(told(&fixture, &["ls"])["issues"].as_array().unwrap().len(), 1);
}

#[test]
fn many_at_once_make_as_many_issues() {
    let fixture = TestRoot::new();
    issue(&fixture, &["new", "--title", "first"]);
    let running: Vec<_> = (0..20)
        .map(|_| {
            let mut command = fixture.bare(&["issue", "new", "--title", "another"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut made = Vec::new();
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        made.push(String::from_utf8(output.stdout).unwrap());
    }
    made.sort();
    made.dedup();
    assert_eq!(made.len(), 20);
}
