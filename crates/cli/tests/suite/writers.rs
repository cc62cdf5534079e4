//! Several processes of Carrel that write the same files.

use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use serde_json::json;

use crate::doors::{Door, Way};
use crate::lab::Lab;

/// The edits of each process.
const EDITS: usize = 150;

/// How long another process is kept waiting: many times what an edit takes.
const HELD: Duration = Duration::from_secs(1);

/// Adds a line to a file, again and again until that is acknowledged.
fn add_line(door: &mut dyn Door, line: &str) {
    loop {
        door.call("Read", json!({ "file_path": "list.txt" })).ok();
        let new = format!("{line}\nend\n");
        let edit = json!({ "file_path": "list.txt", "old_string": "end\n", "new_string": new });
        let answer = door.call("Edit", edit);
        if !answer.is_error {
            return;
        }
        assert_eq!(answer.code(), Some("E_CHANGED_SINCE_READ"), "{answer:?}");
    }
}

#[test]
fn no_edit_that_was_acknowledged_is_lost_to_another_process() {
    let lab = Lab::usual();
    lab.write("list.txt", "end\n");
    let workspace = lab.workspace();
    let options = ["--workspace", workspace.to_str().unwrap()];
    let line = |who: &str, number: usize| format!("{who} {number}");
    std::thread::scope(|scope| {
        for who in ["one", "other"] {
            let (lab, options) = (&lab, &options);
            scope.spawn(move || {
                let mut door = Way::Stdio.open(lab, options);
                (0..EDITS).for_each(|number| add_line(&mut *door, &line(who, number)));
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
    assert!(lab.path("state/carrel/writers").is_dir(), "there is a lock between processes");
}

#[test]
fn a_process_waits_for_another_that_writes_the_same_directory() {
    let lab = Lab::usual();
    lab.write("list.txt", "end\n");
    let workspace = lab.workspace();
    let mut door = Way::Stdio.open(&lab, &["--workspace", workspace.to_str().unwrap()]);
    add_line(&mut *door, "first");
    let locks: Vec<_> = std::fs::read_dir(lab.path("state/carrel/writers")).unwrap().collect();
    assert_eq!(locks.len(), 1);
    let lock = std::fs::File::open(locks[0].as_ref().unwrap().path()).unwrap();
    assert_eq!(lock.metadata().unwrap().mode() & 0o777, 0o600);
    // This process now stands for one that is about to put its own text in place.
    lock.lock().unwrap();
    let text = || std::fs::read_to_string(workspace.join("list.txt")).unwrap();
    std::thread::scope(|scope| {
        let adding = scope.spawn(|| {
            let mut door = Way::Stdio.open(&lab, &["--workspace", workspace.to_str().unwrap()]);
            add_line(&mut *door, "second");
        });
        std::thread::sleep(HELD);
        assert_eq!(text(), "first\nend\n");
        lock.unlock().unwrap();
        adding.join().unwrap();
    });
    assert_eq!(text(), "first\nsecond\nend\n");
}
