//! The size of replies: the server's limit, the call's, and the way to the rest.

use std::fmt::Write as _;

use carrel_tools::DEFAULT_REPLY_BYTES;
use serde_json::{Value, json};

use crate::test_environment::{Setting, TestEnvironment};

/// Room for the notes around a text that has been cut.
const NOTES: usize = 1_000;

/// A workspace in which every tool with bulk text has more of it than fits.
fn filled() -> TestEnvironment {
    let test_env = TestEnvironment::new();
    let mut lines = String::new();
    for number in 0..5000 {
        writeln!(lines, "needle number {number:04} in a line of some length").unwrap();
    }
    test_env.put("long.txt", &lines);
    let top = test_env.path("main");
    let git = |arguments: &[&str]| {
        let name = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let mut command = std::process::Command::new("git");
        assert!(command.arg("-C").arg(&top).args(name).args(arguments).status().unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["add", "long.txt"]);
    git(&["commit", "-q", "-m", "one"]);
    test_env.put("long.txt", lines.replace("needle", "thread"));
    test_env
}

fn calls() -> [(&'static str, Value); 5] {
    [
        ("Read", json!({ "file_path": "long.txt" })),
        ("Grep", json!({ "pattern": "thread" })),
        ("Bash", json!({ "command": "cat long.txt" })),
        ("git", json!({ "operation": "diff" })),
        ("shell_run", json!({ "cmd": "cat", "args": ["long.txt"] })),
    ]
}

/// Bytes of the excerpt of `long.txt`, whose lines have 44 bytes.
const EXCERPT: usize = 2 * 40 * 44;

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_has_about_thirty_thousand_bytes_unless_the_call_says_otherwise() {
    let test_env = filled();
    for (tool, mut arguments) in calls() {
        let bytes = test_env.text(tool, arguments.clone()).await.len();
        // Output over the limit is an excerpt, forty lines of its end and as much of its beginning: the rest
        // is read, or filtered, with BashOutput.
        let limit =
            if ["Bash", "shell_run"].contains(&tool) { EXCERPT } else { DEFAULT_REPLY_BYTES };
        assert!((limit * 3 / 4..=limit + NOTES).contains(&bytes), "{tool}: {bytes}");
        if tool == "shell_run" {
            continue;
        }
        arguments["max_bytes"] = json!(4000);
        let bytes = test_env.text(tool, arguments.clone()).await.len();
        assert!((2500..=4000 + NOTES).contains(&bytes), "{tool}: {bytes}");
        arguments["max_bytes"] = json!(90_000);
        let bytes = test_env.text(tool, arguments).await.len();
        assert!((60_000..=90_000 + NOTES).contains(&bytes), "{tool}: {bytes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_was_cut_has_both_ends_and_says_where_the_rest_is() {
    let test_env = filled();
    let answer = test_env.call("Bash", json!({ "command": "cat long.txt" })).await;
    let text = answer.text();
    assert!(text.starts_with("thread number 0000 "), "{text}");
    assert!(text.contains("thread number 4999 "), "{text}");
    let id = answer.structured["shell_id"].as_str().unwrap();
    let half = EXCERPT / 2;
    let hint = format!("BashOutput shell_id={id} cursor={half} reads on");
    assert!(text.contains(&hint), "{text}");
    assert_eq!(answer.structured["truncated"], true);
    // The hint is followed as it stands, and the rest is read call by call.
    let mut cursor = EXCERPT as u64 / 2;
    let mut rest = String::new();
    loop {
        let next = test_env.call("BashOutput", json!({ "shell_id": id, "cursor": cursor })).await;
        let (_, output) =
            next.text().split_once(" ---\n").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert!(output.len() <= DEFAULT_REPLY_BYTES, "{}", output.len());
        rest.push_str(&output);
        cursor = next.structured["next_cursor"].as_u64().unwrap();
        if next.structured["more"] == false {
            break;
        }
    }
    assert_eq!(
        format!("{}{rest}", &test_env.get("long.txt")[..EXCERPT / 2]),
        test_env.get("long.txt")
    );
    let small = json!({ "shell_id": id, "cursor": 0, "max_bytes": 2000 });
    assert_eq!(test_env.call("BashOutput", small).await.structured["next_cursor"], 2000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_diff_that_was_cut_keeps_its_end_and_names_the_way_to_the_rest() {
    let test_env = filled();
    let text = test_env.text("git", json!({ "operation": "diff" })).await;
    assert!(text.starts_with("diff --git "), "{text}");
    assert!(text.contains("+thread number 4999 "), "{text}");
    assert!(text.contains(" bytes left out; BashOutput shell_id="), "{text}");
}

#[tokio::test]
async fn a_file_is_read_on_at_the_offset_that_the_note_names() {
    let test_env = filled();
    let first = test_env.call("Read", json!({ "file_path": "long.txt" })).await;
    let next = first.structured["next_offset"].as_u64().unwrap();
    assert!(first.text().contains(&format!("continue with offset {next}")), "{}", first.text());
    let rest = json!({ "file_path": "long.txt", "offset": next, "max_bytes": 1000 });
    let text = test_env.text("Read", rest).await;
    assert!(text.starts_with(&format!("{next}\tthread number {:04} ", next - 1)), "{text}");
}

const SECRET: &str = "hunter2-and-some-more-of-it";

/// Asserts that no part of the secret is in a text that could help to guess the rest.
fn assert_hidden(what: &str, text: &str) {
    for part in SECRET.as_bytes().windows(5) {
        let part = str::from_utf8(part).unwrap();
        assert!(!text.contains(part), "{what}: {part} in {}", &text[..text.len().min(300)]);
    }
    assert!(text.contains("[masked secret db]"), "{what}: {}", &text[..text.len().min(300)]);
}

/// A workspace with a file of nothing but a secret, so that every cut is inside one.
fn full_of_secrets() -> TestEnvironment {
    let secrets = &[("DB", SECRET)];
    let test_env = TestEnvironment::with(Setting { secrets, ..Setting::default() });
    test_env.put("long.txt", format!("{SECRET}.").repeat(8000));
    test_env
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_across_a_cut_does_not_show_in_part() {
    let test_env = full_of_secrets();
    let git =
        std::process::Command::new("git").arg("init").arg("-q").arg(test_env.path("main")).status();
    assert!(git.unwrap().success());
    test_env.text("git", json!({ "operation": "add", "args": "long.txt" })).await;
    let staged = json!({ "operation": "diff", "args": ["--cached"] });
    for (tool, arguments) in [
        ("Bash", json!({ "command": "cat long.txt" })),
        ("shell_run", json!({ "cmd": "cat", "args": ["long.txt"] })),
        ("workspace_exec", json!({ "command": "cat long.txt" })),
        ("git", staged),
    ] {
        // Every place of the cut within the secret is tried where the limit is the caller's.
        for extra in 0..SECRET.len() {
            let mut arguments = arguments.clone();
            if ["Bash", "git"].contains(&tool) {
                arguments["max_bytes"] = json!(2000 + 2 * extra);
            } else if extra > 0 {
                break;
            }
            assert_hidden(tool, &test_env.text(tool, arguments).await);
        }
        // The output itself is kept only in part.
        if ["Bash", "git"].contains(&tool) {
            let mut arguments = arguments;
            arguments["max_bytes"] = json!(200_000);
            assert_hidden(tool, &test_env.text(tool, arguments).await);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_read_in_parts_shows_no_part_of_a_secret() {
    let test_env = full_of_secrets();
    test_env.put("short.txt", format!("{SECRET}.").repeat(200));
    let ran = test_env.call("Bash", json!({ "command": "cat short.txt" })).await;
    let id = ran.structured["shell_id"].clone();
    for cursor in 1..SECRET.len() {
        let read = json!({ "shell_id": id, "cursor": cursor, "max_bytes": 1000 + cursor });
        assert_hidden("BashOutput", &test_env.text("BashOutput", read).await);
    }
    // From part to part, nothing is lost.
    let (mut cursor, mut masks) = (json!(0), 0);
    loop {
        let read = json!({ "shell_id": id, "cursor": cursor, "max_bytes": 1001 });
        let answer = test_env.call("BashOutput", read).await;
        assert_hidden("BashOutput", &answer.text());
        masks += answer.text().matches("[masked secret db].").count();
        if answer.structured["more"] == false {
            break;
        }
        assert_ne!(answer.structured["next_cursor"], cursor);
        cursor = answer.structured["next_cursor"].clone();
    }
    assert_eq!(masks, 200);
}
