use std::io::Write as _;
use std::process::{Command, Stdio};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{Run, World};

fn issue(world: &World, arguments: &[&str]) -> Run {
    Run::of(world.bare(&[&["issue"], arguments].concat()))
}

fn told(world: &World, arguments: &[&str]) -> Value {
    let run = issue(world, &[arguments, &["--json"]].concat());
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
    let world = World::new();
    assert_eq!(issue(&world, &["new", "--title", "First thing"]).stdout, "CAR-1\n");
    let made = told(
        &world,
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
    assert_eq!(issue(&world, &["move", "CAR-1", "Done"]).stdout, "CAR-1: Done\n");
    let labelled = issue(&world, &["label", "CAR-2", "UI", "ux", "--remove", "bug"]);
    assert_eq!(labelled.stdout, "CAR-2: ui, ux\n");
    let said = fed(world.bare(&["issue", "comment", "CAR-2", "-"]), b"from stdin\n");
    assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{}", said.stderr);
    issue(&world, &["comment", "CAR-2", "--author", "anna", "-x is broken"]);
    let shown = told(&world, &["show", "car-2"]);
    let authors: Vec<_> =
        shown["comments"].as_array().unwrap().iter().map(|c| &c["author"]).collect();
    assert_eq!(authors, ["operator", "anna"]);
    let listed = told(&world, &["ls", "--state", "done"]);
    assert_eq!(listed["issues"].as_array().unwrap().len(), 1);
    let text = issue(&world, &["ls"]).stdout;
    assert!(text.starts_with("ISSUE  STATE    PRIORITY  LABELS"), "{text}");
    let sheet = issue(&world, &["show", "CAR-2"]).stdout;
    assert!(sheet.contains("blocked by CAR-1") && sheet.contains("  and how\n"), "{sheet}");
}

#[test]
fn what_cannot_be_done_names_the_issue_and_the_way_out() {
    let world = World::new();
    let run = issue(&world, &["ls", "--json"]);
    assert_eq!((run.code, &run.error()["code"]), (1, &json!("E_NOT_FOUND")));
    assert!(run.stderr.contains("carrel issue new"), "{}", run.stderr);
    assert!(!world.path("data").exists());
    issue(&world, &["new", "--title", "one"]);
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
        let run = issue(&world, &[arguments, &["--json"]].concat());
        assert_eq!((run.code, &run.error()["code"]), (1, &json!(code)), "{arguments:?}");
        assert!(run.stderr.contains(said), "{arguments:?}: {}", run.stderr);
    }
    assert_eq!(issue(&world, &["label", "CAR-1"]).code, 2);
    let described = |text: &[u8]| {
        fed(world.bare(&["issue", "new", "--title", "x", "--description", "-", "--json"]), text)
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
    assert_eq!(told(&world, &["ls"])["issues"].as_array().unwrap().len(), 1);
}

#[test]
fn many_at_once_make_as_many_issues() {
    let world = World::new();
    issue(&world, &["new", "--title", "first"]);
    let running: Vec<_> = (0..20)
        .map(|_| {
            let mut command = world.bare(&["issue", "new", "--title", "another"]);
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
