//! The tests of `carrel_store::Store`, for any store. Each function is one promise of the trait.
//!
//! A test gets an empty store and may use nothing but the trait, so that the same code runs against SQLite and
//! PostgreSQL. Times are fixed with [`at`], which makes leases and delays exact without sleeping. A new promise
//! needs an entry in [`store_tests!`](crate::store_tests), or it is not run.

mod placement;
mod repetition;

pub use placement::*;
pub use repetition::*;

use std::collections::HashSet;
use std::time::Duration;

use carrel_domain::{Layout, Priority, TaskId, TaskStatus, Timestamp, VolumeId, WorkspaceId};
use carrel_store::{
    Appended, Cancellation, Claim, ClaimRequest, Claimed, Event, EventKind, Finish, Finished,
    Heartbeat, IdempotencyKey, NewEvent, NewTask, Release, Released, Sealed, Store, Submission,
    Task, TaskFilter, WorkerId, Workspace,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// The lease of [`claim_request`].
pub const LEASE: Duration = Duration::from_secs(30);

/// Returns a fixed time, `seconds` after the start of the test.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1000)
}

/// Adds a workspace and returns its id.
pub async fn workspace(store: &dyn Store) -> WorkspaceId {
    let id = WorkspaceId::generate();
    let workspace = Workspace {
        id,
        name: "test".to_owned(),
        layout: Layout::Tenant,
        network: None,
        quota_bytes: 1 << 30,
        created_at: at(0),
        volume: None,
    };
    assert_eq!(store.add_workspace(workspace.clone()).await.unwrap(), None);
    assert_eq!(store.add_workspace(workspace.clone()).await.unwrap(), Some(workspace));
    id
}

/// Returns a task to submit, with three attempts and a limit of 1000 queued tasks.
pub fn new_task(workspace: WorkspaceId, priority: Priority, now: Timestamp) -> NewTask {
    NewTask {
        id: TaskId::generate(),
        workspace,
        task_type: "background_job".to_owned(),
        priority,
        configuration: json!({ "steps": [{ "action": "shell", "command": "true" }] }),
        timeout: Duration::from_mins(5),
        max_attempts: 3,
        correlation_id: None,
        now,
        max_waiting: 1000,
        idempotency_key: None,
    }
}

/// Submits a task and returns its id.
pub async fn submit(store: &dyn Store, workspace: WorkspaceId, priority: Priority) -> TaskId {
    created(store.submit(new_task(workspace, priority, at(0))).await.unwrap()).id
}

fn created(submission: Submission) -> Task {
    match submission {
        Submission::Created(task, _) => task,
        other => panic!("not created: {other:?}"),
    }
}

/// The volume of [`claim_request`].
pub const VOLUME: [u8; 16] = [1; 16];

/// Returns a request for a task of any workspace without a volume, or on [`VOLUME`].
pub fn claim_request(worker: &str) -> ClaimRequest {
    ClaimRequest {
        worker: WorkerId(worker.to_owned()),
        lease: LEASE,
        per_workspace: 1000,
        volume: VolumeId::from_bytes(VOLUME),
    }
}

/// Returns the request of a worker on another volume.
pub fn claim_request_on(worker: &str, volume: VolumeId) -> ClaimRequest {
    ClaimRequest { volume, ..claim_request(worker) }
}

async fn claim(store: &dyn Store, seconds: i64) -> Option<Claimed> {
    store.try_claim(claim_request("w1"), at(seconds)).await.unwrap()
}

async fn claim_one(store: &dyn Store, seconds: i64) -> Claim {
    claim(store, seconds).await.expect("a task waits").claim
}

/// Finishes a task after its last event.
pub async fn finish(store: &dyn Store, claim: Claim, status: TaskStatus, seconds: i64) -> Finished {
    let after = task(store, claim.task).await.last_event;
    store.finish(claim, end(after, status, seconds)).await.unwrap()
}

/// Returns the end of a task whose last event is `after`.
pub fn end(after: u64, status: TaskStatus, seconds: i64) -> Finish {
    Finish {
        status,
        result: json!({ "steps": [] }),
        error: (status != TaskStatus::Completed).then(|| "it did not work".to_owned()),
        took: Duration::from_millis(1500),
        events: Vec::new(),
        after,
        now: at(seconds),
    }
}

fn release(seconds: i64, due: i64, counts_as_lost: bool) -> Release {
    Release { reason: "a test".to_owned(), due: at(due), now: at(seconds), counts_as_lost }
}

async fn task(store: &dyn Store, id: TaskId) -> Task {
    store.task(id).await.unwrap().expect("the task is there")
}

async fn status(store: &dyn Store, id: TaskId) -> TaskStatus {
    task(store, id).await.status
}

/// Returns every event of a task.
pub async fn all_events(store: &dyn Store, id: TaskId) -> Vec<Event> {
    store.events(id, 0, 10_000).await.unwrap()
}

async fn statuses(store: &dyn Store, id: TaskId) -> Vec<String> {
    let events = all_events(store, id).await;
    let events = events.iter().filter(|event| event.kind == EventKind::StatusChanged);
    events.map(|event| event.data["status"].as_str().unwrap().to_owned()).collect()
}

fn no_delay(_: u32) -> Duration {
    Duration::ZERO
}

pub async fn a_submitted_task_is_queued_and_says_so(store: &dyn Store) {
    let workspace = workspace(store).await;
    let new = new_task(workspace, Priority::High, at(5));
    let Submission::Created(made, events) = store.submit(new.clone()).await.unwrap() else {
        panic!("not created");
    };
    assert_eq!(task(store, new.id).await, made);
    assert_eq!((made.status, made.attempt, made.submitted_at), (TaskStatus::Queued, 0, at(5)));
    assert_eq!(events, all_events(store, new.id).await);
    let expected = Event {
        task: new.id,
        number: 1,
        kind: EventKind::StatusChanged,
        data: json!({ "status": "queued" }),
        at: at(5),
    };
    assert_eq!(events, [expected]);
}

pub async fn a_task_needs_a_workspace(store: &dyn Store) {
    let new = new_task(WorkspaceId::generate(), Priority::Normal, at(0));
    assert_eq!(store.submit(new).await.unwrap(), Submission::NoWorkspace);
}

pub async fn a_repeated_submission_returns_the_first_task(store: &dyn Store) {
    let (one, other) = (workspace(store).await, workspace(store).await);
    let key = IdempotencyKey { scope: "a".to_owned(), key: "k".to_owned(), digest: [1; 32] };
    let new = |workspace, key: &IdempotencyKey| NewTask {
        idempotency_key: Some(key.clone()),
        ..new_task(workspace, Priority::Normal, at(0))
    };
    let first = created(store.submit(new(one, &key)).await.unwrap());
    let again = store.submit(new(one, &key)).await.unwrap();
    assert_eq!(again, Submission::Repeated(first));
    let different = IdempotencyKey { digest: [2; 32], ..key.clone() };
    assert_eq!(store.submit(new(one, &different)).await.unwrap(), Submission::Mismatch);
    let elsewhere = IdempotencyKey { scope: "b".to_owned(), ..key };
    created(store.submit(new(other, &elsewhere)).await.unwrap());
    assert_eq!(store.counts().await.unwrap().queued, 2);
}

pub async fn a_full_queue_refuses_submissions(store: &dyn Store) {
    let workspace = workspace(store).await;
    let new = || NewTask { max_waiting: 2, ..new_task(workspace, Priority::Low, at(0)) };
    created(store.submit(new()).await.unwrap());
    created(store.submit(new()).await.unwrap());
    assert_eq!(store.submit(new()).await.unwrap(), Submission::Full { limit: 2 });
    claim_one(store, 1).await;
    created(store.submit(new()).await.unwrap());
}

pub async fn priority_and_then_age_decide_inside_a_workspace(store: &dyn Store) {
    let workspace = workspace(store).await;
    let order = [Priority::Low, Priority::Normal, Priority::Critical, Priority::High];
    let mut submitted = Vec::new();
    for priority in order.into_iter().chain(order) {
        submitted.push((priority, submit(store, workspace, priority).await));
    }
    submitted.sort_by_key(|(priority, _)| *priority);
    for (_, expected) in submitted {
        assert_eq!(claim_one(store, 1).await.task, expected);
    }
    assert_eq!(claim(store, 1).await, None);
}

pub async fn workspaces_take_turns(store: &dyn Store) {
    let (busy, quiet) = (workspace(store).await, workspace(store).await);
    for _ in 0..20 {
        submit(store, busy, Priority::Critical).await;
    }
    let patient: HashSet<_> =
        [submit(store, quiet, Priority::Low).await, submit(store, quiet, Priority::Low).await]
            .into();
    let mut first = HashSet::new();
    for _ in 0..4 {
        first.insert(claim_one(store, 1).await.task);
    }
    assert!(patient.is_subset(&first), "the quiet workspace was kept waiting");
}

pub async fn no_workspace_runs_more_than_it_may(store: &dyn Store) {
    let (busy, other) = (workspace(store).await, workspace(store).await);
    for _ in 0..5 {
        submit(store, busy, Priority::Critical).await;
    }
    let claim_request = ClaimRequest { per_workspace: 2, ..claim_request("w1") };
    let mut running = Vec::new();
    while let Some(claimed) = store.try_claim(claim_request.clone(), at(1)).await.unwrap() {
        running.push(claimed.claim);
    }
    assert_eq!(running.len(), 2);
    let waiting = submit(store, other, Priority::Low).await;
    let next = store.try_claim(claim_request.clone(), at(1)).await.unwrap().unwrap();
    assert_eq!(next.claim.task, waiting);
    finish(store, running[0], TaskStatus::Completed, 2).await;
    assert!(store.try_claim(claim_request, at(2)).await.unwrap().is_some());
}

pub async fn a_claimed_task_is_invisible_until_its_lease_ends(store: &dyn Store) {
    let workspace = workspace(store).await;
    let id = submit(store, workspace, Priority::Normal).await;
    let first = claim(store, 10).await.unwrap();
    assert_eq!((first.claim.attempt, first.task.status), (1, TaskStatus::Running));
    assert_eq!(first.task, task(store, id).await);
    assert_eq!(first.task.worker, Some(WorkerId("w1".to_owned())));
    assert_eq!(store.release_expired(at(39), no_delay).await.unwrap(), []);
    assert_eq!(claim(store, 39).await, None);
    assert_eq!(store.release_expired(at(40), no_delay).await.unwrap().len(), 1);
    let second = store.try_claim(claim_request("w2"), at(40)).await.unwrap().unwrap();
    assert_eq!((second.claim.task, second.claim.attempt), (id, 2));
}

pub async fn a_heartbeat_keeps_a_claim(store: &dyn Store) {
    let workspace = workspace(store).await;
    submit(store, workspace, Priority::Normal).await;
    let claim = claim_one(store, 0).await;
    let heartbeat = store.heartbeat(claim, at(100)).await.unwrap();
    assert_eq!(heartbeat, Heartbeat::Held { cancel_requested: false });
    // A heartbeat that arrives late does not shorten the lease.
    store.heartbeat(claim, at(50)).await.unwrap();
    assert_eq!(store.release_expired(at(99), no_delay).await.unwrap(), []);
    assert_eq!(store.release_expired(at(100), no_delay).await.unwrap().len(), 1);
    assert_eq!(store.heartbeat(claim, at(200)).await.unwrap(), Heartbeat::Lost);
}

pub async fn every_write_of_a_lost_claim_is_refused(store: &dyn Store) {
    let workspace = workspace(store).await;
    let id = submit(store, workspace, Priority::Normal).await;
    let lost = claim_one(store, 0).await;
    store.release_expired(at(60), no_delay).await.unwrap();
    let holder = claim_one(store, 60).await;
    let before = (task(store, id).await, all_events(store, id).await);
    let events = vec![log_line("late", 61)];
    assert_eq!(store.append(lost, 3, events).await.unwrap(), Appended::Lost);
    assert_eq!(finish(store, lost, TaskStatus::Completed, 61).await, Finished::Lost);
    assert_eq!(store.release(lost, release(61, 61, true)).await.unwrap(), Released::Lost);
    assert_eq!(store.heartbeat(lost, at(500)).await.unwrap(), Heartbeat::Lost);
    assert_eq!((task(store, id).await, all_events(store, id).await), before);
    let done = finish(store, holder, TaskStatus::Completed, 62).await;
    assert!(matches!(done, Finished::Done { status: TaskStatus::Completed, .. }));
}

pub async fn a_task_that_is_lost_too_often_is_dead(store: &dyn Store) {
    let workspace = workspace(store).await;
    let id = submit(store, workspace, Priority::Normal).await;
    for round in 1..=3 {
        assert_eq!(claim_one(store, round * 100).await.attempt, u32::try_from(round).unwrap());
        store.release_expired(at(round * 100 + 50), no_delay).await.unwrap();
    }
    let dead = task(store, id).await;
    assert_eq!((dead.status, dead.completed_at), (TaskStatus::Dead, Some(at(350))));
    assert!(dead.error.unwrap().contains("3 lost attempts"));
    assert_eq!(claim(store, 1000).await, None);
    assert!(all_events(store, id).await.last().unwrap().is_last());
}

pub async fn an_orderly_release_does_not_count_as_lost(store: &dyn Store) {
    let workspace = workspace(store).await;
    let id = submit(store, workspace, Priority::Normal).await;
    for round in 1..=5 {
        let claim = claim_one(store, round).await;
        let given = store.release(claim, release(round, round, false)).await.unwrap();
        assert!(matches!(given, Released::Done { status: TaskStatus::Queued, .. }));
    }
    assert_eq!((status(store, id).await, task(store, id).await.attempt), (TaskStatus::Queued, 5));
}

pub async fn a_delayed_task_waits_for_its_time(store: &dyn Store) {
    let workspace = workspace(store).await;
    let delayed = submit(store, workspace, Priority::Critical).await;
    store.release(claim_one(store, 0).await, release(0, 10, true)).await.unwrap();
    let other = submit(store, workspace, Priority::Low).await;
    assert_eq!(claim_one(store, 5).await.task, other);
    assert_eq!(claim(store, 9).await, None);
    assert_eq!(claim_one(store, 10).await.task, delayed);
}

pub async fn the_tasks_of_dead_workers_are_released(store: &dyn Store) {
    let workspace = workspace(store).await;
    for _ in 0..2 {
        submit(store, workspace, Priority::Normal).await;
    }
    let dead = store.try_claim(claim_request("dead"), at(0)).await.unwrap().unwrap().claim;
    let alive = store.try_claim(claim_request("alive"), at(0)).await.unwrap().unwrap().claim;
    let events = store.release_except(&[WorkerId("alive".to_owned())], at(1)).await.unwrap();
    assert_eq!(events.iter().map(|event| event.task).collect::<Vec<_>>(), [dead.task]);
    assert_eq!(status(store, dead.task).await, TaskStatus::Queued);
    assert_eq!(status(store, alive.task).await, TaskStatus::Running);
}

pub async fn a_queued_task_is_cancelled_at_once(store: &dyn Store) {
    let workspace = workspace(store).await;
    let id = submit(store, workspace, Priority::Normal).await;
    let Cancellation::Cancelled(events) = store.cancel(id, at(3)).await.unwrap() else {
        panic!("not cancelled");
    };
    assert!(events.last().unwrap().is_last());
    let gone = task(store, id).await;
    assert_eq!((gone.status, gone.completed_at), (TaskStatus::Cancelled, Some(at(3))));
    assert_eq!(claim(store, 4).await, None);
    let again = store.cancel(id, at(5)).await.unwrap();
    assert_eq!(again, Cancellation::Finished(TaskStatus::Cancelled));
    assert_eq!(store.cancel(TaskId::generate(), at(5)).await.unwrap(), Cancellation::Unknown);
}

pub async fn a_cancelled_running_task_never_counts_as_completed(store: &dyn Store) {
    let workspace = workspace(store).await;
    let id = submit(store, workspace, Priority::Normal).await;
    let claim = claim_one(store, 0).await;
    assert_eq!(store.cancel(id, at(1)).await.unwrap(), Cancellation::Requested);
    assert_eq!(status(store, id).await, TaskStatus::Running);
    let heartbeat = store.heartbeat(claim, at(60)).await.unwrap();
    assert_eq!(heartbeat, Heartbeat::Held { cancel_requested: true });
    let done = finish(store, claim, TaskStatus::Completed, 2).await;
    assert!(matches!(done, Finished::Done { status: TaskStatus::Cancelled, .. }), "{done:?}");
    let gone = task(store, id).await;
    assert_eq!((gone.status, gone.result), (TaskStatus::Cancelled, Some(json!({ "steps": [] }))));
}

pub async fn a_cancelled_task_of_a_lost_worker_is_not_retried(store: &dyn Store) {
    let workspace = workspace(store).await;
    let id = submit(store, workspace, Priority::Normal).await;
    claim_one(store, 0).await;
    store.cancel(id, at(1)).await.unwrap();
    store.release_expired(at(100), no_delay).await.unwrap();
    assert_eq!(status(store, id).await, TaskStatus::Cancelled);
    assert_eq!(claim(store, 101).await, None);
}

pub async fn a_terminal_status_is_final(store: &dyn Store) {
    let workspace = workspace(store).await;
    for last in [TaskStatus::Completed, TaskStatus::Failed, TaskStatus::TimedOut] {
        let id = submit(store, workspace, Priority::Normal).await;
        let claim = claim_one(store, 0).await;
        finish(store, claim, last, 1).await;
        let (before, events) = (task(store, id).await, all_events(store, id).await);
        assert_eq!((before.status, before.completed_at), (last, Some(at(1))));
        assert_eq!(before.execution_time, Some(Duration::from_millis(1500)));
        assert_eq!(store.cancel(id, at(2)).await.unwrap(), Cancellation::Finished(last));
        let again = finish(store, claim, TaskStatus::Completed, 2).await;
        assert_eq!(again, Finished::Lost);
        store.release(claim, release(2, 2, true)).await.unwrap();
        store.release_expired(at(10_000), no_delay).await.unwrap();
        assert_eq!((task(store, id).await, all_events(store, id).await), (before, events));
    }
}

fn log_line(text: &str, seconds: i64) -> NewEvent {
    NewEvent { kind: EventKind::LogLine, data: json!({ "line": text }), at: at(seconds) }
}

pub async fn events_are_numbered_without_gaps_and_the_last_one_is_terminal(store: &dyn Store) {
    let workspace = workspace(store).await;
    let id = submit(store, workspace, Priority::Normal).await;
    let claim = claim_one(store, 0).await;
    let Appended::Written(events) =
        store.append(claim, 2, vec![log_line("a", 1), log_line("b", 1)]).await.unwrap()
    else {
        panic!("lost");
    };
    assert_eq!(events.iter().map(|event| event.number).collect::<Vec<_>>(), [3, 4]);
    let finish = Finish { events: vec![log_line("c", 2)], ..end(4, TaskStatus::Failed, 2) };
    store.finish(claim, finish).await.unwrap();
    let events = all_events(store, id).await;
    assert_eq!(events.iter().map(|event| event.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(statuses(store, id).await, ["queued", "running", "failed"]);
    let last: Vec<_> = events.iter().map(Event::is_last).collect();
    assert_eq!(last, [false, false, false, false, false, true]);
    assert_eq!(store.events(id, 4, 1).await.unwrap(), events[4..5]);
    assert_eq!(store.events(id, 6, 10).await.unwrap(), []);
    assert_eq!(task(store, id).await.last_event, 6);
}

pub async fn a_waiting_claim_gets_a_submitted_task(store: &dyn Store) {
    let workspace = workspace(store).await;
    let waiting = store.claim(claim_request("w1"));
    let submitting = async {
        tokio::task::yield_now().await;
        submit(store, workspace, Priority::Normal).await
    };
    let (claimed, id) = tokio::join!(waiting, submitting);
    let claimed = claimed.unwrap();
    assert_eq!((claimed.claim.task, claimed.claim.attempt), (id, 1));
    assert_eq!(status(store, id).await, TaskStatus::Running);
}

pub async fn a_cancelled_claim_loses_no_task(store: &dyn Store) {
    let workspace = workspace(store).await;
    for _ in 0..20 {
        let given_up =
            tokio::time::timeout(Duration::from_millis(1), store.claim(claim_request("w1")));
        let submitting = submit(store, workspace, Priority::Normal);
        let (claimed, id) = tokio::join!(given_up, submitting);
        let claimed = match claimed {
            Ok(claimed) => claimed.unwrap(),
            Err(_) => tokio::time::timeout(LEASE / 2, store.claim(claim_request("w2")))
                .await
                .expect("the task is to be had")
                .unwrap(),
        };
        assert_eq!(claimed.claim.task, id);
        finish(store, claimed.claim, TaskStatus::Completed, 1).await;
    }
}

pub async fn lists_are_filtered_and_paged_newest_first(store: &dyn Store) {
    let (one, other) = (workspace(store).await, workspace(store).await);
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(submit(store, one, Priority::Normal).await);
    }
    submit(store, other, Priority::Normal).await;
    ids.reverse();
    let filter =
        |limit, offset| TaskFilter { workspace: one, status: None, task_type: None, limit, offset };
    let page = store.tasks(filter(2, 1)).await.unwrap();
    assert_eq!(page.tasks.iter().map(|task| task.id).collect::<Vec<_>>(), ids[1..3]);
    assert_eq!(page.total, 5);
    assert_eq!(page.tasks[0].configuration, Value::Null);
    let claimed = store.try_claim(claim_request("w1"), at(0)).await.unwrap().unwrap();
    assert_eq!(claimed.task.workspace, one);
    let running = TaskFilter { status: Some(TaskStatus::Running), ..filter(10, 0) };
    let page = store.tasks(running).await.unwrap();
    assert_eq!(page.tasks.iter().map(|task| task.id).collect::<Vec<_>>(), [claimed.claim.task]);
    let kind = TaskFilter { task_type: Some("other".to_owned()), ..filter(10, 0) };
    assert_eq!(store.tasks(kind).await.unwrap().total, 0);
}

pub async fn the_first_reply_is_stored(store: &dyn Store) {
    let key = IdempotencyKey { scope: "s".to_owned(), key: "k".to_owned(), digest: [7; 32] };
    assert_eq!(store.reply("s", "k").await.unwrap(), None);
    let first = store.save_reply(key.clone(), 201, "{}".to_owned(), at(0)).await.unwrap();
    let second = store.save_reply(key, 500, "no".to_owned(), at(1)).await.unwrap();
    assert_eq!((first.status, &first), (201, &second));
    assert_eq!(store.reply("s", "k").await.unwrap(), Some(first));
    assert_eq!(store.reply("t", "k").await.unwrap(), None);
}

pub async fn credentials_are_kept_by_workspace_and_name(store: &dyn Store) {
    let (one, other) = (workspace(store).await, workspace(store).await);
    for (workspace, name, byte) in [(one, "b", 1), (one, "a", 2), (one, "a", 3), (other, "a", 4)] {
        let sealed = Sealed(vec![byte]);
        store.put_credential(workspace, name.to_owned(), sealed, at(0)).await.unwrap();
    }
    assert_eq!(store.credential_names(one).await.unwrap(), ["a", "b"]);
    assert_eq!(store.credential(one, "a").await.unwrap(), Some(Sealed(vec![3])));
    assert!(store.delete_credential(one, "a").await.unwrap());
    assert!(!store.delete_credential(one, "a").await.unwrap());
    assert_eq!(store.credential(one, "a").await.unwrap(), None);
    assert_eq!(store.credential(other, "a").await.unwrap(), Some(Sealed(vec![4])));
}

pub async fn a_workspace_with_live_tasks_is_not_deleted(store: &dyn Store) {
    let id = workspace(store).await;
    let task = submit(store, id, Priority::Normal).await;
    assert!(!store.delete_workspace(id).await.unwrap());
    let claim = claim_one(store, 0).await;
    assert!(!store.delete_workspace(id).await.unwrap());
    finish(store, claim, TaskStatus::Completed, 1).await;
    let scopes = [format!("{id} exec"), format!("{} exec", workspace(store).await)];
    for scope in &scopes {
        let key = IdempotencyKey { scope: scope.clone(), key: "k".to_owned(), digest: [0; 32] };
        store.save_reply(key, 200, "what it held".to_owned(), at(1)).await.unwrap();
    }
    assert!(store.delete_workspace(id).await.unwrap());
    assert_eq!(store.workspace(id).await.unwrap(), None);
    // A later workspace with the same id is another one.
    assert_eq!(store.reply(&scopes[0], "k").await.unwrap(), None);
    assert!(store.reply(&scopes[1], "k").await.unwrap().is_some());
    assert_eq!(store.task(task).await.unwrap(), None);
    assert_eq!(all_events(store, task).await, []);
    assert_eq!(store.workspaces(None, 10).await.unwrap().len(), 1);
}

pub async fn old_replies_and_tasks_are_deleted_and_live_ones_are_not(store: &dyn Store) {
    let workspace = workspace(store).await;
    let old = submit(store, workspace, Priority::Critical).await;
    finish(store, claim_one(store, 0).await, TaskStatus::Completed, 10).await;
    let (young, waiting) = (
        submit(store, workspace, Priority::Critical).await,
        submit(store, workspace, Priority::Low).await,
    );
    finish(store, claim_one(store, 0).await, TaskStatus::Completed, 20).await;
    for (key, seconds) in [("old", 10), ("young", 20)] {
        let key = IdempotencyKey { scope: "s".to_owned(), key: key.to_owned(), digest: [0; 32] };
        store.save_reply(key, 200, String::new(), at(seconds)).await.unwrap();
    }
    store.delete_before(at(15), at(15)).await.unwrap();
    assert_eq!(store.task(old).await.unwrap(), None);
    assert!(store.task(young).await.unwrap().is_some());
    assert_eq!(status(store, waiting).await, TaskStatus::Queued);
    assert_eq!(store.reply("s", "old").await.unwrap(), None);
    assert!(store.reply("s", "young").await.unwrap().is_some());
}
