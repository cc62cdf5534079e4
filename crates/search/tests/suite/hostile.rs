use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use carrel_search::{
    Cancel, Detail, GlobRequest, GrepRequest, ListRequest, Scope, glob, grep, list,
};
use pretty_assertions::assert_eq;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::thread::{Gid, Uid, set_thread_res_gid, set_thread_res_uid};

use crate::{TestTree, find, names_in, text_of};

/// A user and group that own nothing.
const NOBODY: u32 = 65534;

/// Runs something as a user who may not read everything, if this one may.
fn as_nobody<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|threads| {
        let nobody = threads.spawn(|| {
            if rustix::process::geteuid().is_root() {
                let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
                // These are for this thread and those it starts, not for the whole process.
                set_thread_res_gid(group, group, group).unwrap();
                set_thread_res_uid(user, user, user).unwrap();
            }
            act()
        });
        nobody.join().unwrap()
    })
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_cannot_be_read_is_reported_and_does_not_end_the_search() {
    let tree_fixture = TestTree::with(&[
        ("a", "needle\n"),
        ("closed/x", "needle\n"),
        ("denied", "needle\n"),
        ("z", "needle\n"),
    ]);
    set_mode(tree_fixture.directory.path(), 0o755);
    set_mode(&tree_fixture.inside("denied"), 0o000);
    set_mode(&tree_fixture.inside("closed"), 0o000);
    let report = as_nobody(|| find(&tree_fixture.scope(), &GrepRequest::new("needle")));
    set_mode(&tree_fixture.inside("closed"), 0o755);
    assert_eq!(report.text(), "a:1:needle\nz:1:needle\n");
    let named: Vec<_> =
        report.unreadable.first.iter().map(|one| one.path.to_str().unwrap()).collect();
    assert_eq!((named, report.unreadable.total), (vec!["closed", "denied"], 2));
    let reason = &report.unreadable.first[1].reason;
    assert!(reason.contains("permission denied"), "{reason}");
}

#[test]
fn only_so_many_unreadable_files_are_named() {
    let tree_fixture = TestTree::new();
    set_mode(tree_fixture.directory.path(), 0o755);
    for n in 0..50 {
        let path = format!("f{n}");
        tree_fixture.file(&path, "needle\n");
        set_mode(&tree_fixture.inside(&path), 0o000);
    }
    let report = as_nobody(|| find(&tree_fixture.scope(), &GrepRequest::new("needle")));
    let unreadable = report.unreadable;
    assert_eq!((unreadable.total, unreadable.first.len()), (50, carrel_search::MAX_READ_FAILURES));
}

#[test]
fn names_that_look_like_options_are_names() {
    let tree_fixture = TestTree::with(&[("-x/--files", "needle\n"), ("--pre=sh", "needle\n")]);
    assert_eq!(text_of(&tree_fixture.at("-x"), "needle"), "-x/--files:1:needle\n");
    assert_eq!(names_in(&tree_fixture.at("-x"), "*"), ["-x/--files"]);
    assert_eq!(text_of(&tree_fixture.at("--pre=sh"), "needle"), "--pre=sh:1:needle\n");
    assert_eq!(text_of(&tree_fixture.scope(), "--needle|needle$").lines().count(), 2);
}

#[test]
fn names_that_are_not_text_are_found_and_stay_whole() {
    let tree_fixture = TestTree::new();
    let name = Path::new(OsStr::from_bytes(b"d\xff/caf\xe9.txt"));
    tree_fixture.file(name, "needle\n");
    let report = find(&tree_fixture.scope(), &GrepRequest::new("needle"));
    assert_eq!(report.files[0].path, name);
    assert_eq!(report.text(), "d\u{fffd}/caf\u{fffd}.txt:1:needle\n");
    let found = glob(&tree_fixture.scope(), &GlobRequest::new("*.txt"), &Cancel::new()).unwrap();
    assert_eq!(found.files[0].path, name);
    let listed = list(&tree_fixture.scope(), &ListRequest::default(), &Cancel::new()).unwrap();
    assert_eq!(listed.entries[0].path, Path::new(OsStr::from_bytes(b"d\xff")));
}

#[test]
fn pipes_do_not_block() {
    let tree_fixture = TestTree::with(&[("a", "needle\n"), ("z", "needle\n")]);
    mknodat(CWD, tree_fixture.inside("pipe"), FileType::Fifo, Mode::from_raw_mode(0o644), 0)
        .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tree_fixture.inside("socket")).unwrap();
    assert_eq!(text_of(&tree_fixture.scope(), "needle"), "a:1:needle\nz:1:needle\n");
    assert_eq!(names_in(&tree_fixture.scope(), "*"), ["a", "z"]);
    assert!(grep(&tree_fixture.at("pipe"), &GrepRequest::new("needle"), &Cancel::new()).is_err());
}

#[test]
fn a_link_out_of_the_tree_is_not_followed() {
    let tree_fixture = TestTree::with(&[("a", "needle\n")]);
    tree_fixture.link("../outside", "out");
    tree_fixture.link(tree_fixture.outside("secret"), "absolute");
    tree_fixture.link(".", "loop");
    // Neither does an ignore file that is a link bring rules from outside.
    std::fs::write(tree_fixture.outside("rules"), "a\n").unwrap();
    tree_fixture.link("../outside/rules", ".gitignore");
    let scope = Scope { hidden: true, ..tree_fixture.scope() };
    assert_eq!(text_of(&scope, "needle"), "a:1:needle\n");
    assert!(!text_of(&Scope { ignored: true, ..scope }, "").contains("outside"));
}

#[test]
fn a_tree_of_any_depth_is_searched_with_few_descriptors() {
    let tree_fixture = TestTree::new();
    let mut level = tree_fixture.root.try_clone().unwrap();
    let name = Path::new("directory");
    for _ in 0..600 {
        level.create_directory(name, 0o755).unwrap();
        level = level.open_root(name).unwrap();
    }
    level.write(Path::new("bottom"), b"needle\n", carrel_fsroot::WriteOptions::default()).unwrap();
    let report = find(&tree_fixture.scope(), &GrepRequest::new("needle"));
    assert_eq!(report.files[0].path.iter().count(), 601);
    assert_eq!(report.unreadable.total, 0);
    tree_fixture.root.remove_tree(name).unwrap();
}

#[test]
fn a_directory_of_many_files_is_shared_out_and_complete() {
    let tree_fixture = TestTree::new();
    for n in 0..3000 {
        tree_fixture.file(format!("flat/{n:04}"), format!("needle {n}\n"));
    }
    let report = find(&tree_fixture.scope(), &GrepRequest::new("needle"));
    let numbers: Vec<_> = report.files.iter().map(|file| file.lines[0].text.clone()).collect();
    let expected: Vec<_> = (0..3000).map(|n| format!("needle {n}")).collect();
    assert_eq!(numbers, expected);
}

/// Does something over and over on another thread while `act` runs.
fn meanwhile(mut disturb: impl FnMut(u64) + Send, act: impl FnOnce()) -> u64 {
    let (stop, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                disturb(rounds.fetch_add(1, Ordering::Relaxed));
            }
        });
        // The other thread has to end even when this one fails.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        stop.store(true, Ordering::Relaxed);
        result.unwrap();
    });
    rounds.into_inner()
}

#[test]
fn a_tree_that_changes_during_the_walk_is_still_walked() {
    let tree_fixture = TestTree::new();
    for n in 0..200 {
        tree_fixture.file(format!("steady/{n:03}/f"), "needle\n");
    }
    let disturb = |round: u64| {
        let (moving, aside) =
            (tree_fixture.inside("moving"), tree_fixture.inside("steady/100/aside"));
        std::fs::create_dir_all(moving.join("deep")).unwrap();
        std::fs::write(moving.join("deep/f"), "needle\n").unwrap();
        std::fs::rename(&moving, &aside).unwrap();
        std::fs::write(
            tree_fixture.inside("growing"),
            "needle\n".repeat(1 + usize::try_from(round % 5000).unwrap()),
        )
        .unwrap();
        std::fs::remove_dir_all(&aside).unwrap();
    };
    let end = Instant::now() + Duration::from_secs(1);
    let rounds = meanwhile(disturb, || {
        while Instant::now() < end {
            let report = find(&tree_fixture.scope(), &GrepRequest::new("needle"));
            let steady = |path: &Path| path.starts_with("steady") && path.iter().count() == 3;
            let found = report.files.iter().filter(|file| steady(&file.path)).count();
            assert_eq!(found, 200);
            assert!(report.files.is_sorted_by(|a, b| a.path < b.path));
        }
    });
    assert!(rounds > 10, "{rounds}");
}

#[test]
fn a_directory_swapped_for_an_outward_link_reveals_nothing() {
    let tree_fixture =
        TestTree::with(&[("door/secret", "needle inside\n"), ("door/sub/f", "needle inside\n")]);
    std::fs::create_dir(tree_fixture.outside("sub")).unwrap();
    std::fs::write(tree_fixture.outside("sub/f"), "needle outside\n").unwrap();
    std::fs::write(tree_fixture.outside(".gitignore"), "!*\n").unwrap();
    symlink("../outside", tree_fixture.inside("aside")).unwrap();
    let (door, aside) = (tree_fixture.inside("door"), tree_fixture.inside("aside"));
    let disturb = |_| {
        let exchange = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(CWD, &door, CWD, &aside, exchange).unwrap();
    };
    let (mut searches, mut found) = (0_u64, 0_u64);
    let end = Instant::now() + Duration::from_secs(2);
    let swaps = meanwhile(disturb, || {
        while Instant::now() < end {
            for path in ["", "door", "door/sub", "door/secret"] {
                let scope = Scope { hidden: true, ..tree_fixture.at(path) };
                searches += 1;
                if let Ok(report) = grep(&scope, &GrepRequest::new("needle"), &Cancel::new()) {
                    let text = report.text();
                    assert!(!text.contains("outside"), "{path}: {text}");
                    found += u64::from(text.contains("inside"));
                }
                if let Ok(report) = list(
                    &scope,
                    &ListRequest { depth: 3, detail: Detail::Sizes, ..ListRequest::default() },
                    &Cancel::new(),
                ) {
                    let sizes = report.entries.iter().filter_map(|entry| entry.metadata);
                    assert!(!sizes.into_iter().any(|found| found.size == 15), "{report:?}");
                }
            }
        }
    });
    eprintln!("{swaps} swaps against {searches} searches, {found} found the inside");
    assert!(swaps > 1000 && found > 0 && found < searches);
}
