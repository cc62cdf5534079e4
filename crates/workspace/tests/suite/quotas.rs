use carrel_domain::{Code, Coded};
use carrel_workspace::Freshness;

use crate::TestRoot;

#[tokio::test]
async fn usage_is_counted_again_only_after_a_write_through_carrel() {
    let fixture = TestRoot::new();
    let made = fixture.create("A").await.unwrap();
    let key = &made.record.key;
    let usage = async |freshness| fixture.workspaces.usage(key, freshness).await.unwrap().unwrap();
    let empty = usage(Freshness::Cached).await;
    assert_eq!(empty.amount.files, 0);
    // Behind Carrel's back: the count stays until somebody asks for a new one.
    std::fs::write(made.path.join("file"), vec![1; 100_000]).unwrap();
    assert_eq!(usage(Freshness::Cached).await, empty);
    fixture.workspaces.touch(key).await.unwrap();
    let after = usage(Freshness::Cached).await;
    assert_eq!(after.amount.files, 1);
    assert!(after.amount.bytes >= 100_000);
    std::fs::remove_file(made.path.join("file")).unwrap();
    assert_eq!(usage(Freshness::Recount).await.amount.files, 0);
}

#[tokio::test]
async fn a_workspace_in_use_is_counted_each_time() {
    let fixture = TestRoot::new();
    let made = fixture.create("A").await.unwrap();
    let key = &made.record.key;
    let files = async || {
        let usage = fixture.workspaces.usage(key, Freshness::Cached).await.unwrap();
        usage.unwrap().amount.files
    };
    assert_eq!(files().await, 0);
    fixture.workspaces.mark_in_use(key).await.unwrap();
    for count in 1..3 {
        std::fs::write(made.path.join(count.to_string()), "x").unwrap();
        assert_eq!(files().await, count);
    }
    fixture.workspaces.touch(key).await.unwrap();
    assert_eq!(files().await, 2);
    std::fs::write(made.path.join("behind"), "x").unwrap();
    assert_eq!(files().await, 2, "counts serve again when nobody holds it");
}

#[tokio::test]
async fn a_workspace_beyond_its_quota_is_named() {
    let fixture = TestRoot::new();
    let made = fixture.create("A").await.unwrap();
    assert!(fixture.workspaces.check_quota(&made.record.key, Freshness::Cached).await.is_ok());
    std::fs::write(made.path.join("big"), vec![1; 11 << 20]).unwrap();
    fixture.workspaces.touch(&made.record.key).await.unwrap();
    let error =
        fixture.workspaces.check_quota(&made.record.key, Freshness::Cached).await.unwrap_err();
    assert_eq!(error.code(), Code::QuotaExceeded);
    assert!(error.to_string().contains("of 10.0 MiB"), "{error}");
}

#[tokio::test]
async fn files_that_existed_only_during_the_count_do_not_exceed_the_quota() {
    let fixture = TestRoot::new();
    let made = fixture.create("A").await.unwrap();
    let key = &made.record.key;
    std::fs::write(made.path.join("big"), vec![1; 11 << 20]).unwrap();
    let counted = fixture.workspaces.usage(key, Freshness::Recount).await.unwrap().unwrap();
    assert!(counted.amount.bytes > 10 << 20);
    std::fs::remove_file(made.path.join("big")).unwrap();
    let measured = fixture.workspaces.check_quota(key, Freshness::Cached).await.unwrap().unwrap();
    assert_eq!(measured.amount.files, 0);
}

#[tokio::test]
async fn a_new_workspace_does_not_inherit_the_count_of_its_predecessor() {
    let fixture = TestRoot::new();
    let made = fixture.create("A").await.unwrap();
    std::fs::write(made.path.join("file"), "x").unwrap();
    fixture.workspaces.usage(&made.record.key, Freshness::Recount).await.unwrap();
    fixture.remove("A").await.unwrap();
    fixture.create("A").await.unwrap();
    let usage = fixture.workspaces.usage(&made.record.key, Freshness::Cached).await.unwrap();
    assert_eq!(usage.unwrap().amount.files, 0);
}

#[tokio::test]
async fn what_hides_from_being_counted_counts_as_too_much() {
    use std::os::unix::fs::PermissionsExt;
    carrel_skip::needs!(Ordinary);
    let fixture = TestRoot::new();
    let made = fixture.create("A").await.unwrap();
    std::fs::create_dir(made.path.join("hidden")).unwrap();
    std::fs::write(made.path.join("hidden/big"), vec![1; 1 << 20]).unwrap();
    let closed = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(made.path.join("hidden"), closed).unwrap();
    fixture.workspaces.touch(&made.record.key).await.unwrap();
    let error =
        fixture.workspaces.check_quota(&made.record.key, Freshness::Cached).await.unwrap_err();
    assert_eq!(error.code(), Code::QuotaExceeded);
    assert!(error.to_string().contains("cannot be read"), "{error}");
}
