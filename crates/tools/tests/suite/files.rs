//! Reading, writing, editing, patching, moving, deleting.

use std::os::unix::fs::PermissionsExt as _;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{Setting, TestEnvironment};

async fn read(test_env: &TestEnvironment, path: &str) -> String {
    test_env.text("Read", json!({ "file_path": path })).await
}

async fn edit(
    test_env: &TestEnvironment,
    path: &str,
    old: &str,
    new: &str,
) -> Result<String, String> {
    let arguments = json!({ "file_path": path, "old_string": old, "new_string": new });
    let answer = test_env.call("Edit", arguments).await;
    if answer.is_error { Err(answer.text()) } else { Ok(answer.text()) }
}

#[tokio::test]
async fn a_file_is_shown_with_line_numbers_and_says_when_there_is_more() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "alpha\nbeta\ngamma\n");
    assert_eq!(read(&test_env, "a.txt").await, "1\talpha\n2\tbeta\n3\tgamma\n");
    let absolute = test_env.path("main/a.txt").display().to_string();
    assert_eq!(read(&test_env, &absolute).await, "1\talpha\n2\tbeta\n3\tgamma\n");
    let part =
        test_env.call("Read", json!({ "file_path": "a.txt", "offset": 2, "limit": 1 })).await;
    assert!(part.text().starts_with("2\tbeta\n["), "{}", part.text());
    assert_eq!(part.structured["next_offset"], 3);
    assert_eq!(part.structured["total_lines"], 3);
    test_env.put("empty", "");
    assert_eq!(read(&test_env, "empty").await, "[the file is empty]\n");
    let around = test_env
        .call("Read", json!({ "file_path": "a.txt", "around_line": 3, "context_lines": 1 }))
        .await;
    assert_eq!(
        (around.structured["first_line"].clone(), around.structured["last_line"].clone()),
        (json!(2), json!(3))
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_with_its_code() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "x\n");
    std::fs::create_dir(test_env.path("main/sub")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        test_env.path("main/fifo"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink("/etc/passwd", test_env.path("main/out")).unwrap();
    test_env.put("program", b"\x7fELF\0\0\0");
    let cases = [
        (json!({}), "E_INVALID_ARGUMENTS"),
        (json!({ "file_path": "" }), "E_INVALID_ARGUMENTS"),
        (json!({ "file_path": "a.txt", "limit": "five" }), "E_INVALID_ARGUMENTS"),
        (json!({ "file_path": "a.txt", "lines": 5 }), "E_INVALID_ARGUMENTS"),
        (json!({ "file_path": "missing" }), "E_NOT_FOUND"),
        (json!({ "file_path": "sub" }), "E_IS_A_DIRECTORY"),
        (json!({ "file_path": "fifo" }), "E_NOT_A_REGULAR_FILE"),
        (json!({ "file_path": "program" }), "E_BINARY_FILE"),
        (json!({ "file_path": "out" }), "E_SANDBOX_VIOLATION"),
        (json!({ "file_path": "../x" }), "E_SANDBOX_VIOLATION"),
        (json!({ "file_path": "/etc/passwd" }), "E_SANDBOX_VIOLATION"),
        (json!({ "file_path": "a.txt/x" }), "E_NOT_A_DIRECTORY"),
        (json!({ "file_path": "a\u{0}b" }), "E_INVALID_PATH"),
        (json!({ "file_path": "a.txt", "offset": 9 }), "E_INVALID_RANGE"),
    ];
    for (arguments, expected) in cases {
        let (code, text) = test_env.refusal("Read", arguments.clone()).await;
        assert_eq!(code, expected, "{arguments}: {text}");
    }
    assert_eq!(test_env.refusal("Read", json!({})).await.1, "file_path is required");
    assert_eq!(
        test_env.refusal("Read", json!({ "file_path": "a.txt", "offset": 9 })).await.1,
        "read: offset 9 exceeds line count 1"
    );
}

#[tokio::test]
async fn a_picture_is_shown_as_one() {
    let test_env = TestEnvironment::new();
    test_env.put("p.png", b"\x89PNG\r\n\x1a\nrest");
    let answer = test_env.call("Read", json!({ "file_path": "p.png" })).await;
    assert_eq!(answer.structured["kind"], "image/png");
    assert!(matches!(
        &answer.content[..],
        [carrel_tools::ToolContent::Image { mime: "image/png", .. }]
    ));
}

#[tokio::test]
async fn a_three_megabyte_line_is_read_in_part_and_edited_whole() {
    let test_env = TestEnvironment::new();
    test_env.put("long", format!("{}needle{}", "x".repeat(3_000_000), "y".repeat(100)));
    let text = read(&test_env, "long").await;
    assert!(text.len() < 110 * 1024, "{}", text.len());
    edit(&test_env, "long", "needle", "thread").await.unwrap();
    assert_eq!(test_env.get("long").len(), 3_000_106);
    assert!(test_env.get("long").contains("xthready"));
}

#[tokio::test]
async fn a_new_file_is_written_with_its_directories_and_then_known() {
    let test_env = TestEnvironment::new();
    let write = json!({ "file_path": "sub/new.txt", "content": "one\n" });
    assert_eq!(test_env.text("Write", write).await, "wrote 4 bytes to sub/new.txt\n");
    let again = json!({ "file_path": "sub/new.txt", "content": "two\n" });
    assert!(
        test_env
            .text("Write", again)
            .await
            .starts_with("wrote 4 bytes to sub/new.txt\n\n--- a/sub/new.txt\n")
    );
    assert_eq!(test_env.get("sub/new.txt"), "two\n");
    assert_eq!(
        test_env.refusal("Write", json!({ "file_path": "x" })).await.1,
        "content is required"
    );
    let (code, _) = test_env.refusal("Write", json!({ "file_path": "sub", "content": "" })).await;
    assert_eq!(code, "E_IS_A_DIRECTORY");
    let (code, _) = test_env.refusal("Write", json!({ "file_path": "../y", "content": "" })).await;
    assert_eq!(code, "E_SANDBOX_VIOLATION");
    test_env.text("Write", json!({ "file_path": "..foo", "content": "" })).await;
}

#[tokio::test]
async fn nothing_is_overwritten_that_was_not_read_or_has_changed_since() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "theirs\n");
    let write = json!({ "file_path": "a.txt", "content": "mine\n" });
    let (code, text) = test_env.refusal("Write", write.clone()).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("E_NOT_READ", "refusing to overwrite a.txt: Read it first")
    );
    let refused = edit(&test_env, "a.txt", "none of it", "mine").await.unwrap_err();
    assert!(refused.starts_with("refusing to edit a.txt: Read it first\n"), "{refused}");
    read(&test_env, "a.txt").await;
    test_env.put("a.txt", "changed\n");
    let (code, _) = test_env.refusal("Write", write.clone()).await;
    assert_eq!(code, "E_CHANGED_SINCE_READ");
    assert!(
        edit(&test_env, "a.txt", "none of it", "x")
            .await
            .unwrap_err()
            .contains("it has changed since it was read")
    );
    assert_eq!(test_env.get("a.txt"), "changed\n");
    // Written again with what was read: nothing has changed.
    test_env.put("a.txt", "theirs\n");
    test_env.text("Write", write).await;
    assert_eq!(test_env.get("a.txt"), "mine\n");
    edit(&test_env, "a.txt", "mine", "ours").await.unwrap();
    edit(&test_env, "a.txt", "ours", "all").await.unwrap();
    let other = carrel_tools::Session::new("other");
    let arguments = json!({ "file_path": "a.txt", "old_string": "all", "new_string": "x" });
    let answer = test_env.call_as(&other, "Edit", arguments).await;
    assert_eq!(
        answer.structured["error"]["code"], "E_NOT_READ",
        "another session has read nothing"
    );
}

#[tokio::test]
async fn an_edit_that_is_refused_for_what_changed_leaves_nothing_whatever_the_size() {
    let test_env = TestEnvironment::new();
    // The larger one is compared with what was read while the change is already being written.
    for (name, lines) in [("small.txt", 10), ("large.txt", 40_000)] {
        let filling = "filling\n".repeat(lines);
        test_env.put(name, format!("{filling}one\n{filling}"));
        read(&test_env, name).await;
        for old in ["one", "not there", "filling"] {
            // A refusal shows the new version, so there is another one for each.
            let theirs = format!("{filling}one\n{filling}theirs, not {old}\n");
            test_env.put(name, &theirs);
            let refused = edit(&test_env, name, old, "x").await.unwrap_err();
            assert!(refused.contains("changed since it was read"), "{name}, {old}: {refused}");
            assert_eq!(test_env.get(name), theirs);
        }
        test_env.put(name, "\0");
        let refused = edit(&test_env, name, "one", "x").await.unwrap_err();
        assert!(refused.contains("changed since it was read"), "{name}: {refused}");
    }
    let names: Vec<_> = std::fs::read_dir(test_env.path("main"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".carrel-write"))
        .collect();
    assert_eq!(names, [""; 0]);
}

#[tokio::test]
async fn a_command_that_changes_a_file_makes_it_unread() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "one\n");
    read(&test_env, "a.txt").await;
    test_env.text("Bash", json!({ "command": "echo two > a.txt" })).await;
    assert!(edit(&test_env, "a.txt", "two", "x").await.unwrap_err().contains("changed since"));
}

#[tokio::test]
async fn a_link_to_a_file_is_the_file() {
    let test_env = TestEnvironment::new();
    test_env.put("real.txt", "one\n");
    std::os::unix::fs::symlink("real.txt", test_env.path("main/link.txt")).unwrap();
    read(&test_env, "link.txt").await;
    edit(&test_env, "real.txt", "one", "two").await.unwrap();
    edit(&test_env, "link.txt", "two", "three").await.unwrap();
    assert_eq!(test_env.get("real.txt"), "three\n");
    assert!(test_env.path("main/link.txt").is_symlink());
}

#[tokio::test]
async fn an_edit_replaces_what_it_names_and_nothing_else() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "alpha\nbeta\nalpha\n");
    read(&test_env, "a.txt").await;
    let text = edit(&test_env, "a.txt", "beta", "BETA").await.unwrap();
    assert_eq!(text, "replaced 1 occurrence(s) in a.txt\n", "the request says the rest");
    let refused = edit(&test_env, "a.txt", "alpha", "x").await.unwrap_err();
    assert_eq!(
        refused,
        "old_string matched 2 times in a.txt; add context to make it unique or set replace_all=true; \
         it is at lines 1, 3"
    );
    assert_eq!(
        edit(&test_env, "a.txt", "nope", "x").await.unwrap_err(),
        "old_string not found in a.txt"
    );
    assert_eq!(
        edit(&test_env, "a.txt", "alpha\nBETTA", "x").await.unwrap_err(),
        "old_string not found in a.txt; the closest is line 1: line 2 is \"BETA\", with \"\" where \
         old_string has \"T\""
    );
    assert_eq!(
        edit(&test_env, "a.txt", "", "x").await.unwrap_err(),
        "old_string must be non-empty"
    );
    assert_eq!(test_env.get("a.txt"), "alpha\nBETA\nalpha\n");
    let all = json!({ "file_path": "a.txt", "old_string": "alpha", "new_string": "a", "replace_all": true });
    let answer = test_env.call("Edit", all).await;
    assert_eq!(answer.structured["replacements"], 2);
    assert_eq!(test_env.get("a.txt"), "a\nBETA\na\n");
    for (missing, rest) in [
        ("file_path", json!({ "old_string": "a", "new_string": "b" })),
        ("old_string", json!({ "file_path": "a.txt", "new_string": "b" })),
        ("new_string", json!({ "file_path": "a.txt", "old_string": "a" })),
    ] {
        assert_eq!(test_env.refusal("Edit", rest).await.1, format!("{missing} is required"));
    }
}

#[tokio::test]
async fn windows_line_endings_marks_and_modes_survive_an_edit() {
    let test_env = TestEnvironment::new();
    test_env.put("run.sh", "\u{feff}one\r\ntwo\r\nthree\r\n");
    let path = test_env.path("main/run.sh");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(read(&test_env, "run.sh").await.starts_with("1\tone\n2\ttwo\n"));
    edit(&test_env, "run.sh", "one\ntwo", "1\n2").await.unwrap();
    assert_eq!(test_env.get("run.sh"), "\u{feff}1\r\n2\r\nthree\r\n");
    edit(&test_env, "run.sh", "     3\tthree", "drei").await.unwrap();
    assert_eq!(test_env.get("run.sh"), "\u{feff}1\r\n2\r\ndrei\r\n");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
    test_env.text("Write", json!({ "file_path": "run.sh", "content": "new\n" })).await;
    assert_eq!(
        test_env.get("run.sh"),
        "\u{feff}new\r\n",
        "an overwrite keeps how the file is stored"
    );
}

#[tokio::test]
async fn several_edits_are_made_all_or_none() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "one\ntwo\nthree\nfour\nfive\n");
    read(&test_env, "a.txt").await;
    let edits = json!([{ "old_string": "one", "new_string": "1" }, { "old_string": "nope", "new_string": "x" }]);
    let (code, text) =
        test_env.refusal("MultiEdit", json!({ "file_path": "a.txt", "edits": edits })).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("E_EDIT_FILE_FIND_NOT_FOUND", "edit 2: old_string not found in a.txt")
    );
    assert_eq!(test_env.get("a.txt"), "one\ntwo\nthree\nfour\nfive\n");
    let edits = json!([
        { "start_line": 2, "end_line": 3, "new_string": "2\n3\n" },
        { "old_string": "five", "new_string": "5" },
    ]);
    let text = test_env.text("MultiEdit", json!({ "file_path": "a.txt", "edits": edits })).await;
    assert!(
        text.contains("-two\n-three\n+2\n+3\n"),
        "the old lines were not in the request: {text}"
    );
    assert_eq!(test_env.get("a.txt"), "one\n2\n3\nfour\n5\n");
    let cases: [(Value, &str); 5] = [
        (json!([{ "start_line": 5, "end_line": 3, "new_string": "x" }]), "E_INVALID_RANGE"),
        (json!([{ "start_line": 0, "end_line": 1, "new_string": "x" }]), "E_INVALID_RANGE"),
        (
            json!([{ "start_line": 1, "end_line": 2, "new_string": "x\n" }, { "start_line": 2, "end_line": 3, "new_string": "y\n" }]),
            "E_EDIT_FILE_OVERLAP",
        ),
        (
            json!([{ "start_line": 1, "end_line": 5, "new_string": "" }]),
            "E_EDIT_FILE_LINE_RANGE_TOO_LARGE",
        ),
        (json!([{ "old_string": "a", "start_line": 1, "new_string": "" }]), "E_INVALID_ARGUMENTS"),
    ];
    for (edits, expected) in cases {
        let (code, text) =
            test_env.refusal("MultiEdit", json!({ "file_path": "a.txt", "edits": edits })).await;
        assert_eq!(code, expected, "{text}");
    }
}

#[tokio::test]
async fn a_patch_changes_several_files_or_none() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "one\ntwo\nthree\n");
    test_env.put("b.txt", "gone\n");
    test_env.put("c.txt", "moved\n");
    for path in ["a.txt", "b.txt", "c.txt"] {
        read(&test_env, path).await;
    }
    let good = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n\
        diff --git a/b.txt b/b.txt\ndeleted file mode 100644\n--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n\
        diff --git a/c.txt b/d/c.txt\nsimilarity index 100%\nrename from c.txt\nrename to d/c.txt\n\
        diff --git a/new/n.txt b/new/n.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new/n.txt\n@@ -0,0 +1 @@\n+fresh\n";
    let bad = format!("{good}--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-nope\n+x\n");
    let (code, text) = test_env.refusal("ApplyPatch", json!({ "patch": bad })).await;
    assert_eq!(code, "E_PATCH_FAILED", "{text}");
    assert_eq!(
        (test_env.get("a.txt").as_str(), test_env.get("b.txt").as_str()),
        ("one\ntwo\nthree\n", "gone\n")
    );
    assert!(!test_env.path("main/new").exists() && !test_env.path("main/d").exists());
    let answer = test_env.call("ApplyPatch", json!({ "patch": good })).await;
    assert!(!answer.is_error, "{}", answer.text());
    assert_eq!(
        (test_env.get("a.txt").as_str(), test_env.get("new/n.txt").as_str()),
        ("one\nTWO\nthree\n", "fresh\n")
    );
    assert_eq!(test_env.get("d/c.txt"), "moved\n");
    assert!(!test_env.path("main/b.txt").exists() && !test_env.path("main/c.txt").exists());
    assert_eq!(answer.structured["deleted"], json!(["b.txt", "c.txt"]));
    // The session has seen what it wrote.
    edit(&test_env, "new/n.txt", "fresh", "stale").await.unwrap();
    let (code, _) = test_env.refusal("ApplyPatch", json!({ "patch": "nonsense" })).await;
    assert_eq!(code, "E_PATCH_INVALID");
    let link =
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a.txt\n";
    assert_eq!(test_env.refusal("ApplyPatch", json!({ "patch": link })).await.0, "E_PATCH_INVALID");
    assert!(!test_env.path("main/l").exists());
    let out = "--- /dev/null\n+++ b/../../x\n@@ -0,0 +1 @@\n+x\n";
    assert_eq!(
        test_env.refusal("ApplyPatch", json!({ "patch": out })).await.0,
        "E_SANDBOX_VIOLATION"
    );
}

#[tokio::test]
async fn what_is_deleted_is_in_the_trash_and_can_be_brought_back() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "one\n");
    test_env.put("d/x", "x");
    let answer = test_env.call("Delete", json!({ "path": "a.txt" })).await;
    assert!(!test_env.path("main/a.txt").exists());
    let trash = answer.structured["trash"].as_str().unwrap().to_owned();
    test_env.text("Move", json!({ "source": trash, "destination": "a.txt" })).await;
    assert_eq!(test_env.get("a.txt"), "one\n");
    let (code, _) = test_env.refusal("Delete", json!({ "path": "d" })).await;
    assert_eq!(code, "E_DIRECTORY_NOT_EMPTY");
    test_env.text("Delete", json!({ "path": "d", "recursive": true })).await;
    assert!(!test_env.path("main/d").exists());
    for (path, expected) in [
        (".", "E_INVALID_PATH"),
        ("", "E_INVALID_ARGUMENTS"),
        ("nope", "E_NOT_FOUND"),
        ("..", "E_SANDBOX_VIOLATION"),
        (".carrel-trash", "E_INVALID_PATH"),
        ("x/..", "E_NOT_FOUND"),
    ] {
        let (code, text) =
            test_env.refusal("Delete", json!({ "path": path, "recursive": true })).await;
        assert_eq!(code, expected, "{path}: {text}");
    }
}

#[tokio::test]
async fn a_move_never_loses_what_stands_in_its_way() {
    let test_env = TestEnvironment::new();
    test_env.put("a", "a");
    test_env.put("b", "b");
    test_env.put("d/x", "x");
    let (code, _) = test_env.refusal("Move", json!({ "source": "a", "destination": "b" })).await;
    assert_eq!(code, "E_ALREADY_EXISTS");
    let answer = test_env
        .call("Move", json!({ "source": "a", "destination": "b", "overwrite": true }))
        .await;
    assert_eq!(test_env.get("b"), "a");
    assert_eq!(test_env.get(answer.structured["replaced"].as_str().unwrap()), "b");
    let (code, _) = test_env
        .refusal("Move", json!({ "source": "d", "destination": "d/x", "overwrite": true }))
        .await;
    assert_eq!(code, "E_ALREADY_EXISTS");
    assert_eq!(test_env.get("d/x"), "x");
    test_env.text("Move", json!({ "source": "d", "destination": "new/place" })).await;
    assert_eq!(test_env.get("new/place/x"), "x");
    let (code, _) =
        test_env.refusal("Move", json!({ "source": "b", "destination": "../out" })).await;
    assert_eq!(code, "E_SANDBOX_VIOLATION");
}

#[tokio::test]
async fn what_would_run_later_is_put_back_whichever_way_it_was_written() {
    let test_env = TestEnvironment::new();
    test_env.text("Bash", json!({ "command": "git init -q . && git config user.name x" })).await;
    let hook =
        json!({ "file_path": ".git/hooks/pre-commit", "content": "#!/bin/sh\ntouch /tmp/x\n" });
    let (code, text) = test_env.refusal("Write", hook).await;
    assert_eq!(code, "E_RUNS_LATER", "{text}");
    assert!(!test_env.path("main/.git/hooks/pre-commit").exists(), "{text}");
    let tasks = json!({ "file_path": ".vscode/tasks.json", "content": "{}" });
    assert_eq!(test_env.refusal("Write", tasks).await.0, "E_RUNS_LATER");
    assert!(!test_env.path("main/.vscode/tasks.json").exists());
    read(&test_env, ".git/config").await;
    let config = test_env.get(".git/config");
    let edit = edit(&test_env, ".git/config", "[core]", "[core]\n\thooksPath = /tmp/h").await;
    assert!(edit.unwrap_err().contains("core.hooksPath"));
    assert_eq!(test_env.get(".git/config").trim(), config.trim());
    test_env.text("Write", json!({ "file_path": "h/pre-commit", "content": "x" })).await;
    let moved = json!({ "source": "h", "destination": ".git/hooks", "overwrite": true });
    assert_eq!(test_env.refusal("Move", moved).await.0, "E_RUNS_LATER");
    assert!(!test_env.path("main/.git/hooks/pre-commit").exists());
    test_env.text("Write", json!({ "file_path": ".git/info/notes", "content": "x" })).await;
    assert!(
        !test_env.path("main/.carrel-aside").exists(),
        "none of it was there even for a moment"
    );
}

#[tokio::test]
async fn what_would_run_later_is_refused_before_it_is_there() {
    let test_env = TestEnvironment::new();
    let plant = "git init -q . && mkdir -p a/b && git init -q a/b/evil && cd a/b && \
        printf x > evil/.git/hooks/post-checkout && git -C evil config core.fsmonitor evil && \
        mkdir v h objects && touch v/tasks.json h/hook envrc && ln -s a/b/evil link && \
        ln -s /tmp out && cd ../.. && ln -s a/b/later later && mkdir bare && \
        echo 'ref: refs/heads/main' > bare/HEAD && mkdir bare/refs && \
        printf '[core]\\n\\tfsmonitor = evil\\n' > bare/config";
    test_env.text("Bash", json!({ "command": plant })).await;
    for file_path in [
        "newdir/.mcp.json",
        "newdir/../other/.envrc",
        "repos/new/.vscode/tasks.json",
        ".envrc",
        ".git/hooks/pre-commit",
        ".git/modules/sub/hooks/pre-commit",
        "new/.git",
        ".config/fish/conf.d/x.fish",
        "bare/objects/x",
        "a/b/later/.envrc",
    ] {
        let write = json!({ "file_path": file_path, "content": "x" });
        assert_eq!(test_env.refusal("Write", write).await.0, "E_RUNS_LATER", "{file_path}");
        let patch = format!("*** Begin Patch\n*** Add File: {file_path}\n+x\n*** End Patch\n");
        let refused = test_env.refusal("ApplyPatch", json!({ "patch": patch })).await;
        assert_eq!(refused.0, "E_RUNS_LATER", "{file_path}");
    }
    for (source, destination) in [
        ("a/b/evil", "sub"),
        ("a/b/evil", "repos/sub"),
        ("a/b", "repos"),
        ("a/b/v", ".vscode"),
        ("a/b/v", "src/.vscode"),
        ("a/b/envrc", ".envrc"),
        ("a/b/h", ".git/hooks/h"),
        ("a/b/link", "link"),
        ("a/b/out", "out"),
        ("a/b/objects", "bare/objects"),
    ] {
        let moved = json!({ "source": source, "destination": destination });
        let (code, text) = test_env.refusal("Move", moved).await;
        assert_eq!(code, "E_RUNS_LATER", "{source} {destination}: {text}");
        assert!(test_env.path("main").join(source).symlink_metadata().is_ok(), "{source} stays");
    }
    assert!(
        !test_env.path("main/.carrel-aside").exists(),
        "none of it was there even for a moment"
    );
    for name in ["newdir", "other", "repos", "new", ".config"] {
        assert!(!test_env.path("main").join(name).exists(), "{name} was not made either");
    }
}

#[tokio::test]
async fn what_does_not_run_later_can_be_written_and_moved() {
    let test_env = TestEnvironment::new();
    let command = "git init -q . && git init -q api && mkdir -p a/b && git init -q a/b/plain && \
        mkdir src && echo x > src/HEAD && printf x > .envrc";
    std::fs::write(test_env.path("main/.envrc"), "x").unwrap();
    test_env.text("Bash", json!({ "command": command })).await;
    for file_path in [
        "src/hooks/useThing.ts",
        "src/config",
        "src/objects/x",
        "deep/er/.envrc",
        ".claude/todos/1.json",
        ".git/hooks/new.sample",
        ".git/info/exclude2",
        "newdir/README.md",
    ] {
        test_env.text("Write", json!({ "file_path": file_path, "content": "x" })).await;
    }
    read(&test_env, ".envrc").await;
    test_env.text("Write", json!({ "file_path": ".envrc", "content": "x" })).await;
    read(&test_env, ".git/config").await;
    edit(&test_env, ".git/config", "[core]", "[user]\n\tname = A\n[core]").await.unwrap();
    for (source, destination) in
        [("api", "services"), ("a/b/plain", "plain"), ("services", "a/b/api"), ("a/b/api", "api")]
    {
        test_env.text("Move", json!({ "source": source, "destination": destination })).await;
        assert!(test_env.path("main").join(destination).join(".git").exists());
    }
}

#[tokio::test]
async fn reading_never_rewrites_code_and_masks_known_secrets_only() {
    let test_env = TestEnvironment::with(Setting {
        secrets: &[("KEY", "s3cr3t-value")],
        ..Setting::default()
    });
    let code = "token = lexer.next()\nif token == nil {\npassword = None\nurl = http://localhost:8080/@me\n";
    test_env.put("a.py", format!("{code}key = 's3cr3t-value'\n"));
    let shown = read(&test_env, "a.py").await;
    assert!(
        shown.contains("1\ttoken = lexer.next()\n2\tif token == nil {\n3\tpassword = None\n"),
        "{shown}"
    );
    assert!(shown.contains("key = '[masked secret key]'"), "{shown}");
    edit(&test_env, "a.py", "password = None", "password = ''").await.unwrap();
    let (code, _) = test_env
        .refusal("Write", json!({ "file_path": "b", "content": "x [masked secret key]" }))
        .await;
    assert_eq!(code, "E_MASKED_WRITE");
    assert!(edit(&test_env, "a.py", "url", "[masked secret key]").await.is_err());
    assert!(test_env.get("a.py").contains("s3cr3t-value"));
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_one_session_at_the_same_time_are_all_made() {
    let test_env = TestEnvironment::new();
    let words: Vec<_> = (0..24).map(|number| format!("word-{number:02}\n")).collect();
    test_env.put("a.txt", words.concat());
    read(&test_env, "a.txt").await;
    let calls = words.iter().map(|word| edit(&test_env, "a.txt", word, "done\n"));
    for edited in futures_util::future::join_all(calls).await {
        edited.unwrap();
    }
    assert_eq!(test_env.get("a.txt"), "done\n".repeat(24));
}

#[tokio::test]
async fn a_large_file_is_told_about_like_a_small_one() {
    let test_env = TestEnvironment::new();
    let text = |word: &str| format!("{0}{word}\n{0}", "line\n".repeat(100_000));
    test_env.put("large.txt", text("old"));
    test_env.text("Read", json!({ "file_path": "large.txt", "limit": 1 })).await;
    let arguments = json!({ "file_path": "large.txt", "old_string": "old", "new_string": "new" });
    let edited = test_env.call("Edit", arguments).await;
    assert_eq!(edited.structured["lines"], json!([100_001]), "{}", edited.text());
    assert_eq!(test_env.get("large.txt"), text("new"));
    let read = test_env.call("Read", json!({ "file_path": "large.txt", "limit": 1 })).await;
    assert_eq!(edited.structured["hash"], read.structured["hash"]);
}

#[tokio::test]
async fn a_text_that_doubles_again_and_again_is_refused_and_nothing_is_written() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "a\n");
    read(&test_env, "a.txt").await;
    let double = json!({ "old_string": "a", "new_string": "aa", "replace_all": true });
    let edits = vec![double; 40];
    let answer = test_env.call("MultiEdit", json!({ "file_path": "a.txt", "edits": edits })).await;
    assert_eq!(answer.structured["error"]["code"], "E_EDIT_FILE_BATCH_TOO_LARGE");
    assert_eq!(answer.structured["error"]["detail"]["edit"], 20);
    assert!(answer.text().starts_with("edit 20: "), "{}", answer.text());
    let long = "a".repeat(40_000);
    let larger = json!({ "old_string": "a", "new_string": long, "replace_all": true });
    let (code, text) = test_env
        .refusal("MultiEdit", json!({ "file_path": "a.txt", "edits": [larger, larger] }))
        .await;
    assert_eq!(code, "E_TOO_LARGE");
    assert_eq!(text, "edit 2: a.txt would have more than 33554432 bytes");
    assert_eq!(test_env.get("a.txt"), "a\n");
}

#[tokio::test]
async fn files_are_written_and_it_is_said_once_where_no_lock_between_processes_can_be_made() {
    let test_env = TestEnvironment::new();
    std::fs::create_dir(test_env.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(test_env.path("elsewhere"), test_env.path("state/writers")).unwrap();
    for name in ["a.txt", "b.txt"] {
        test_env.text("Write", json!({ "file_path": name, "content": "x\n" })).await;
    }
    let events = test_env.events();
    let unlocked = |event: &&Value| event["event"] == "lifecycle.workspace.unlocked";
    let said: Vec<_> = events.iter().filter(unlocked).collect();
    assert_eq!(said.len(), 1, "{events:?}");
    assert_eq!(said[0]["workspace"], "main");
    let names = std::fs::read_dir(test_env.path("elsewhere")).unwrap();
    assert_eq!(names.count(), 0, "a link is not followed");
}

#[tokio::test]
async fn no_project_is_looked_for_at_the_end_of_an_endless_path() {
    let test_env = TestEnvironment::new();
    let path = "a/".repeat(100_000);
    let begun = std::time::Instant::now();
    let arguments = json!({ "file_path": path, "old_string": "a", "new_string": "b" });
    let (code, _) = test_env.refusal("Edit", arguments).await;
    assert_eq!(code, "E_NAME_TOO_LONG");
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
}
