//! Workers, volumes of workspaces, and queued tasks.

use carrel_domain::{Priority, TaskStatus, VolumeId, WorkspaceId};
use carrel_store::{
    IdempotencyKey, NewTask, QueuedTask, Store, Submission, WorkerId, WorkerRecord,
};
use pretty_assertions::assert_eq;

use super::{
    all_events, at, claim, claim_one, claim_request, claim_request_on, created, new_task, release,
    submit, task, workspace,
};

async fn volume_of(store: &dyn Store, id: WorkspaceId) -> Option<VolumeId> {
    store.workspace(id).await.unwrap().expect("the workspace is there").volume
}

pub async fn a_claim_assigns_its_volume_to_the_workspace(store: &dyn Store) {
    let (here, there) = (VolumeId::generate(), VolumeId::generate());
    let workspace = workspace(store).await;
    for _ in 0..2 {
        submit(store, workspace, Priority::Normal).await;
    }
    assert_eq!(volume_of(store, workspace).await, None);
    assert!(store.try_claim(claim_request_on("w1", here), at(1)).await.unwrap().is_some());
    assert_eq!(volume_of(store, workspace).await, Some(here));
    assert_eq!(store.try_claim(claim_request_on("w2", there), at(1)).await.unwrap(), None);
    assert!(store.try_claim(claim_request_on("w3", here), at(1)).await.unwrap().is_some());
}

pub async fn a_waiting_claim_of_one_volume_does_not_block_others(store: &dyn Store) {
    let (here, there) = (VolumeId::generate(), VolumeId::generate());
    let workspace = workspace(store).await;
    assert_eq!(store.assign_volume(workspace, &[there]).await.unwrap(), Some(there));
    let first = store.claim(claim_request_on("w1", here));
    let second = store.claim(claim_request_on("w2", there));
    let submitting = async {
        tokio::task::yield_now().await;
        submit(store, workspace, Priority::Normal).await
    };
    tokio::pin!(first);
    tokio::select! {
        biased;
        claimed = &mut first => panic!("{claimed:?}"),
        (claimed, id) = async { tokio::join!(second, submitting) } => {
            assert_eq!(claimed.unwrap().claim.task, id);
        }
    }
}

pub async fn a_workspace_is_assigned_once_to_the_emptiest_volume(store: &dyn Store) {
    let (one, other) = (VolumeId::generate(), VolumeId::generate());
    let mut placed = Vec::new();
    for _ in 0..4 {
        let workspace = workspace(store).await;
        assert_eq!(store.assign_volume(workspace, &[]).await.unwrap(), None);
        placed.push(store.assign_volume(workspace, &[one, other]).await.unwrap().unwrap());
        let again = store.assign_volume(workspace, &[one]).await.unwrap();
        assert_eq!(again, placed.last().copied());
        assert_eq!(volume_of(store, workspace).await, again);
        assert_eq!(store.assign_volume(workspace, &[]).await.unwrap(), again);
    }
    assert_eq!(placed.iter().filter(|volume| **volume == one).count(), 2, "{placed:?}");
    let unknown = WorkspaceId::generate();
    assert_eq!(store.assign_volume(unknown, &[one]).await.unwrap(), None);
}

pub async fn workers_are_listed_by_the_age_of_their_registration(store: &dyn Store) {
    let worker = |name: &str, seconds| WorkerRecord {
        id: WorkerId(name.to_owned()),
        volume: VolumeId::from_bytes([7; 16]),
        address: Some("http://127.0.0.1:8081".to_owned()),
        concurrency: 3,
        seen_at: at(seconds),
    };
    for known in [worker("a", 1), worker("b", 5), WorkerRecord { address: None, ..worker("c", 9) }]
    {
        store.register_worker(known).await.unwrap();
    }
    let moved =
        WorkerRecord { volume: VolumeId::from_bytes([8; 16]), concurrency: 4, ..worker("a", 10) };
    store.register_worker(moved.clone()).await.unwrap();
    let third = WorkerRecord { address: None, ..worker("c", 9) };
    assert_eq!(store.workers(at(5)).await.unwrap(), [moved.clone(), worker("b", 5), third.clone()]);
    assert_eq!(store.workers(at(6)).await.unwrap(), [moved, third.clone()]);
    for name in ["a", "a", "unknown"] {
        store.deregister_worker(&WorkerId(name.to_owned())).await.unwrap();
    }
    assert_eq!(store.workers(at(6)).await.unwrap(), [third]);
}

pub async fn queued_tasks_are_listed_by_priority_and_age(store: &dyn Store) {
    let (one, other) = (workspace(store).await, workspace(store).await);
    let here = VolumeId::generate();
    store.assign_volume(other, &[here]).await.unwrap();
    let low = submit(store, one, Priority::Low).await;
    let first = submit(store, one, Priority::High).await;
    let second = submit(store, other, Priority::High).await;
    created(store.submit(new_task(one, Priority::Critical, at(5))).await.unwrap());
    let waiting =
        |task, workspace, priority, volume| QueuedTask { task, workspace, priority, volume };
    let all = [
        waiting(first, one, Priority::High, None),
        waiting(second, other, Priority::High, Some(here)),
        waiting(low, one, Priority::Low, None),
    ];
    assert_eq!(store.queued_tasks(at(5), 10).await.unwrap(), all);
    assert_eq!(store.queued_tasks(at(5), 2).await.unwrap(), all[..2]);
    assert_eq!(store.queued_tasks(at(0), 10).await.unwrap(), []);
    let taken = claim_one(store, 1).await;
    store.release(taken, release(1, 50, true)).await.unwrap();
    let left = store.queued_tasks(at(5), 10).await.unwrap();
    assert_eq!(left.len(), 2, "one that is delayed does not wait yet");
    assert!(left.iter().all(|waiting| waiting.task != taken.task));
}

pub async fn failing_a_queued_task_frees_its_idempotency_key(store: &dyn Store) {
    let workspace = workspace(store).await;
    let key = IdempotencyKey { scope: "s".to_owned(), key: "k".to_owned(), digest: [1; 32] };
    let new = || NewTask {
        idempotency_key: Some(key.clone()),
        ..new_task(workspace, Priority::Normal, at(0))
    };
    let first = created(store.submit(new()).await.unwrap()).id;
    let events = store.fail_queued(first, "no queue", at(1)).await.unwrap().expect("it waits");
    assert_eq!(events, all_events(store, first).await[1..]);
    assert!(events.last().unwrap().is_last());
    let failed = task(store, first).await;
    assert_eq!((failed.status, failed.completed_at), (TaskStatus::Failed, Some(at(1))));
    assert_eq!(failed.error.as_deref(), Some("no queue"));
    assert_eq!(store.fail_queued(first, "again", at(2)).await.unwrap(), None);
    assert_eq!(claim(store, 2).await, None);
    let second = match store.submit(new()).await.unwrap() {
        Submission::Created(task, _) => task.id,
        other => panic!("{other:?}"),
    };
    assert_ne!(first, second);
    let running = store.try_claim(claim_request("w1"), at(2)).await.unwrap().unwrap();
    assert_eq!(store.fail_queued(running.claim.task, "late", at(3)).await.unwrap(), None);
}
