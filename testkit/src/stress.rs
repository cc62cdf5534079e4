//! Many clients at once on stores that share a database, and the invariants that must hold afterwards.
//!
//! Every client records what the store acknowledged. [`check`] then looks for each acknowledged task, event and
//! end: none may be lost or doubled, even if servers were killed and connections broke meanwhile.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrel_domain::{Clock as _, Priority, SystemClock, TaskId, TaskStatus, WorkspaceId};
use carrel_store::{
    Appended, Claim, Claimed, EventKind, Finish, Finished, NewEvent, NewTask, Release, Store,
    Submission,
};
use fastrand::Rng;
use serde_json::json;

use crate::store::{all_events, claim_request, new_task, workspace};

/// The operations that the store acknowledged.
#[derive(Debug, Default)]
pub struct Acknowledged {
    /// Submitted tasks.
    pub submitted: HashSet<TaskId>,
    /// Claims; each must be handed out once.
    pub claimed: HashSet<Claim>,
    /// Finished tasks with their statuses.
    pub finished: Vec<(TaskId, TaskStatus)>,
    /// Appended events: the task, the number and the text.
    pub events: Vec<(TaskId, u64, String)>,
}

/// Runs one client for `steps` random operations, and finishes the tasks that it holds then. Retries while the
/// store is unavailable.
pub async fn run_client(
    store: Arc<dyn Store>,
    workspaces: Vec<WorkspaceId>,
    acknowledged: Arc<Mutex<Acknowledged>>,
    seed: u64,
    steps: usize,
) {
    let mut rng = Rng::with_seed(seed);
    let mut held: Vec<(Claim, u64)> = Vec::new();
    for step in 0..steps {
        match rng.u8(0..100) {
            0..40 => {
                let workspace = workspaces[rng.usize(..workspaces.len())];
                let new = new_task(workspace, Priority::ALL[rng.usize(..4)], SystemClock.now());
                let new = NewTask { max_waiting: u64::MAX, ..new };
                let made = retry(|| store.submit(new.clone())).await;
                assert!(matches!(made, Submission::Created(..)), "{made:?}");
                acknowledged.lock().unwrap().submitted.insert(new.id);
            }
            40..70 => {
                let name = format!("w{seed}");
                let now = SystemClock.now();
                let claimed = retry(|| store.try_claim(claim_request(&name), now)).await;
                let Some(Claimed { claim, task, .. }) = claimed else { continue };
                let first = acknowledged.lock().unwrap().claimed.insert(claim);
                assert!(first, "{claim:?} was handed out twice");
                held.push((claim, task.last_event));
            }
            _ if held.is_empty() => {}
            70..80 => {
                let index = rng.usize(..held.len());
                let (claim, after) = held[index];
                let text = format!("{seed}/{step}");
                let data = json!({ "line": text });
                let events =
                    vec![NewEvent { kind: EventKind::LogLine, data, at: SystemClock.now() }];
                let written = retry(|| store.append(claim, after, events.clone())).await;
                assert!(matches!(written, Appended::Written(_)), "{claim:?}: {written:?}");
                held[index].1 += 1;
                acknowledged.lock().unwrap().events.push((claim.task, after + 1, text));
            }
            80..97 => {
                let (claim, after) = held.swap_remove(rng.usize(..held.len()));
                finish(&*store, claim, after, &acknowledged).await;
            }
            97.. => {
                let (claim, _) = held.swap_remove(rng.usize(..held.len()));
                let now = SystemClock.now();
                let release =
                    Release { reason: "test".to_owned(), due: now, now, counts_as_lost: false };
                // If the reply was lost, the repetition returns `Lost`; either way the claim is gone.
                retry(|| store.release(claim, release.clone())).await;
            }
        }
    }
    for (claim, after) in held {
        finish(&*store, claim, after, &acknowledged).await;
    }
}

async fn finish(store: &dyn Store, claim: Claim, after: u64, acknowledged: &Mutex<Acknowledged>) {
    let end = Finish {
        status: TaskStatus::Completed,
        result: json!({ "steps": [] }),
        error: None,
        took: Duration::from_millis(1),
        events: Vec::new(),
        after,
        now: SystemClock.now(),
    };
    let finished = retry(|| store.finish(claim, end.clone())).await;
    let Finished::Done { status, .. } = finished else { panic!("{claim:?}: {finished:?}") };
    acknowledged.lock().unwrap().finished.push((claim.task, status));
}

/// Repeats an operation until it succeeds, for at most 30 s.
pub async fn retry<T, E, F>(operation: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, E>>,
{
    for _ in 0..600 {
        match operation().await {
            Ok(reply) => return reply,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    panic!("the store stayed unavailable");
}

/// Runs `clients` clients on each store at once. Returns all acknowledged operations.
pub async fn stress(
    stores: &[Arc<dyn Store>],
    clients: usize,
    steps: usize,
    seed: u64,
) -> Acknowledged {
    let mut workspaces = Vec::new();
    for _ in 0..3 {
        workspaces.push(workspace(&*stores[0]).await);
    }
    let acknowledged = Arc::new(Mutex::new(Acknowledged::default()));
    let running: Vec<_> = stores
        .iter()
        .flat_map(|store| std::iter::repeat_n(store, clients))
        .zip(seed * 1000..)
        .map(|(store, seed)| {
            let store = Arc::clone(store);
            let acknowledged = Arc::clone(&acknowledged);
            tokio::spawn(run_client(store, workspaces.clone(), acknowledged, seed, steps))
        })
        .collect();
    for client in running {
        client.await.unwrap();
    }
    Arc::into_inner(acknowledged).expect("all clients have ended").into_inner().unwrap()
}

/// Panics unless every acknowledged operation is in the store exactly once, and the counts agree.
pub async fn check(store: &dyn Store, acknowledged: &Acknowledged) {
    let mut live = 0;
    for id in &acknowledged.submitted {
        let task = store.task(*id).await.unwrap().expect("no acknowledged task is lost");
        live += u64::from(!task.status.is_terminal());
        let events = all_events(store, *id).await;
        let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
        assert_eq!(numbers, (1..=task.last_event).collect::<Vec<_>>(), "{id}");
        let ends = events.iter().filter(|event| event.is_last()).count();
        assert_eq!(ends, usize::from(task.status.is_terminal()), "{id}");
        let lines: HashSet<_> = events.iter().map(|event| event.data["line"].to_string()).collect();
        let log_lines = events.iter().filter(|event| event.kind == EventKind::LogLine).count();
        assert_eq!(lines.len() - usize::from(log_lines < events.len()), log_lines, "{id}: doubled");
    }
    for (id, number, text) in &acknowledged.events {
        let event = &store.events(*id, number - 1, 1).await.unwrap()[0];
        assert_eq!(event.data["line"], json!(text), "{id}/{number}");
    }
    for (id, status) in &acknowledged.finished {
        assert_eq!(store.task(*id).await.unwrap().unwrap().status, *status, "{id}");
    }
    let counts = store.counts().await.unwrap();
    assert_eq!(counts.queued + counts.running, live, "{counts:?}");
}
