//! Several processes of Carrel that write the same files.

use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use serde_json::json;

use crate::commands::SmallDisk;
use crate::interfaces::{Interface, ToolSession};
use crate::test_environment::TestEnvironment;

/// The edits of each process.
const EDITS: usize = 150;

/// How long another process is kept waiting: many times what an edit takes.
const HELD: Duration = Duration::from_secs(1);

/// Adds a line to a file, again and again until that is acknowledged.
fn add_line(session: &mut dyn ToolSession, line: &str) {
    loop {
        session.call("Read", json!({ "file_path": "list.txt" })).ok();
        let new = format!("{line}\nend\n");
        let edit = json!({ "file_path": "list.txt", "old_string": "end\n", "new_string": new });
        let answer = session.call("Edit", edit);
        if !answer.is_error {
            return;
        }
        assert_eq!(answer.code(), Some("E_CHANGED_SINCE_READ"), "{answer:?}");
    }
}

#[test]
fn no_edit_that_was_acknowledged_is_lost_to_another_process() {
    let test_env = TestEnvironment::usual();
    test_env.write("list.txt", "end\n");
    let workspace = test_env.workspace();
    let options = ["--workspace", workspace.to_str().unwrap()];
    let line = |who: &str, number: usize| format!("{who} {number}");
    std::thread::scope(|scope| {
        for who in ["one", "other"] {
            let (test_env, options) = (&test_env, &options);
            scope.spawn(move || {
                let mut session = Interface::Stdio.open(test_env, options);
                (0..EDITS).for_each(|number| add_line(&mut *session, &line(who, number)));
            });
        }
    });
    let text = std::fs::read_to_string(workspace.join("list.txt")).unwrap();
    let mut found: Vec<_> = text.lines().filter(|line| *line != "end").collect();
    found.sort_unstable();
    let all = ["one", "other"].map(|who| (0..EDITS).map(move |number| line(who, number)));
    let mut expected: Vec<_> = all.into_iter().flatten().collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(test_env.path("state/carrel/writers").is_dir(), "there is a lock between processes");
}

#[test]
fn a_process_waits_for_another_that_writes_the_same_directory() {
    let test_env = TestEnvironment::usual();
    test_env.write("list.txt", "end\n");
    let workspace = test_env.workspace();
    let mut session =
        Interface::Stdio.open(&test_env, &["--workspace", workspace.to_str().unwrap()]);
    add_line(&mut *session, "first");
    let locks: Vec<_> = std::fs::read_dir(test_env.path("state/carrel/writers")).unwrap().collect();
    assert_eq!(locks.len(), 1);
    let lock = std::fs::File::open(locks[0].as_ref().unwrap().path()).unwrap();
    assert_eq!(lock.metadata().unwrap().mode() & 0o777, 0o600);
    // This process now stands for one that is about to put its own text in place.
    lock.lock().unwrap();
    let text = || std::fs::read_to_string(workspace.join("list.txt")).unwrap();
    std::thread::scope(|scope| {
        let adding = scope.spawn(|| {
            let mut session =
                Interface::Stdio.open(&test_env, &["--workspace", workspace.to_str().unwrap()]);
            add_line(&mut *session, "second");
        });
        std::thread::sleep(HELD);
        assert_eq!(text(), "first\nend\n");
        lock.unlock().unwrap();
        adding.join().unwrap();
    });
    assert_eq!(text(), "first\nsecond\nend\n");
}

/// Text of so many bytes, in lines.
fn text_of(bytes: usize) -> String {
    "0123456\n".repeat(bytes / 8)
}

#[test]
fn a_tool_writes_no_more_than_the_quota_leaves() {
    let test_env = TestEnvironment::usual();
    let workspace = test_env.managed("1MiB");
    let mut session =
        Interface::Stdio.open(&test_env, &["--workspace", workspace.to_str().unwrap()]);
    let write = |name: &str, bytes: usize| json!({ "file_path": name, "content": text_of(bytes) });
    let answer = session.call("Write", write("large.txt", 2 << 20));
    assert_eq!(answer.refused().0, "E_QUOTA_EXCEEDED", "{answer:?}");
    assert!(!workspace.join("large.txt").exists());
    session.call("Write", write("half.txt", 512 << 10)).ok();
    // What a command has written counts too.
    session.call("Bash", json!({ "command": "head -c 400000 /dev/zero > zeros" })).ok();
    let answer = session.call("Write", write("more.txt", 256 << 10));
    assert_eq!(answer.refused().0, "E_QUOTA_EXCEEDED", "{answer:?}");
    let grown = format!("{}end\n", text_of(256 << 10));
    let patch = "*** Begin Patch\n*** Add File: more.txt\n";
    let added = grown.lines().map(|line| format!("+{line}\n")).collect::<Vec<_>>().concat();
    let answer =
        session.call("ApplyPatch", json!({ "patch": format!("{patch}{added}*** End Patch\n") }));
    assert_eq!(answer.refused().0, "E_QUOTA_EXCEEDED", "{answer:?}");
    assert!(!workspace.join("more.txt").exists());
    session.call("Write", write("small.txt", 8)).ok();
    let edit = json!({ "file_path": "small.txt", "old_string": "0123456\n", "new_string": grown });
    assert_eq!(session.call("Edit", edit).refused().0, "E_QUOTA_EXCEEDED");
    // Whoever makes a file smaller can always do so.
    session.call("Write", write("half.txt", 8)).ok();
    session.call("Write", write("more.txt", 256 << 10)).ok();
}

#[test]
fn the_trash_of_a_workspace_takes_a_quarter_of_its_quota() {
    let test_env = TestEnvironment::usual();
    let workspace = test_env.managed("4MiB");
    let mut session =
        Interface::Stdio.open(&test_env, &["--workspace", workspace.to_str().unwrap()]);
    let trash = workspace.join(".carrel-trash");
    let kept = || {
        let entries = std::fs::read_dir(&trash).unwrap().map(Result::unwrap);
        let directories = entries.filter(|entry| entry.path().is_dir());
        let mut names: Vec<_> = directories
            .flat_map(|entry| std::fs::read_dir(entry.path()).unwrap())
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    for (name, bytes) in [("a", 300 << 10), ("b", 300 << 10), ("c", 600 << 10), ("d", 2 << 20)] {
        let content = text_of(bytes);
        let file = format!("{name}/file.txt");
        session.call("Write", json!({ "file_path": file, "content": content })).ok();
    }
    let mut delete = |name: &str| {
        session.call("Delete", json!({ "path": name, "recursive": true })).ok();
        kept()
    };
    assert_eq!(delete("a"), ["a"]);
    assert_eq!(delete("b"), ["a", "b"]);
    assert_eq!(delete("c"), ["b", "c"]);
    // One that is larger than the trash may be is deleted at once.
    assert_eq!(delete("d"), ["b", "c"]);
    assert!(!workspace.join("d").exists());
}

#[test]
fn a_deletion_over_quota_frees_space_through_every_interface() {
    for interface in Interface::ALL {
        let test_env = TestEnvironment::usual();
        let workspace = test_env.managed("4MiB");
        let options = ["--workspace", workspace.to_str().unwrap()];
        let mut session = interface.open(&test_env, &options);
        session.call("Write", json!({ "file_path": "first", "content": "x" })).ok();
        for name in ["big", "small"] {
            test_env.write(name, &"x".repeat(if name == "big" { 6 << 20 } else { 1 << 10 }));
            std::fs::copy(test_env.workspace().join(name), workspace.join(name)).unwrap();
        }
        for name in ["small", "big"] {
            let answer = session.call("Delete", json!({ "path": name }));
            assert_eq!(answer.structured["trash"], json!(null), "{interface:?}: {answer:?}");
            assert!(!workspace.join(name).exists(), "{interface:?}");
        }
        // With room again, a deletion can be undone.
        let answer = session.call("Delete", json!({ "path": "first" }));
        assert!(answer.structured["trash"].is_string(), "{interface:?}: {answer:?}");
    }
}

#[test]
fn a_deletion_on_a_full_disk_needs_no_space() {
    carrel_skip::needs!(Root);
    let test_env = TestEnvironment::usual();
    let disk = SmallDisk::mount(test_env.path("disk"));
    test_env.give_to_caller(&disk.0);
    let options = ["--workspace", disk.0.to_str().unwrap()];
    let mut session = Interface::Stdio.open(&test_env, &options);
    std::fs::create_dir(disk.0.join("tree")).unwrap();
    std::fs::write(disk.0.join("tree/file"), "x").unwrap();
    // To the last byte, and to the last inode.
    let mut full = std::fs::File::create(disk.0.join("full")).unwrap();
    while std::io::Write::write(&mut full, &[0; 4096]).is_ok() {}
    for number in 0.. {
        if std::fs::File::create(disk.0.join(format!("empty-{number}"))).is_err() {
            break;
        }
    }
    for name in ["tree", "full"] {
        let answer = session.call("Delete", json!({ "path": name, "recursive": true }));
        assert_eq!(answer.structured["trash"], json!(null), "{answer:?}");
        assert!(!disk.0.join(name).exists());
    }
}
