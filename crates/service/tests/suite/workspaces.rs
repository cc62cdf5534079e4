//! Workspaces that come and go while they are used.

use carrel_domain::{ByteSize, Code, Coded as _, Timestamp};
use carrel_service::{ServiceError, WorkspaceSpec};
use carrel_store::Sealed;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::test_environment::TestEnvironment;

#[tokio::test]
async fn a_removal_that_is_refused_loses_nothing() {
    let test_env = TestEnvironment::new().await;
    let (id, store) = (test_env.workspace, test_env.tasks.store());
    let write = json!({ "action": "write_file", "path": "a", "content": "x" });
    let (task, _) = test_env.run(json!({ "steps": [write] })).await;
    let now = Timestamp::from_millis(0);
    store.put_credential(id, "deploy".to_owned(), Sealed(vec![1]), now).await.unwrap();
    let used = test_env.workspaces.open_workspace(id).await.unwrap();
    let refused = test_env.workspaces.remove(id).await.unwrap_err();
    assert_eq!(refused.code(), Code::WorkspaceBusy);
    assert_eq!(store.credential_names(id).await.unwrap(), ["deploy"]);
    assert!(store.task(task.id).await.unwrap().is_some());
    assert!(test_env.path("a").exists());
    drop(used);
    test_env.workspaces.remove(id).await.unwrap();
    assert!(!test_env.path("").exists());
    assert_eq!(store.task(task.id).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_a_workspace_during_its_removal_brings_nothing_back() {
    let test_env = TestEnvironment::new().await;
    let id = test_env.workspace;
    for _ in 0..30 {
        test_env.workspaces.provision(WorkspaceSpec::with_defaults(id)).await.unwrap();
        let (entered, removed) =
            tokio::join!(async { test_env.workspaces.open_workspace(id).await.map(drop) }, async {
                tokio::task::yield_now().await;
                test_env.workspaces.remove(id).await
            },);
        removed.unwrap();
        let found = test_env.workspaces.find(id).await;
        assert!(matches!(found, Err(ServiceError::NoWorkspace { .. })), "{entered:?} {found:?}");
        assert!(!test_env.path("").exists(), "{entered:?}");
    }
}

#[tokio::test]
async fn files_that_arrive_at_once_share_what_the_quota_leaves() {
    let test_env = TestEnvironment::with_quota(ByteSize::mib(20)).await;
    let space = test_env.workspaces.open_workspace(test_env.workspace).await.unwrap();
    let much = 12 << 20;
    let mut first = space.upload("a", Some(much)).await.unwrap();
    first.write(b"x").unwrap();
    let second = async || space.upload("b", Some(much)).await.map_err(|failure| failure.code);
    assert_eq!(second().await.unwrap_err(), Code::QuotaExceeded);
    // Neither does one that does not say how much comes.
    let mut unsaid = space.upload("c", None).await.unwrap();
    assert_eq!(unsaid.write(&vec![0; 9 << 20]).unwrap_err().code, Code::QuotaExceeded);
    drop((first, unsaid));
    let mut whole = second().await.unwrap();
    for _ in 0..12 {
        whole.write(&vec![0; 1 << 20]).unwrap();
    }
    space.finish(whole).await.unwrap();
    assert_eq!(second().await.unwrap_err(), Code::QuotaExceeded);
}

#[tokio::test]
async fn usage_shows_the_count_of_a_refused_write() {
    let test_env = TestEnvironment::with_quota(ByteSize::mib(4)).await;
    let space = test_env.workspaces.open_workspace(test_env.workspace).await.unwrap();
    test_env.workspaces.check_quota(&space).await.unwrap();
    std::fs::write(test_env.path("big"), vec![1; 5 << 20]).unwrap();
    assert_eq!(
        test_env.workspaces.recheck_quota(&space).await.unwrap_err().code(),
        Code::QuotaExceeded
    );
    let used = test_env.workspaces.usage(test_env.workspace).await.unwrap().unwrap();
    assert!(used.amount.bytes >= 5 << 20, "{used:?}");
}
