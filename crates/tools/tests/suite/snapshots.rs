//! Snapshots through the tools: take, list, compare, restore, delete.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::test_environment::{Setting, TestEnvironment};

fn git(directory: &Path, words: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(directory).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_restore_brings_everything_back_and_lists_exactly_what_it_changed() {
    let test_env = TestEnvironment::new();
    assert_eq!(test_env.text("snapshot_list", json!({})).await, "no snapshots\n");
    test_env.put("keep.txt", "keep\n");
    test_env.put("edit.txt", "one\ntwo\n");
    test_env.put("gone/deep.txt", "deep\n");
    test_env.put_program("run.sh", "#!/bin/sh\n");
    test_env.put("ünï cödé.txt", "ü\n");
    let created = test_env.text("snapshot_create", json!({ "name": "baseline" })).await;
    let first = created.lines().next().unwrap();
    let hash = first.strip_prefix("snapshot baseline created: ").unwrap();
    assert!(hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{created}");
    let list = test_env.text("snapshot_list", json!({})).await;
    let columns: Vec<_> = list.lines().next().unwrap().split('\t').collect();
    assert_eq!(
        (columns[0], columns[1], columns[3]),
        ("baseline", &hash[..12], "snapshot: baseline")
    );
    let same = test_env.text("snapshot_diff", json!({ "name": "baseline" })).await;
    assert_eq!(same, "no differences\n");

    test_env.put("edit.txt", "one\n2\n");
    test_env.put("new/file.txt", "new\n");
    std::fs::remove_dir_all(test_env.path("main/gone")).unwrap();
    let script = test_env.path("main/run.sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::rename(test_env.path("main/ünï cödé.txt"), test_env.path("main/plain.txt")).unwrap();
    let diff = test_env.text("snapshot_diff", json!({ "name": "baseline" })).await;
    for part in [
        "--- a/edit.txt\n+++ b/edit.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
        "new file mode 100644\n--- /dev/null\n+++ b/new/file.txt\n@@ -0,0 +1 @@\n+new\n",
        "old mode 100755\nnew mode 100644\n",
        "rename from ünï cödé.txt\nrename to plain.txt\n",
        "--- a/gone/deep.txt\n+++ /dev/null\n",
    ] {
        assert!(diff.contains(part), "{part:?} in {diff}");
    }
    let planned =
        test_env.call("snapshot_restore", json!({ "name": "baseline", "dry_run": true })).await;
    assert!(test_env.has("new/file.txt"));
    let restored = test_env.call("snapshot_restore", json!({ "name": "baseline" })).await;
    let changes = &restored.structured["changes"];
    assert_eq!(*changes, planned.structured["changes"]);
    let change = |path: &str, change: &str| json!({ "path": path, "change": change });
    assert_eq!(
        *changes,
        json!([
            change("edit.txt", "modified"),
            change("gone", "added"),
            change("gone/deep.txt", "added"),
            change("new", "deleted"),
            change("new/file.txt", "deleted"),
            change("plain.txt", "deleted"),
            change("run.sh", "mode"),
            change("ünï cödé.txt", "added"),
        ])
    );
    assert!(
        restored
            .text()
            .starts_with("restored snapshot baseline (8 file(s) changed):\nmodified edit.txt\n")
    );
    assert_eq!(test_env.get("edit.txt"), "one\ntwo\n");
    assert_eq!(test_env.get("gone/deep.txt"), "deep\n");
    assert!(!test_env.has("new"));
    assert_eq!(script.metadata().unwrap().permissions().mode() & 0o777, 0o755);

    // What a restore replaced is a snapshot too.
    let before = restored.structured["before"].as_str().unwrap().to_owned();
    test_env.text("snapshot_restore", json!({ "name": before })).await;
    assert_eq!(test_env.get("edit.txt"), "one\n2\n");
    assert_eq!(test_env.get("new/file.txt"), "new\n");
    assert!(test_env.has("plain.txt") && !test_env.has("gone"));
}

#[tokio::test]
async fn a_restore_of_paths_leaves_the_rest() {
    let test_env = TestEnvironment::new();
    test_env.put("a/one.txt", "1\n");
    test_env.put("b.txt", "b\n");
    test_env.text("snapshot_create", json!({ "name": "s" })).await;
    test_env.put("a/one.txt", "changed\n");
    test_env.put("b.txt", "changed\n");
    let absolute = test_env.path("main/a").display().to_string();
    test_env.text("snapshot_restore", json!({ "name": "s", "paths": [absolute] })).await;
    assert_eq!(test_env.get("a/one.txt"), "1\n");
    assert_eq!(test_env.get("b.txt"), "changed\n");
    let call = json!({ "name": "s", "paths": ["nope"] });
    let (code, _) = test_env.refusal("snapshot_restore", call).await;
    assert_eq!(code, "E_NOT_FOUND");
}

#[tokio::test]
async fn a_restored_file_has_to_be_read_again() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "old\n");
    test_env.text("snapshot_create", json!({ "name": "s" })).await;
    test_env.put("a.txt", "new\n");
    test_env.text("Read", json!({ "file_path": "a.txt" })).await;
    test_env.text("snapshot_restore", json!({ "name": "s" })).await;
    let (code, _) =
        test_env.refusal("Write", json!({ "file_path": "a.txt", "content": "mine\n" })).await;
    assert_eq!(code, "E_CHANGED_SINCE_READ");
}

#[tokio::test]
async fn ignored_trees_are_named_and_left_alone() {
    let test_env = TestEnvironment::new();
    test_env.put(".gitignore", "node_modules/\n*.log\n");
    test_env.put("node_modules/dep/index.js", "1\n");
    test_env.put("src.js", "1\n");
    let created = test_env.call("snapshot_create", json!({ "name": "s" })).await;
    assert_eq!(created.structured["ignored"], json!(["node_modules"]), "{}", created.text());
    test_env.put("node_modules/dep/index.js", "2\n");
    test_env.put("src.js", "2\n");
    test_env.put("late.log", "x\n");
    test_env.text("snapshot_restore", json!({ "name": "s" })).await;
    assert_eq!(test_env.get("node_modules/dep/index.js"), "2\n");
    assert_eq!(test_env.get("src.js"), "1\n");
    assert!(test_env.has("late.log"));
    test_env.text("snapshot_create", json!({ "name": "whole", "ignored": true })).await;
    test_env.put("node_modules/dep/index.js", "3\n");
    test_env.text("snapshot_restore", json!({ "name": "whole" })).await;
    assert_eq!(test_env.get("node_modules/dep/index.js"), "2\n");
}

/// A command that maps a file and writes to it, and once more when it is told to: no time of the file shows that.
const MAPPING: &str = r"
import mmap, os, time
f = open('mapped.txt', 'r+b')
m = mmap.mmap(f.fileno(), 0, mmap.MAP_SHARED)
m[0:4] = b'1111'
open('.first', 'w')
while not os.path.exists('.go'): time.sleep(0.01)
m[0:4] = b'2222'
open('.second', 'w')
while not os.path.exists('.end'): time.sleep(0.01)
";

#[tokio::test]
async fn a_diff_shows_what_a_running_command_writes_through_a_mapping() {
    let test_env = TestEnvironment::new();
    test_env.put("mapped.txt", "0000\n");
    test_env.put("mapping.py", MAPPING);
    test_env.text("snapshot_create", json!({ "name": "s" })).await;
    let command = json!({ "command": "python3 mapping.py", "run_in_background": true });
    test_env.text("Bash", command).await;
    let until = async |path: &str| {
        while !test_env.has(path) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    until(".first").await;
    // The key of the first store has to be old enough to be trusted.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let diff = json!({ "name": "s", "path": "mapped.txt" });
    let shown = test_env.text("snapshot_diff", diff.clone()).await;
    assert!(shown.contains("+1111\n"), "{shown}");
    test_env.put(".go", "");
    until(".second").await;
    let shown = test_env.text("snapshot_diff", diff).await;
    test_env.put(".end", "");
    assert!(shown.contains("+2222\n"), "{shown}");
}

#[tokio::test]
async fn long_lists_are_cut_and_counted() {
    let test_env = TestEnvironment::new();
    test_env.put(".gitignore", "*.log\n");
    test_env.put("a.txt", "1\n");
    for number in 0..250 {
        test_env.put(&format!("{number}.log"), "x\n");
        test_env.put(&format!("repository{number}/.git/HEAD"), "x\n");
        std::os::unix::fs::symlink("a.txt", test_env.path(&format!("main/link{number}"))).unwrap();
    }
    let created = test_env.call("snapshot_create", json!({ "name": "s" })).await;
    let listed = |response: &carrel_tools::ToolResponse, list: &str| {
        let facts = &response.structured;
        (facts[list].as_array().unwrap().len(), facts[format!("{list}_total")].as_u64().unwrap())
    };
    assert_eq!(listed(&created, "ignored"), (200, 250));
    assert_eq!(listed(&created, "left_out"), (0, 0));
    // Rules that are gone: one side left out what the other has.
    test_env.put(".gitignore", "");
    let diff = json!({ "name": "s", "max_bytes": 2000 });
    let diff = test_env.call("snapshot_diff", diff).await;
    assert_eq!(listed(&diff, "incomparable"), (200, 250));
    assert!(diff.text().contains("0.log, 1.log, 10.log") && diff.text().len() < 10_000);
    assert!(diff.text().contains(" and 242 more]"), "{}", diff.text());
    let plan = test_env.call("snapshot_restore", json!({ "name": "s", "dry_run": true })).await;
    assert_eq!(listed(&plan, "left_alone"), (200, 250));
}

#[tokio::test]
async fn what_a_process_left_of_a_restore_is_finished_before_the_first_call_of_the_next() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "1\n");
    test_env.text("snapshot_create", json!({ "name": "s" })).await;
    let stores = test_env.path("state/snapshots");
    let store = std::fs::read_dir(stores).unwrap().next().unwrap().unwrap().path();
    // The journal of an undo that wrote nothing: it goes when it was looked at.
    let journal = store.join("undo.journal");
    std::fs::write(&journal, "cut short").unwrap();
    let test_env = test_env.restarted(Setting::default());
    test_env.text("Read", json!({ "file_path": "a.txt" })).await;
    assert!(!journal.exists());
    // Of one that another process left meanwhile, the next use of the snapshots knows.
    std::fs::write(&journal, "cut short").unwrap();
    test_env.text("snapshot_list", json!({})).await;
    assert!(!journal.exists());
}

#[tokio::test]
async fn a_snapshot_whose_record_is_damaged_is_named_and_can_be_deleted() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "1\n");
    test_env.text("snapshot_create", json!({ "name": "s" })).await;
    let stores = test_env.path("state/snapshots");
    let store = std::fs::read_dir(stores).unwrap().next().unwrap().unwrap().path();
    std::fs::write(store.join("snapshot-000001"), "damaged").unwrap();
    let test_env = test_env.restarted(Setting::default());
    let list = test_env.text("snapshot_list", json!({})).await;
    assert!(list.contains("snapshot_delete @1 gives that snapshot up"), "{list}");
    test_env.text("snapshot_delete", json!({ "name": "@1" })).await;
    assert_eq!(test_env.text("snapshot_list", json!({})).await, "no snapshots\n");
}

#[tokio::test]
async fn the_repository_of_the_user_is_untouched() {
    let test_env = TestEnvironment::new();
    let main = test_env.path("main");
    git(&main, &["init", "-q", "-b", "main"]);
    // A program that git would run.
    let planted = test_env.path("ran");
    let program = format!("touch '{}'", planted.display());
    for (name, value) in [
        ("user.name", "A"),
        ("user.email", "a@example.org"),
        ("core.fsmonitor", &*program),
        ("filter.planted.clean", &*program),
    ] {
        git(&main, &["config", name, value]);
    }
    test_env.put(".gitattributes", "*.txt filter=planted\n");
    test_env.put("a.txt", "1\n");
    git(&main, &["-c", "core.fsmonitor=", "-c", "filter.planted.clean=cat", "add", "."]);
    git(&main, &["-c", "core.fsmonitor=", "commit", "-q", "-m", "first"]);
    std::fs::remove_file(&planted).ok();
    let state = || {
        let tree = |path: &str| std::fs::read(main.join(".git").join(path)).unwrap();
        let names: Vec<_> = std::fs::read_dir(main.join(".git"))
            .unwrap()
            .flatten()
            .map(|one| one.file_name())
            .collect();
        (tree("HEAD"), tree("index"), names.len())
    };
    let before = state();
    test_env.text("snapshot_create", json!({ "name": "s" })).await;
    test_env.put("a.txt", "2\n");
    test_env.text("snapshot_diff", json!({ "name": "s" })).await;
    test_env.text("snapshot_restore", json!({ "name": "s" })).await;
    test_env.text("snapshot_delete", json!({ "name": "s" })).await;
    assert_eq!(state(), before);
    assert!(!planted.exists(), "a snapshot ran a program of the repository");
    assert_eq!(test_env.get("a.txt"), "1\n");
}

#[tokio::test]
async fn a_linked_work_tree_is_a_directory_like_any_other() {
    let test_env = TestEnvironment::new();
    let other = test_env.path("other");
    std::fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q", "-b", "main"]);
    git(
        &other,
        &[
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ],
    );
    let main = test_env.path("main");
    git(&other, &["worktree", "add", "-q", "--force", main.to_str().unwrap()]);
    let pointer = test_env.get(".git");
    test_env.put("a.txt", "1\n");
    test_env.text("snapshot_create", json!({ "name": "s" })).await;
    test_env.put("a.txt", "2\n");
    test_env.text("snapshot_restore", json!({ "name": "s" })).await;
    assert_eq!((test_env.get("a.txt"), test_env.get(".git")), ("1\n".to_owned(), pointer));
}

#[tokio::test]
async fn what_changes_much_is_preceded_by_a_snapshot() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "1\n");
    test_env.put("tree/b.txt", "1\n");
    let one = "*** Begin Patch\n*** Update File: a.txt\n@@\n-1\n+2\n*** End Patch\n";
    test_env.text("ApplyPatch", json!({ "patch": one })).await;
    let automatic = async || {
        let list = test_env.call("snapshot_list", json!({ "automatic": true })).await;
        let list = list.structured["snapshots"].as_array().unwrap().clone();
        let of = |one: &serde_json::Value| (one["id"].clone(), one["description"].clone());
        list.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(automatic().await, []);
    let several = "*** Begin Patch\n*** Update File: a.txt\n@@\n-2\n+3\n*** Update File: tree/b.txt\n@@\n-1\n+3\n*** End Patch\n";
    test_env.text("ApplyPatch", json!({ "patch": several })).await;
    test_env.text("Delete", json!({ "path": "tree", "recursive": true })).await;
    let taken = automatic().await;
    let descriptions: Vec<_> = taken.iter().map(|(_, description)| description.clone()).collect();
    assert_eq!(descriptions, ["before a directory is deleted", "before a patch of several files"]);
    test_env.text("snapshot_restore", json!({ "name": taken[1].0 })).await;
    assert_eq!(test_env.get("a.txt"), "2\n");
    assert_eq!(test_env.get("tree/b.txt"), "1\n");
}

#[tokio::test]
async fn names_are_refused_with_the_rule() {
    let test_env = TestEnvironment::new();
    for name in ["", ".secret", "foo/bar", "foo bar", "-leading", "a\tb"] {
        let (code, text) = test_env.refusal("snapshot_create", json!({ "name": name })).await;
        assert_eq!(code, "E_INVALID_ARGUMENTS");
        let rule = if name.is_empty() { "name is required" } else { "must match" };
        assert!(text.contains(rule), "{text}");
    }
    for name in ["a..b", "x.lock"] {
        test_env.text("snapshot_create", json!({ "name": name })).await;
    }
    let (code, text) = test_env.refusal("snapshot_create", json!({ "name": "a..b" })).await;
    assert_eq!(code, "E_ALREADY_EXISTS", "{text}");
    test_env.text("snapshot_create", json!({ "name": "a..b", "replace": true })).await;
    for tool in ["snapshot_restore", "snapshot_diff", "snapshot_delete"] {
        let (code, text) = test_env.refusal(tool, json!({ "name": "nope" })).await;
        assert_eq!(code, "E_SNAPSHOT_NOT_FOUND");
        assert!(text.starts_with("snapshot \"nope\" not found; there are a..b, x.lock"), "{text}");
    }
    test_env.text("snapshot_delete", json!({ "name": "x.lock" })).await;
    let list = test_env.text("snapshot_list", json!({})).await;
    assert!(list.starts_with("a..b\t") && list.lines().count() == 1, "{list}");
}
