use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use std::sync::Arc;

use carrel_domain::{Clock, Code, Coded, FixedClock, SystemClock, Timestamp};
use carrel_workspace::{
    Create, Freshness, Gc, GcAction, ListingState, RootOptions, State, Workspaces,
};

use crate::{TestRoot, identifier, no_hooks, open, options};

#[tokio::test]
async fn item_017_to_019_a_workspace_is_created_once_and_then_reused_as_it_was_left() {
    let fixture = TestRoot::new();
    let first = fixture.create("ABC-123").await.unwrap();
    assert!(first.created && first.record.state == State::Ready);
    assert_eq!(std::fs::metadata(&first.path).unwrap().mode() & 0o777, 0o700);
    std::fs::write(first.path.join("work"), "kept").unwrap();
    let second = fixture.create("ABC-123").await.unwrap();
    assert!(!second.created);
    assert_eq!(second.path, first.path);
    assert_eq!(std::fs::read_to_string(second.path.join("work")).unwrap(), "kept");
}

#[tokio::test]
async fn item_026_027_and_099_identifiers_that_derive_one_key_get_two_directories() {
    let fixture = TestRoot::new();
    let slash = fixture.create("XYZ/456").await.unwrap();
    let plain = fixture.create("XYZ_456").await.unwrap();
    assert_eq!(slash.record.key.as_str(), "XYZ_456");
    assert_eq!(plain.record.key.as_str(), "XYZ_456--d788ab0a044c0a46");
    assert_ne!(slash.path, plain.path);
    // Each finds its own again, also in another process.
    let other = open(fixture.workspaces.path()).unwrap();
    assert_eq!(other.key(&identifier("XYZ/456")).unwrap(), slash.record.key);
    assert_eq!(other.key(&identifier("XYZ_456")).unwrap(), plain.record.key);
}

#[tokio::test]
async fn item_027_an_identifier_that_needs_no_change_is_its_own_key() {
    let fixture = TestRoot::new();
    let plain = fixture.create("XYZ_456").await.unwrap();
    let slash = fixture.create("XYZ/456").await.unwrap();
    assert_eq!(plain.record.key.as_str(), "XYZ_456");
    assert_eq!(slash.record.key.as_str(), "XYZ_456--d5a392b6d232cd76");
}

#[tokio::test]
async fn item_017_a_workspace_keeps_its_key_when_the_better_one_becomes_free() {
    let fixture = TestRoot::new();
    fixture.create("XYZ_456").await.unwrap();
    let slash = fixture.create("XYZ/456").await.unwrap();
    fixture.remove("XYZ_456").await.unwrap();
    assert_eq!(fixture.create("XYZ/456").await.unwrap().path, slash.path);
}

#[tokio::test]
async fn a_directory_removed_by_hand_counts_as_absent() {
    let fixture = TestRoot::new();
    let made = fixture.create("A").await.unwrap();
    std::fs::remove_dir_all(&made.path).unwrap();
    let listed = fixture.workspaces.list(Freshness::Cached).await.unwrap();
    assert_eq!(listed[0].state, ListingState::Missing);
    assert!(fixture.create("A").await.unwrap().created);
    assert!(made.path.is_dir());
}

#[tokio::test]
async fn item_122_a_half_made_workspace_is_wiped_and_made_again() {
    for state in ["creating", "removing"] {
        let fixture = TestRoot::new();
        let made = fixture.create("A").await.unwrap();
        std::fs::write(made.path.join("half"), "").unwrap();
        fixture.edit_record("A", "\"ready\"", &format!("\"{state}\""));
        assert!(fixture.workspaces.open(&identifier("A")).await.is_err(), "{state} was used");
        let again = fixture.create("A").await.unwrap();
        assert!(again.created && !made.path.join("half").exists(), "{state}");
        assert_eq!(fixture.workspaces.trash().unwrap().len(), 1, "{state}");
    }
}

#[tokio::test]
async fn item_020_what_stands_in_the_way_is_named_and_left_alone() {
    let fixture = TestRoot::new();
    std::fs::write(fixture.path("file"), "precious").unwrap();
    symlink("/etc", fixture.path("link")).unwrap();
    symlink("nowhere", fixture.path("dangling")).unwrap();
    for (name, code) in [
        ("file", Code::WorkspaceOccupied),
        ("link", Code::WorkspaceSymlinkEscape),
        ("dangling", Code::WorkspaceSymlinkEscape),
    ] {
        let error = fixture.create(name).await.unwrap_err();
        assert_eq!(error.code(), code, "{name}");
        let detail = error.detail();
        assert_eq!(detail["root"], fixture.workspaces.path().to_str().unwrap(), "{name}");
        assert!(detail["workspace"].as_str().unwrap().ends_with(name));
        assert_eq!(fixture.remove(name).await.unwrap_err().code(), code, "{name}");
    }
    assert_eq!(std::fs::read_to_string(fixture.path("file")).unwrap(), "precious");
    assert!(fixture.path("link").is_symlink() && fixture.path("dangling").is_symlink());
}

#[tokio::test]
async fn item_120_a_link_that_replaced_a_workspace_is_never_followed() {
    let fixture = TestRoot::new();
    let (a, b) = (fixture.create("A").await.unwrap(), fixture.create("B").await.unwrap());
    std::fs::write(b.path.join("work"), "kept").unwrap();
    std::fs::remove_dir(&a.path).unwrap();
    symlink("B", &a.path).unwrap();
    for error in [fixture.create("A").await.unwrap_err(), fixture.remove("A").await.unwrap_err()] {
        assert_eq!(error.code(), Code::WorkspaceSymlinkEscape);
    }
    assert!(b.path.join("work").exists());
}

#[tokio::test]
async fn a_directory_without_a_record_is_adopted() {
    let fixture = TestRoot::new();
    std::fs::create_dir(fixture.path("old")).unwrap();
    std::fs::write(fixture.path("old/work"), "kept").unwrap();
    assert!(!fixture.create("old").await.unwrap().created);
    assert!(fixture.path("old/work").exists());
}

#[tokio::test]
async fn a_tenant_workspace_has_its_three_directories_again_after_reuse() {
    let fixture = TestRoot::new();
    let request = Create { layout: carrel_domain::Layout::Tenant, ..Create::new(identifier("T")) };
    let made = fixture.workspaces.create(request.clone(), &no_hooks()).await.unwrap();
    std::fs::remove_dir(made.path.join("tasks")).unwrap();
    fixture.workspaces.create(request, &no_hooks()).await.unwrap();
    for part in ["repos", "tasks", "artifacts"] {
        assert!(made.path.join(part).is_dir(), "{part}");
    }
}

#[tokio::test]
async fn removal_frees_the_name_at_once_and_the_sweep_deletes() {
    let fixture = TestRoot::new();
    let made = fixture.create("A").await.unwrap();
    std::fs::write(made.path.join("work"), "").unwrap();
    fixture.remove("A").await.unwrap();
    assert!(!made.path.exists());
    assert_eq!(fixture.workspaces.trash().unwrap().len(), 1);
    assert!(fixture.create("A").await.unwrap().created);
    assert_eq!(fixture.workspaces.sweep().unwrap().actions.len(), 1);
    assert!(fixture.workspaces.trash().unwrap().is_empty());
    assert!(made.path.is_dir());
    let error = fixture.remove("never").await.unwrap_err();
    assert_eq!(error.code(), Code::WorkspaceNotFound);
}

#[tokio::test]
async fn a_workspace_in_use_cannot_be_removed() {
    let fixture = TestRoot::new();
    fixture.create("A").await.unwrap();
    let used = fixture.workspaces.open(&identifier("A")).await.unwrap();
    let everything = Gc { retention: Some(std::time::Duration::ZERO), ..Gc::default() };
    let report = fixture.workspaces.gc(everything, &no_hooks()).await.unwrap();
    assert!(report.actions.is_empty());
    assert!(used.launch_directory().is_ok());
    drop(used);
    assert!(fixture.remove("A").await.is_ok());
}

#[tokio::test]
async fn many_creators_of_one_workspace_make_it_once() {
    let fixture = TestRoot::new();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..20 {
        // Handles of their own, as other processes have them.
        let workspaces = open(fixture.workspaces.path()).unwrap();
        let name = ["X/1", "X_1", "X 1", "X:1"][n % 4];
        tasks.spawn(async move {
            let create = Create::new(identifier(name));
            workspaces.create(create, &no_hooks()).await.unwrap()
        });
    }
    let all = tasks.join_all().await;
    assert_eq!(all.iter().filter(|created| created.created).count(), 4);
    let paths: std::collections::HashSet<_> = all.iter().map(|created| &created.path).collect();
    assert_eq!(paths.len(), 4);
}

#[tokio::test]
async fn clean_up_finds_what_crashes_left_and_dry_run_changes_nothing() {
    let fixture = TestRoot::new();
    for name in ["half", "gone", "removing", "fine", "unused"] {
        fixture.create(name).await.unwrap();
    }
    fixture.edit_record("half", "\"ready\"", "\"creating\"");
    fixture.edit_record("removing", "\"ready\"", "\"removing\"");
    std::fs::remove_dir(fixture.path("gone")).unwrap();
    std::fs::create_dir(fixture.path("stray")).unwrap();
    for name in ["nobody", "recent"] {
        std::fs::create_dir(fixture.path(".carrel/logs").join(name)).unwrap();
    }
    let old = std::time::SystemTime::now() - std::time::Duration::from_hours(24 * 30);
    let logs = std::fs::File::open(fixture.path(".carrel/logs/nobody")).unwrap();
    logs.set_modified(old).unwrap();
    std::fs::write(fixture.path(".carrel/locks/nobody.lock"), "").unwrap();
    let options = Gc { dry_run: true, orphans: true, ..Gc::default() };
    let key = |name: &str| carrel_domain::WorkspaceKey::from_name(name).unwrap();
    let expected = [
        GcAction::DropRecord { key: key("gone") },
        GcAction::RemoveHalfMade { key: key("half") },
        GcAction::FinishRemoval { key: key("removing") },
        GcAction::RemoveOrphan { name: "stray".into() },
        GcAction::DeleteLogs { name: "nobody".into() },
        GcAction::DeleteLock { name: "nobody".into() },
    ];
    assert_eq!(fixture.workspaces.gc(options, &no_hooks()).await.unwrap().actions, expected);
    assert!(fixture.path("half").exists() && fixture.path("stray").exists());
    let options = Gc { dry_run: false, ..options };
    let report = fixture.workspaces.gc(options, &no_hooks()).await.unwrap();
    assert_eq!(report.failed, Vec::<String>::new());
    assert!(expected.iter().all(|action| report.actions.contains(action)), "{report:?}");
    let mut left: Vec<_> = std::fs::read_dir(fixture.workspaces.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, [".carrel", "fine", "unused"]);
    assert!(fixture.workspaces.trash().unwrap().is_empty());
}

#[tokio::test]
async fn a_workspace_called_git_does_not_make_the_root_a_repository() {
    let fixture = TestRoot::new();
    fixture.create(".git").await.unwrap();
    let again = open(fixture.workspaces.path()).unwrap();
    assert_eq!(again.list(Freshness::Cached).await.unwrap().len(), 1);
    fixture.remove(".git").await.unwrap();
    std::fs::create_dir(fixture.path(".git")).unwrap();
    assert_eq!(open(fixture.workspaces.path()).unwrap_err().code(), Code::RootRefused);
}

#[tokio::test]
async fn one_broken_workspace_does_not_hide_or_stop_the_others() {
    let fixture = TestRoot::new();
    for name in ["closed", "damaged", "empty", "fine", "linked", "unlisted"] {
        fixture.create(name).await.unwrap();
    }
    let closed = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(fixture.path("closed"), closed).unwrap();
    fixture.edit_record("damaged", "{", "");
    std::fs::write(fixture.path(".carrel/records/empty.json"), "").unwrap();
    std::fs::remove_dir(fixture.path("linked")).unwrap();
    symlink("/etc", fixture.path("linked")).unwrap();
    std::fs::create_dir(fixture.path("unlisted/d")).unwrap();
    std::fs::write(fixture.path("unlisted/d/file"), "").unwrap();
    let no_entry = std::fs::Permissions::from_mode(0o444);
    std::fs::set_permissions(fixture.path("unlisted/d"), no_entry).unwrap();
    let listed = fixture.workspaces.list(Freshness::Recount).await.unwrap();
    let states: Vec<_> = listed.iter().map(|one| (one.record.key.as_str(), one.state)).collect();
    assert_eq!(
        states,
        [
            ("closed", ListingState::Ready),
            ("fine", ListingState::Ready),
            ("linked", ListingState::Broken),
            ("unlisted", ListingState::Ready)
        ]
    );
    let report = fixture.workspaces.gc(Gc::default(), &no_hooks()).await.unwrap();
    assert_eq!(report.failed.len(), 3, "{report:?}");
    for name in ["closed", "unlisted"] {
        fixture.create(name).await.unwrap();
        fixture.remove(name).await.unwrap();
    }
    assert!(fixture.workspaces.sweep().unwrap().failed.is_empty());
}

#[tokio::test]
async fn a_record_under_a_foreign_name_is_refused() {
    let fixture = TestRoot::new();
    fixture.create("A").await.unwrap();
    let records = fixture.path(".carrel/records");
    std::fs::copy(records.join("A.json"), records.join("B.json")).unwrap();
    assert_eq!(fixture.create("B").await.unwrap_err().code(), Code::RecordUnreadable);
}

#[tokio::test]
async fn a_directory_that_another_user_made_is_not_adopted() {
    let fixture = TestRoot::new();
    carrel_skip::needs!(Root);
    std::fs::create_dir(fixture.path("theirs")).unwrap();
    std::os::unix::fs::chown(fixture.path("theirs"), Some(1234), None).unwrap();
    assert_eq!(fixture.create("theirs").await.unwrap_err().code(), Code::WorkspaceForeignOwner);
}

#[tokio::test]
async fn a_workspace_in_use_can_be_created_again_and_blocks_no_other() {
    let fixture = TestRoot::new();
    fixture.create("XYZ/456").await.unwrap();
    let _used = fixture.workspaces.open(&identifier("XYZ/456")).await.unwrap();
    let begun = std::time::Instant::now();
    assert!(!fixture.create("XYZ/456").await.unwrap().created);
    assert!(fixture.create("XYZ_456").await.unwrap().created);
    // Far below the time after which a waiting process gives up.
    assert!(begun.elapsed() < std::time::Duration::from_secs(5));
}

#[tokio::test]
async fn an_error_after_a_wait_names_the_present_holder() {
    let fixture = TestRoot::new();
    fixture.create("A").await.unwrap();
    let _used = fixture.workspaces.open(&identifier("A")).await.unwrap();
    let error = fixture.remove("A").await.unwrap_err();
    assert_eq!(error.to_string(), "workspace A is in use");
    assert_eq!(error.code(), Code::WorkspaceBusy);
}

#[tokio::test]
async fn removing_by_a_path_where_nothing_is_says_so() {
    let fixture = TestRoot::new();
    let target = carrel_workspace::Target::Path(fixture.workspaces.path().join("nothing"));
    assert_eq!(fixture.remove_target(target).await.unwrap_err().code(), Code::WorkspaceNotFound);
}

#[tokio::test]
async fn retention_removes_workspaces_unused_for_long() {
    let fixture = TestRoot::new();
    fixture.create("old").await.unwrap();
    let days = |days: u64| std::time::Duration::from_hours(24 * days);
    let now = SystemClock.now().as_millis();
    let later = Timestamp::from_millis(now + i64::try_from(days(20).as_millis()).unwrap());
    let options =
        RootOptions { clock: Arc::new(FixedClock(later)), ..options(fixture.workspaces.path()) };
    let workspaces = Workspaces::open_or_create(&options).unwrap();
    workspaces.create(Create::new(identifier("new")), &no_hooks()).await.unwrap();
    for (limit, removed) in [(days(30), 0), (days(10), 1)] {
        let gc = Gc { retention: Some(limit), ..Gc::default() };
        let report = workspaces.gc(gc, &no_hooks()).await.unwrap();
        let unused = |action: &&GcAction| matches!(action, GcAction::RemoveUnused { .. });
        assert_eq!(report.actions.iter().filter(unused).count(), removed);
    }
    assert!(!fixture.path("old").exists() && fixture.path("new").exists());
}

#[tokio::test]
async fn a_damaged_record_is_an_error_that_names_the_file() {
    let fixture = TestRoot::new();
    fixture.create("A").await.unwrap();
    fixture.edit_record("A", "{", "");
    let error = fixture.create("A").await.unwrap_err();
    assert_eq!(error.code(), Code::RecordUnreadable);
    assert!(error.to_string().contains("records/A.json"), "{error}");
}

#[tokio::test]
async fn records_of_a_newer_version_are_refused() {
    let fixture = TestRoot::new();
    fixture.create("A").await.unwrap();
    fixture.edit_record("A", "\"schema\":1", "\"schema\":2");
    assert_eq!(fixture.create("A").await.unwrap_err().code(), Code::SchemaTooNew);
    std::fs::write(fixture.path(".carrel/root.json"), "{\"schema\":9}").unwrap();
    assert_eq!(open(fixture.workspaces.path()).unwrap_err().code(), Code::SchemaTooNew);
}

#[tokio::test]
async fn a_root_that_cannot_be_written_gives_a_permission_error() {
    let fixture = TestRoot::new();
    carrel_skip::needs!(Ordinary);
    let closed = std::fs::Permissions::from_mode(0o500);
    std::fs::set_permissions(fixture.workspaces.path(), closed).unwrap();
    assert_eq!(fixture.create("A").await.unwrap_err().code(), Code::PermissionDenied);
}
