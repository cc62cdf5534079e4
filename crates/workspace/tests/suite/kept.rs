use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{Clock as _, Code, Coded as _, FixedClock, SystemClock, Timestamp};
use carrel_workspace::{
    DEFAULT_KEEP_UNSAVED, Error, Gc, GcAction, KeptWork, Remove, Removed, Restore, RootOptions,
    Target, UnsavedWork, Workspaces,
};

use crate::{TestRoot, identifier, no_hooks, options};

impl TestRoot {
    /// Removes a workspace as a clean-up does.
    async fn clean_up(&self, name: &str) -> Removed {
        let target = Target::Identifier(identifier(name));
        let request = Remove { target, unsaved: UnsavedWork::Keep };
        self.workspaces.remove(request, &no_hooks()).await.unwrap()
    }

    /// Creates a workspace with a file, and cleans it up.
    async fn keep(&self, name: &str, contents: &str) -> KeptWork {
        let made = self.create(name).await.unwrap();
        std::fs::write(made.path.join("work"), contents).unwrap();
        self.clean_up(name).await.kept.expect("unsaved work is kept")
    }

    async fn kept(&self) -> Vec<String> {
        self.workspaces.kept().await.unwrap().into_iter().map(|kept| kept.name).collect()
    }

    async fn restore(&self, name: &str, to: Option<&str>) -> Result<String, Error> {
        let request = Restore { name: name.to_owned(), identifier: to.map(identifier) };
        let restored = self.workspaces.restore(request).await?;
        Ok(std::fs::read_to_string(restored.path.join("work")).unwrap())
    }

    /// Opens the root again, some time later.
    fn later(&self, time: Duration) -> Workspaces {
        let clock = FixedClock(SystemClock.now().after(time));
        let options = RootOptions { clock: Arc::new(clock), ..options(self.workspaces.path()) };
        Workspaces::open_or_create(&options).unwrap()
    }

    fn in_kept(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(".carrel/kept")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Lists a tree: paths, modes, contents and targets of links.
fn tree(root: &Path) -> Vec<(Vec<u8>, u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let contents = if metadata.is_symlink() {
                std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if metadata.is_dir() {
                waiting.push(path.clone());
                Vec::new()
            } else {
                std::fs::read(&path).unwrap()
            };
            let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
            found.push((name, metadata.permissions().mode(), contents));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn unsaved_work_outlives_its_workspace_and_comes_back_as_it_was() {
    let fixture = TestRoot::new();
    let made = fixture.create("XYZ/456").await.unwrap();
    let at = |name: &str| made.path.join(name);
    std::fs::create_dir_all(at("deep/er")).unwrap();
    std::fs::write(at("deep/er/run.sh"), "echo").unwrap();
    std::fs::set_permissions(at("deep/er/run.sh"), PermissionsExt::from_mode(0o751)).unwrap();
    std::fs::write(at("read-only"), "x").unwrap();
    std::fs::set_permissions(at("read-only"), PermissionsExt::from_mode(0o400)).unwrap();
    symlink("/etc/passwd", at("absolute")).unwrap();
    symlink("deep/er/run.sh", at("relative")).unwrap();
    std::fs::write(made.path.join(std::ffi::OsStr::from_bytes(b"odd \n\xff")), "odd").unwrap();
    let before = tree(&made.path);
    let record = fixture.workspaces.record(&identifier("XYZ/456")).unwrap();

    let removed = fixture.clean_up("XYZ/456").await;
    assert!(!made.path.exists() && fixture.workspaces.trash().unwrap().is_empty());
    assert_eq!(
        fixture.workspaces.record(&identifier("XYZ/456")).unwrap_err().code(),
        Code::WorkspaceNotFound
    );
    let kept = fixture.workspaces.kept().await.unwrap();
    assert_eq!(Some(&kept[0]), removed.kept.as_ref());
    let [KeptWork { name, identifier: of, key, reasons, kept_at, until, usage, path }] =
        kept.as_slice()
    else {
        panic!("{kept:?}");
    };
    assert_eq!((of.as_ref().unwrap().as_str(), key.as_str()), ("XYZ/456", "XYZ_456"));
    assert_eq!(reasons, &["files in no repository, such as absolute"]);
    assert_eq!(kept_at.unwrap().after(DEFAULT_KEEP_UNSAVED), until.unwrap());
    assert!(usage.unwrap().files >= 7 && path.ends_with(name), "{usage:?}");

    let restored = Restore { name: "XYZ/456".to_owned(), identifier: None };
    let restored = fixture.workspaces.restore(restored).await.unwrap();
    assert_eq!((&restored.path, &restored.name), (&made.path, name));
    assert_eq!(tree(&made.path), before);
    let again = fixture.workspaces.record(&identifier("XYZ/456")).unwrap();
    assert_eq!((again.key, again.created_at), (record.key, record.created_at));
    assert!(!fixture.create("XYZ/456").await.unwrap().created, "it is reused");
    assert_eq!(fixture.in_kept(), Vec::<String>::new());
}

#[tokio::test]
async fn a_tree_without_files_is_not_kept_and_neither_is_anything_if_the_time_is_zero() {
    let fixture = TestRoot::new();
    let made = fixture.create("A").await.unwrap();
    std::fs::create_dir_all(made.path.join("empty/deep")).unwrap();
    assert_eq!(fixture.clean_up("A").await.kept, None);
    let none = RootOptions { keep_unsaved: Duration::ZERO, ..options(fixture.workspaces.path()) };
    let workspaces = Workspaces::open_or_create(&none).unwrap();
    let made = fixture.create("B").await.unwrap();
    std::fs::write(made.path.join("work"), "").unwrap();
    let target = Target::Identifier(identifier("B"));
    let request = Remove { target, unsaved: UnsavedWork::Keep };
    assert_eq!(workspaces.remove(request, &no_hooks()).await.unwrap().kept, None);
    assert_eq!(fixture.kept().await, Vec::<String>::new());
    fixture.create("C").await.unwrap();
    std::fs::write(fixture.path("C/work"), "").unwrap();
    assert_eq!(fixture.remove("C").await.unwrap().kept, None, "a person decided");
}

#[tokio::test]
async fn what_cannot_be_read_is_kept() {
    let fixture = TestRoot::new();
    carrel_skip::needs!(Ordinary);
    let made = fixture.create("A").await.unwrap();
    std::fs::create_dir_all(made.path.join("closed/inner")).unwrap();
    let permissions = std::fs::Permissions::from_mode;
    std::fs::set_permissions(made.path.join("closed"), permissions(0o000)).unwrap();
    std::fs::set_permissions(&made.path, permissions(0o500)).unwrap();
    let kept = fixture.clean_up("A").await.kept.unwrap();
    assert_eq!(kept.reasons, ["git cannot tell in closed (it cannot be read)"]);
    fixture.workspaces.restore(Restore { name: kept.name, identifier: None }).await.unwrap();
    let closed = std::fs::metadata(made.path.join("closed")).unwrap();
    assert_eq!(closed.permissions().mode() & 0o777, 0);
}

#[tokio::test]
async fn a_taken_key_is_refused_unless_another_identifier_is_given() {
    let fixture = TestRoot::new();
    let kept = fixture.keep("A", "first").await;
    fixture.create("A").await.unwrap();
    let error = fixture.restore("A", None).await.unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists);
    assert!(error.to_string().contains("--as"), "{error}");
    assert_eq!(fixture.kept().await, [kept.name.as_str()], "nothing has changed");
    assert_eq!(fixture.restore("A", Some("B/1")).await.unwrap(), "first");
    assert!(fixture.path("B_1/work").exists() && !fixture.path("A/work").exists());
    // A directory that has no record is in the way as well.
    fixture.keep("C", "third").await;
    std::fs::create_dir(fixture.path("C")).unwrap();
    assert_eq!(fixture.restore("C", None).await.unwrap_err().code(), Code::AlreadyExists);
}

#[tokio::test]
async fn a_name_that_means_several_or_none_is_refused() {
    let fixture = TestRoot::new();
    let (first, second) = (fixture.keep("A", "1").await, fixture.keep("A", "2").await);
    let error = fixture.restore("A", None).await.unwrap_err();
    assert_eq!(error.code(), Code::KeptWorkNotFound);
    assert!([&first, &second].iter().all(|kept| error.to_string().contains(&kept.name)), "{error}");
    for name in ["B", "../trash", ".", "", "A.json"] {
        assert_eq!(fixture.restore(name, None).await.unwrap_err().code(), Code::KeptWorkNotFound);
        let error = fixture.workspaces.drop_kept(name).await.unwrap_err();
        assert_eq!(error.code(), Code::KeptWorkNotFound, "{name}");
    }
    assert_eq!(fixture.restore(&second.name, None).await.unwrap(), "2");
    assert_eq!(fixture.restore(&first.name, Some("old")).await.unwrap(), "1");
}

#[tokio::test]
async fn a_workspace_gets_its_former_key_back_even_if_a_shorter_one_is_free() {
    let fixture = TestRoot::new();
    fixture.create("XYZ_456").await.unwrap();
    let kept = fixture.keep("XYZ/456", "work").await;
    assert_eq!(kept.key.as_str(), "XYZ_456--d5a392b6d232cd76");
    fixture.remove("XYZ_456").await.unwrap();
    assert_eq!(fixture.restore("XYZ/456", None).await.unwrap(), "work");
    assert!(fixture.path("XYZ_456--d5a392b6d232cd76/work").exists());
}

#[tokio::test]
async fn kept_work_goes_when_its_time_is_over_or_a_person_says_so() {
    let fixture = TestRoot::new();
    let first = fixture.keep("A", "1").await;
    let nearly = DEFAULT_KEEP_UNSAVED.saturating_sub(Duration::from_mins(1));
    assert!(!fixture.later(nearly).needs_sweep().unwrap());
    fixture.later(nearly).sweep().unwrap();
    fixture.workspaces.gc(Gc::default(), &no_hooks()).await.unwrap();
    assert_eq!(fixture.kept().await, [first.name.as_str()], "its time is not over");
    let after = fixture.later(DEFAULT_KEEP_UNSAVED + Duration::from_mins(1));
    assert!(after.needs_sweep().unwrap());
    let dry = Gc { dry_run: true, ..Gc::default() };
    let dropped = GcAction::DropKept { name: first.name.clone() };
    let planned = after.gc(dry, &no_hooks()).await.unwrap().actions;
    assert_eq!(planned, std::slice::from_ref(&dropped));
    assert_eq!(fixture.kept().await, [first.name.as_str()], "a dry run changes nothing");
    assert!(after.sweep().unwrap().actions.contains(&dropped));
    assert_eq!((fixture.in_kept(), fixture.workspaces.trash().unwrap()), (vec![], vec![]));

    let second = fixture.keep("A", "2").await;
    fixture.workspaces.drop_kept(&second.name).await.unwrap();
    assert_eq!(
        (fixture.in_kept(), fixture.workspaces.trash().unwrap()),
        (vec![], vec![second.name])
    );
    let third = fixture.keep("A", "3").await;
    let all = Gc { drop_kept: true, ..Gc::default() };
    let report = fixture.workspaces.gc(all, &no_hooks()).await.unwrap();
    assert!(report.actions.contains(&GcAction::DropKept { name: third.name }), "{report:?}");
    assert_eq!((fixture.in_kept(), fixture.workspaces.trash().unwrap()), (vec![], vec![]));
}

#[tokio::test]
async fn a_clean_up_by_age_and_of_orphans_keeps_unsaved_work() {
    let fixture = TestRoot::new();
    fixture.create("old").await.unwrap();
    std::fs::write(fixture.path("old/work"), "old").unwrap();
    fixture.create("empty").await.unwrap();
    std::fs::create_dir(fixture.path("stray")).unwrap();
    std::fs::write(fixture.path("stray/work"), "stray").unwrap();
    let later = fixture.later(Duration::from_hours(24));
    let gc = Gc { retention: Some(Duration::from_hours(1)), orphans: true, ..Gc::default() };
    let report = later.gc(gc, &no_hooks()).await.unwrap();
    assert_eq!(report.failed, Vec::<String>::new());
    let names = fixture.kept().await;
    assert_eq!(names.len(), 2, "{report:?}");
    for name in &names {
        assert!(report.actions.contains(&GcAction::KeepUnsaved { name: name.clone() }));
    }
    assert_eq!(fixture.restore("old", None).await.unwrap(), "old");
    let error = fixture.restore("stray", None).await.unwrap_err();
    assert!(error.to_string().contains("--as"), "{error}");
    assert_eq!(fixture.restore("stray", Some("stray")).await.unwrap(), "stray");
}

/// The states that a crash leaves at each step of keeping.
#[tokio::test]
async fn a_crash_while_work_is_kept_leaves_the_workspace_or_the_kept_tree() {
    // The kept record is written, and nothing was moved.
    let fixture = TestRoot::new();
    fixture.create("A").await.unwrap();
    std::fs::write(fixture.path("A/work"), "work").unwrap();
    let kept = fixture.keep("B", "other").await;
    let record = std::fs::read_to_string(fixture.path(&format!(".carrel/kept/{}.json", kept.name)));
    let (stale, record) = ("A.1.00000000.json", record.unwrap().replace("\"B\"", "\"A\""));
    std::fs::write(fixture.path(".carrel/kept").join(stale), record).unwrap();
    assert_eq!(fixture.kept().await, [kept.name.as_str()], "without a tree nothing is kept");
    let held = fixture.workspaces.lock_for_removal(identifier("A")).await.unwrap();
    fixture.workspaces.sweep().unwrap();
    assert!(fixture.in_kept().contains(&stale.to_owned()), "it may be in the middle of it");
    drop(held);
    fixture.workspaces.sweep().unwrap();
    assert!(!fixture.in_kept().contains(&stale.to_owned()));
    assert_eq!(std::fs::read_to_string(fixture.path("A/work")).unwrap(), "work");

    // The tree was moved, and the record of the workspace is still there.
    let fixture = TestRoot::new();
    fixture.create("A").await.unwrap();
    let file = fixture.path(".carrel/records/A.json");
    let record = std::fs::read(&file).unwrap();
    fixture.keep("A", "work").await;
    std::fs::write(&file, record).unwrap();
    assert!(fixture.create("A").await.unwrap().created, "the name is free");
    assert_eq!(fixture.restore("A", Some("B")).await.unwrap(), "work");

    // The hook ran, and the process died before anything was moved.
    for finish in ["create", "gc"] {
        let fixture = TestRoot::new();
        fixture.create("A").await.unwrap();
        std::fs::write(fixture.path("A/work"), "work").unwrap();
        let removing = "\"removing\",\"keep_unsaved\":true";
        fixture.edit_record("A", "\"ready\"", removing);
        if finish == "create" {
            assert!(fixture.create("A").await.unwrap().created);
            assert!(!fixture.path("A/work").exists());
            fixture.remove("A").await.unwrap();
        } else {
            fixture.workspaces.gc(Gc::default(), &no_hooks()).await.unwrap();
        }
        assert!(!fixture.path("A").exists(), "{finish}");
        assert_eq!(fixture.restore("A", None).await.unwrap(), "work", "{finish}");
        let record = fixture.workspaces.record(&identifier("A")).unwrap();
        assert_eq!(serde_json::to_value(record).unwrap()["state"], "ready");
    }
}

/// The states that a crash leaves at each step of restoring.
#[tokio::test]
async fn a_crash_while_work_is_restored_leaves_the_kept_tree_or_the_workspace() {
    // The record of the workspace is written, and nothing was moved.
    let fixture = TestRoot::new();
    fixture.create("A").await.unwrap();
    let file = fixture.path(".carrel/records/A.json");
    let record = std::fs::read(&file).unwrap();
    let kept = fixture.keep("A", "work").await;
    std::fs::write(&file, record).unwrap();
    assert_eq!(fixture.restore("A", None).await.unwrap(), "work");
    // The tree was moved, and the kept record is still there.
    let stale = fixture.path(&format!(".carrel/kept/{}.json", kept.name));
    std::fs::write(&stale, "{}").unwrap();
    assert_eq!(fixture.kept().await, Vec::<String>::new());
    assert!(fixture.restore("A", Some("B")).await.is_err());
    fixture.workspaces.sweep().unwrap();
    assert!(!stale.exists() && fixture.path("A/work").exists());
}

#[tokio::test]
async fn a_lost_record_hides_no_tree_and_no_time_ends_it() {
    let fixture = TestRoot::new();
    let kept = fixture.keep("A", "work").await;
    let record = fixture.path(&format!(".carrel/kept/{}.json", kept.name));
    for damage in ["", "not JSON", "{}"] {
        std::fs::write(&record, damage).unwrap();
        let found = fixture.workspaces.kept().await.unwrap();
        assert_eq!(
            (found[0].name.as_str(), found[0].until),
            (kept.name.as_str(), None::<Timestamp>)
        );
    }
    std::fs::remove_file(&record).unwrap();
    std::fs::create_dir(fixture.path(".carrel/kept/by-hand")).unwrap();
    fixture.later(DEFAULT_KEEP_UNSAVED * 100).sweep().unwrap();
    assert_eq!(fixture.kept().await, [kept.name.as_str()]);
    assert_eq!(fixture.restore("A", Some("A")).await.unwrap(), "work");
}
