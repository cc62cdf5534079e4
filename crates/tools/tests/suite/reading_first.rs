//! Reading first: what counts as having read a file, and what a refusal shows.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{Setting, TestEnvironment};

fn edit(old: &str, new: &str) -> Value {
    json!({ "file_path": "a.txt", "old_string": old, "new_string": new })
}

fn with_file(text: &str) -> TestEnvironment {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", text);
    test_env
}

/// Lines of a word and a number each.
fn numbered(word: &str, numbers: std::ops::RangeInclusive<usize>) -> String {
    numbers.map(|number| format!("{word} {number}\n")).collect::<Vec<_>>().concat()
}

fn git(test_env: &TestEnvironment, arguments: &[&str]) {
    let mut git = std::process::Command::new("git");
    git.arg("-C").arg(test_env.path("main")).args(["-c", "user.name=x", "-c", "user.email=x@y.z"]);
    assert!(git.args(arguments).output().unwrap().status.success(), "{arguments:?}");
}

#[tokio::test]
async fn hits_of_a_search_count_as_reading_their_files() {
    let test_env = with_file("one\ntwo\nthree\n");
    test_env.text("Grep", json!({ "pattern": "two", "output_mode": "files_with_matches" })).await;
    test_env.text("Grep", json!({ "pattern": "two", "output_mode": "count" })).await;
    assert_eq!(
        test_env.refusal("Edit", edit("nothing", "x")).await.0,
        "E_NOT_READ",
        "no line was shown"
    );
    assert_eq!(test_env.text("Grep", json!({ "pattern": "two" })).await, "a.txt:2:two\n");
    test_env.text("Edit", edit("three", "drei")).await;
    assert_eq!(test_env.get("a.txt"), "one\ntwo\ndrei\n");
}

#[tokio::test]
async fn an_overwritten_file_must_have_been_shown_whole_however_it_was_shown() {
    let test_env = with_file("one\ntwo\nthree\n");
    let write = json!({ "file_path": "a.txt", "content": "new\n" });
    test_env.text("Grep", json!({ "pattern": "two" })).await;
    let (code, text) = test_env.refusal("Write", write.clone()).await;
    assert_eq!(code, "E_NOT_READ");
    let expected =
        "refusing to overwrite a.txt: only lines 2–2 of 3 were read; Read the rest first";
    assert_eq!(text, expected);
    test_env.text("Grep", json!({ "pattern": "one", "after": 1 })).await;
    assert_eq!(test_env.refusal("Write", write.clone()).await.0, "E_NOT_READ");
    test_env.text("Grep", json!({ "pattern": "three" })).await;
    test_env.text("Write", write).await;
    assert_eq!(test_env.get("a.txt"), "new\n");
}

#[tokio::test]
async fn content_that_changed_since_it_was_shown_does_not_count() {
    let test_env = with_file("one\ntwo\n");
    test_env.text("Grep", json!({ "pattern": "one" })).await;
    test_env.put("a.txt", "one\n2\n");
    let (code, text) = test_env.refusal("Edit", edit("one", "eins")).await;
    assert_eq!(code, "E_CHANGED_SINCE_READ");
    let seed = "refusing to edit a.txt: it has changed since it was read; Read it again\n";
    assert!(text.starts_with(seed), "{text}");
    assert_eq!(test_env.get("a.txt"), "one\n2\n");
    test_env.text("Edit", edit("one", "eins")).await;
    assert_eq!(test_env.get("a.txt"), "eins\n2\n", "the refusal has shown it");
}

#[tokio::test]
async fn a_search_in_one_workspace_unlocks_nothing_in_another() {
    let names: &[&str] = &["main", "other"];
    let test_env = TestEnvironment::with(Setting { names, ..Setting::default() });
    for name in names {
        std::fs::write(test_env.path(name).join("a.txt"), "one\n").unwrap();
    }
    test_env.text("Grep", json!({ "pattern": "one", "workspace": "main" })).await;
    let mut other = edit("nothing", "x");
    other["workspace"] = json!("other");
    assert_eq!(test_env.refusal("Edit", other).await.0, "E_NOT_READ");
    let mut main = edit("one", "eins");
    main["workspace"] = json!("main");
    test_env.text("Edit", main).await;
}

#[tokio::test]
async fn a_refused_edit_shows_the_lines_that_it_would_change_and_the_same_call_then_passes() {
    let rest = numbered("line", 4..=20);
    let test_env = with_file(&format!("one\ntwo\nthree\n{rest}"));
    let call = edit("two\nthree", "2\n3");
    let (code, text) = test_env.refusal("Edit", call.clone()).await;
    assert_eq!(code, "E_NOT_READ");
    assert_eq!(
        text,
        "refusing to edit a.txt: Read it first\n[it would change these lines, now shown; the same call \
         will be made]\n2\ttwo\n3\tthree\n"
    );
    assert_eq!(test_env.get("a.txt"), format!("one\ntwo\nthree\n{rest}"));
    test_env.text("Edit", call).await;
    assert_eq!(test_env.get("a.txt"), format!("one\n2\n3\n{rest}"));
    let write = json!({ "file_path": "a.txt", "content": "" });
    let (_, text) = test_env.refusal("Write", write).await;
    assert!(text.contains("only lines 2–3 of 20 were read; Read the rest first"), "{text}");
}

#[tokio::test]
async fn every_kind_of_edit_can_be_repeated_after_its_refusal() {
    let long = numbered("line", 1..=200);
    for (text, edits) in [
        ("one\ntwo\n", json!([{ "old_string": "two", "new_string": "2" }])),
        ("one\ntwo\n", json!([{ "start_line": 3, "new_string": "three\n" }])),
        ("", json!([{ "start_line": 1, "new_string": "one\n" }])),
        (&long, json!([{ "old_string": "line", "new_string": "row", "replace_all": true }])),
        ("a\r\nb\r\n", json!([{ "old_string": "a\nb", "new_string": "c" }])),
    ] {
        let test_env = with_file(text);
        let call = json!({ "file_path": "a.txt", "edits": edits });
        let (code, refusal) = test_env.refusal("MultiEdit", call.clone()).await;
        assert_eq!(code, "E_NOT_READ");
        assert!(refusal.starts_with("refusing to edit a.txt: Read it first\n"), "{refusal}");
        assert!(refusal.lines().count() <= 42, "{refusal}");
        assert_eq!(refusal.contains(" and more"), text == long, "{refusal}");
        test_env.text("MultiEdit", call).await;
        assert_ne!(test_env.get("a.txt"), text);
    }
}

#[tokio::test]
async fn an_edit_that_would_not_apply_either_is_told_both() {
    let test_env = with_file("one\ntwo\n");
    let (code, text) = test_env.refusal("Edit", edit("three", "3")).await;
    assert_eq!(code, "E_NOT_READ");
    let expected = "refusing to edit a.txt: Read it first\n[old_string not found in a.txt";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(
        test_env.refusal("Edit", edit("three", "3")).await.0,
        "E_NOT_READ",
        "nothing counts"
    );
}

#[tokio::test]
async fn a_text_that_an_unread_file_does_not_have_is_answered_with_the_closest_lines() {
    let test_env = with_file("fn a() {\n    // why\n    one();\n    two();\n}\n");
    let (code, text) = test_env.refusal("Edit", edit("fn a() {\n  one();", "x")).await;
    assert_eq!(code, "E_NOT_READ");
    let start = "refusing to edit a.txt: Read it first\n[old_string not found in a.txt; ";
    let end = "]\n[the closest lines, now shown]\n1\tfn a() {\n2\t    // why\n3\t    one();\n4\t    \
               two();\n5\t}\n";
    assert!(text.starts_with(start) && text.ends_with(end), "{text}");
    test_env.text("Edit", edit("    one();\n", "    1();\n")).await;
    assert_eq!(test_env.get("a.txt"), "fn a() {\n    // why\n    1();\n    two();\n}\n");
}

#[tokio::test]
async fn a_patch_proves_by_its_lines_that_its_author_knows_the_file() {
    let test_env = with_file("one\ntwo\nthree\n");
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -8,2 +8,2 @@\n one\n-two\n+2\n";
    test_env.text("ApplyPatch", json!({ "patch": patch })).await;
    assert_eq!(test_env.get("a.txt"), "one\n2\nthree\n");
    // Its reply shows the lines around the change.
    test_env.text("Edit", edit("three", "3")).await;
    assert_eq!(test_env.get("a.txt"), "one\n2\n3\n");

    test_env.put("b.txt", "one\ntwo\nthree\nfour\nfive\n");
    for (why, patch) in [
        ("no line of the file", "--- a/b.txt\n+++ b/b.txt\n@@ -5,0 +6,1 @@\n+six\n"),
        (
            "only an empty line",
            "*** Begin Patch\n*** Update File: b.txt\n@@\n+six\n*** End Patch\n",
        ),
        ("no content", "*** Begin Patch\n*** Delete File: b.txt\n*** End Patch\n"),
    ] {
        let (code, text) = test_env.refusal("ApplyPatch", json!({ "patch": patch })).await;
        assert_eq!(
            (code.as_str(), text.as_str()),
            ("E_NOT_READ", "refusing to patch b.txt: Read it first"),
            "{why}"
        );
    }
    let differs = "--- a/b.txt\n+++ b/b.txt\n@@ -1,3 +1,3 @@\n wrong\n-two\n+2\n three\n";
    let (code, _) = test_env.refusal("ApplyPatch", json!({ "patch": differs })).await;
    assert!(["E_NOT_READ", "E_PATCH_FAILED"].contains(&code.as_str()), "{code}");
    assert_eq!(test_env.get("b.txt"), "one\ntwo\nthree\nfour\nfive\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn diffs_of_git_count_as_far_as_they_show_the_file_as_it_is() {
    let test_env = TestEnvironment::new();
    let lines = |changed: &str| {
        format!("{}{changed}\n{}", numbered("line", 1..=19), numbered("line", 21..=40))
    };
    test_env.put("sub/a.txt", lines("old"));
    git(&test_env, &["init", "-q"]);
    git(&test_env, &["add", "."]);
    git(&test_env, &["commit", "-qm", "first"]);
    test_env.put("sub/a.txt", lines("new"));
    let edit = |old: &str, new: &str| json!({ "file_path": "sub/a.txt", "old_string": old, "new_string": new });

    // The version of the commit is another one, and all of its lines are one part.
    let shown = test_env.text("git_inspect", json!({ "operation": "show", "args": "HEAD" })).await;
    assert!(shown.contains("+line 1\n"), "{shown}");
    assert_eq!(test_env.refusal("Edit", edit("nothing", "x")).await.0, "E_NOT_READ");

    let shown = test_env.text("git_inspect", json!({ "operation": "diff" })).await;
    assert!(shown.contains("+new\n"), "{shown}");
    test_env.text("Edit", edit("line 1\n", "first\n")).await;
    let (_, text) =
        test_env.refusal("Write", json!({ "file_path": "sub/a.txt", "content": "" })).await;
    assert!(text.contains("of 40 were read"), "{text}");

    git(&test_env, &["commit", "-qam", "second"]);
    let other = carrel_tools::Session::new("other");
    let show = json!({ "operation": "show", "args": ["HEAD"] });
    assert!(!test_env.call_as(&other, "git", show).await.is_error);
    let edited = test_env.call_as(&other, "Edit", edit("first\n", "line 1\n")).await;
    assert!(!edited.is_error, "{}", edited.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_excerpt_of_a_failed_test_counts_as_reading_its_file() {
    let test_env = TestEnvironment::new();
    test_env
        .put("package.json", r#"{"name":"x","version":"1.0.0","scripts":{"test":"node --test"}}"#);
    let test = "const assert = require('node:assert')\nconst { test } = require('node:test')\n\n\
                test('adds', () => {\n  assert(1 + 1 === 3)\n})\n";
    test_env.put("x.test.js", test);
    let ran = test_env.call("run_tests", json!({})).await;
    assert_eq!(ran.structured["verdict"], "failed", "{}", ran.text());
    assert!(ran.text().contains("assert(1 + 1 === 3)"), "{}", ran.text());
    let call = json!({ "file_path": "x.test.js", "old_string": "=== 3", "new_string": "=== 2" });
    test_env.text("Edit", call).await;
}

#[tokio::test]
async fn lines_that_were_read_are_followed_through_edits() {
    let lines = numbered("line", 1..=30);
    let test_env = with_file(&lines);
    for (offset, limit) in [(1, 10), (21, 10)] {
        let read = json!({ "file_path": "a.txt", "offset": offset, "limit": limit });
        test_env.text("Read", read).await;
    }
    let more = numbered("more", 1..=10);
    test_env.text("Edit", edit("line 5\n", &format!("line 5\n{more}"))).await;
    // Lines 11 to 20, which were not read, are now 21 to 30.
    let read = json!({ "file_path": "a.txt", "offset": 11, "limit": 10 });
    test_env.text("Read", read).await;
    let write = json!({ "file_path": "a.txt", "content": "" });
    let (_, text) = test_env.refusal("Write", write.clone()).await;
    assert!(text.contains("only lines 1–20, 31–40 of 40 were read"), "{text}");
    test_env.text("Read", json!({ "file_path": "a.txt", "offset": 21, "limit": 10 })).await;
    test_env.text("Write", write).await;
}
