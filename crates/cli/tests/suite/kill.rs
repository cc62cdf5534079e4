//! Each test kills the command with SIGKILL at random moments and looks at what
//! the next start makes of it. `CARREL_KILL_ROUNDS` sets how many moments.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::{TestRoot, eventually, is_running};

fn rounds() -> usize {
    std::env::var("CARREL_KILL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// Kills a command after a random time within `span`; tells whether it was still running.
fn kill_within(mut command: Command, span: Duration, random: &mut fastrand::Rng) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let micros = u64::try_from(span.as_micros()).unwrap();
    std::thread::sleep(Duration::from_micros(random.u64(..=micros)));
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    running
}

fn state(fixture: &TestRoot, key: &str) -> Option<String> {
    let listed = fixture.json(&["ls"]);
    let found = |workspace: &&Value| workspace["key"] == key;
    let workspace = listed["workspaces"].as_array().unwrap().iter().find(found)?.clone();
    Some(workspace["state"].as_str().unwrap().to_owned())
}

/// Nothing may be left that no command would find again.
fn assert_clean(fixture: &TestRoot) {
    for path in unfinished(fixture) {
        // Old enough that nobody can be at it any more.
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_mins(20)).unwrap();
    }
    fixture.json(&["gc"]);
    eventually("the trash is empty", || fixture.trash() == 0);
    assert_eq!(unfinished(fixture), Vec::<PathBuf>::new());
}

/// Files that a killed process was writing.
fn unfinished(fixture: &TestRoot) -> Vec<PathBuf> {
    let parts = ["records", "usage", "."].map(|part| fixture.root().join(".carrel").join(part));
    let entries = parts.into_iter().flat_map(|part| std::fs::read_dir(part).unwrap());
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(".carrel-write"))
        .collect()
}

#[test]
fn a_creation_killed_at_any_moment_is_repaired_by_the_next() {
    let hook = "echo $$ > ../pid; for n in 1 2 3 4 5 6 7 8 9 10; do touch $n; sleep 0.01; done; touch whole";
    let fixture = TestRoot::with_hooks(&format!("after_create: {hook}"));
    let mut random = fastrand::Rng::with_seed(1);
    let (mut killed, mut half_made) = (0, 0);
    for round in 0..rounds() {
        let key = format!("A{round}");
        let span = Duration::from_millis(150);
        killed += usize::from(kill_within(fixture.command(&["create", &key]), span, &mut random));
        let whole = fixture.root().join(&key).join("whole");
        let found = state(&fixture, &key);
        if found.as_deref() == Some("ready") {
            assert!(whole.exists(), "{key} counts as ready and is half-made");
        }
        half_made += usize::from(found.as_deref() == Some("creating"));
        eventually("the hook is gone", || !is_running(&fixture.root().join("pid")));
        let created = fixture.json(&["create", &key]);
        assert_eq!(created["state"], "ready");
        assert!(whole.exists(), "{key} was not made again");
    }
    eprintln!("{killed} of {} were killed, {half_made} left half-made", rounds());
    assert!(killed > 0 && half_made > 0, "no moment that matters was hit");
    assert_clean(&fixture);
}

#[test]
fn a_removal_killed_at_any_moment_is_whole_or_finished_later() {
    let fixture = TestRoot::with_hooks("before_remove: rm -f 1; sleep 0.03; rm -f 2; sleep 0.03");
    let mut random = fastrand::Rng::with_seed(2);
    let (mut killed, mut removing) = (0, 0);
    for round in 0..rounds() {
        let key = format!("A{round}");
        fixture.json(&["create", &key]);
        let directory = fixture.root().join(&key);
        for n in 0..100 {
            std::fs::write(directory.join(n.to_string()), "x").unwrap();
        }
        let span = Duration::from_millis(100);
        killed += usize::from(kill_within(fixture.command(&["rm", &key]), span, &mut random));
        match state(&fixture, &key).as_deref() {
            // Not begun: everything is there.
            Some("ready") => assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 100),
            Some("removing") => removing += 1,
            // Moved away, with or without its record.
            Some("missing") | None => assert!(!directory.exists()),
            other => panic!("{key} is {other:?}"),
        }
        if state(&fixture, &key).as_deref() == Some("removing") {
            // Until the hook is gone, which dies with its owner, the workspace is still in use.
            eventually("gc finishes the removal", || {
                fixture.json(&["gc"]);
                !directory.exists()
            });
        }
        assert_eq!(fixture.json(&["create", &key])["state"], "ready");
    }
    eprintln!("{killed} of {} were killed, {removing} half-removed", rounds());
    assert!(killed > 0 && removing > 0, "no moment that matters was hit");
    assert_clean(&fixture);
}

#[test]
fn a_sweep_killed_at_any_moment_loses_track_of_nothing() {
    let fixture = TestRoot::new();
    let mut random = fastrand::Rng::with_seed(3);
    let mut killed = 0;
    for round in 0..rounds() {
        let trash = fixture.root().join(".carrel/trash");
        fixture.json(&["create", "A"]);
        // Filled by hand, so that no background process is at it.
        for tree in 0..3 {
            let directory = trash.join(format!("old.{round}.{tree}/deep/er"));
            std::fs::create_dir_all(&directory).unwrap();
            for n in 0..200 {
                std::fs::write(directory.join(n.to_string()), "x").unwrap();
            }
        }
        let span = Duration::from_millis(25);
        killed += usize::from(kill_within(fixture.command(&["gc"]), span, &mut random));
        assert_eq!(state(&fixture, "A").as_deref(), Some("ready"));
        fixture.json(&["gc"]);
        assert_eq!(fixture.trash(), 0);
    }
    eprintln!("{killed} of {} were killed", rounds());
    assert!(killed > 0);
    assert_clean(&fixture);
}

#[test]
fn a_record_being_written_when_the_process_is_killed_is_the_old_or_the_new() {
    let fixture = TestRoot::new();
    let mut random = fastrand::Rng::with_seed(4);
    let mut killed = 0;
    fixture.json(&["create", "A"]);
    let record = fixture.root().join(".carrel/records/A.json");
    for round in 0..rounds() {
        // Many short runs, because each writes for only a fraction of its life.
        for _ in 0..10 {
            let span = Duration::from_millis(6);
            killed +=
                usize::from(kill_within(fixture.command(&["create", "A"]), span, &mut random));
            let text = std::fs::read_to_string(&record).unwrap();
            let value: Value = serde_json::from_str(&text).expect("a record is never half-written");
            assert_eq!((&value["identifier"], &value["state"]), (&"A".into(), &"ready".into()));
        }
        let key = format!("B{round}");
        kill_within(fixture.command(&["create", &key]), Duration::from_millis(8), &mut random);
        assert_ne!(state(&fixture, &key).as_deref(), Some("creating"));
        assert_eq!(fixture.json(&["create", &key])["state"], "ready");
    }
    eprintln!("{killed} of {} were killed", rounds() * 10);
    assert!(killed > 0);
    assert_clean(&fixture);
}

#[test]
fn a_restore_killed_at_any_moment_leaves_the_kept_work_or_the_workspace() {
    let fixture = TestRoot::new();
    let mut random = fastrand::Rng::with_seed(5);
    let mut killed = 0;
    for round in 0..rounds() * 5 {
        let key = format!("A{round}");
        fixture.json(&["create", &key]);
        let work = fixture.root().join(&key).join("work");
        std::fs::write(&work, "x").unwrap();
        fixture.json(&["gc", "--older-than", "0s"]);
        assert!(!work.exists());
        let span = Duration::from_millis(8);
        killed += usize::from(kill_within(fixture.command(&["restore", &key]), span, &mut random));
        let kept = fixture.json(&["ls", "--kept"])["kept"].as_array().unwrap().len();
        assert_eq!(kept, usize::from(!work.exists()), "{key}");
        if kept == 1 {
            fixture.json(&["restore", &key]);
        }
        assert!(work.exists(), "{key}");
        assert_eq!(state(&fixture, &key).as_deref(), Some("ready"));
        fixture.json(&["rm", &key]);
    }
    eprintln!("{killed} of {} were killed", rounds() * 5);
    assert!(killed > 0);
    assert_clean(&fixture);
}
