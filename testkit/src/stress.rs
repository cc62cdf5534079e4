//! Many at once on stores that share their memory, and what has to hold afterwards.

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

/// What those who take part have been told.
#[derive(Debug, Default)]
pub struct Acknowledged {
    /// Tasks that were acknowledged.
    pub submitted: HashSet<TaskId>,
    /// Claims that were given to somebody.
    pub claimed: HashSet<Claim>,
    /// Ends that were acknowledged.
    pub finished: Vec<(TaskId, TaskStatus)>,
    /// News that was acknowledged: the task, the number, and its text.
    pub news: Vec<(TaskId, u64, String)>,
}

/// Works on a store until there is nothing to do or until the steps are done, as several workers and
/// submitters of one process would. Whatever is away is tried again.
pub async fn take_part(
    store: Arc<dyn Store>,
    workspaces: Vec<WorkspaceId>,
    told: Arc<Mutex<Acknowledged>>,
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
                let made = insist(|| store.submit(new.clone())).await;
                assert!(matches!(made, Submission::Created(..)), "{made:?}");
                told.lock().unwrap().submitted.insert(new.id);
            }
            40..70 => {
                let name = format!("w{seed}");
                let now = SystemClock.now();
                let claimed = insist(|| store.try_claim(claim_request(&name), now)).await;
                let Some(Claimed { claim, task, .. }) = claimed else { continue };
                let first = told.lock().unwrap().claimed.insert(claim);
                assert!(first, "{claim:?} was given to two");
                held.push((claim, task.last_event));
            }
            _ if held.is_empty() => {}
            70..80 => {
                let place = rng.usize(..held.len());
                let (claim, after) = held[place];
                let text = format!("{seed}/{step}");
                let data = json!({ "line": text });
                let news = vec![NewEvent { kind: EventKind::LogLine, data, at: SystemClock.now() }];
                let written = insist(|| store.append(claim, after, news.clone())).await;
                assert!(matches!(written, Appended::Written(_)), "{claim:?}: {written:?}");
                held[place].1 += 1;
                told.lock().unwrap().news.push((claim.task, after + 1, text));
            }
            80..97 => {
                let (claim, after) = held.swap_remove(rng.usize(..held.len()));
                end(&*store, claim, after, &told).await;
            }
            97.. => {
                let (claim, _) = held.swap_remove(rng.usize(..held.len()));
                let now = SystemClock.now();
                let back = Release { reason: "test".to_owned(), due: now, now, counts: false };
                // If the answer was lost, the second one says so; either way it is not held.
                insist(|| store.release(claim, back.clone())).await;
            }
        }
    }
    for (claim, after) in held {
        end(&*store, claim, after, &told).await;
    }
}

async fn end(store: &dyn Store, claim: Claim, after: u64, told: &Mutex<Acknowledged>) {
    let finish = Finish {
        status: TaskStatus::Completed,
        result: json!({ "steps": [] }),
        error: None,
        took: Duration::from_millis(1),
        events: Vec::new(),
        after,
        now: SystemClock.now(),
    };
    let finished = insist(|| store.finish(claim, finish.clone())).await;
    let Finished::Done { status, .. } = finished else { panic!("{claim:?}: {finished:?}") };
    told.lock().unwrap().finished.push((claim.task, status));
}

/// Asks again until there is an answer.
pub async fn insist<T, E, F>(ask: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, E>>,
{
    for _ in 0..600 {
        match ask().await {
            Ok(answer) => return answer,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    panic!("no answer, however often it was asked for");
}

/// Lets several take part on each store at once. Returns what they were told.
pub async fn stress(
    stores: &[Arc<dyn Store>],
    each: usize,
    steps: usize,
    seed: u64,
) -> Acknowledged {
    let mut workspaces = Vec::new();
    for _ in 0..3 {
        workspaces.push(workspace(&*stores[0]).await);
    }
    let told = Arc::new(Mutex::new(Acknowledged::default()));
    let taking: Vec<_> = stores
        .iter()
        .flat_map(|store| std::iter::repeat_n(store, each))
        .zip(seed * 1000..)
        .map(|(store, seed)| {
            let (store, told) = (Arc::clone(store), Arc::clone(&told));
            tokio::spawn(take_part(store, workspaces.clone(), told, seed, steps))
        })
        .collect();
    for taking in taking {
        taking.await.unwrap();
    }
    Arc::into_inner(told).expect("nobody is left").into_inner().unwrap()
}

/// Looks whether everything that was acknowledged is there, once.
pub async fn holds(store: &dyn Store, told: &Acknowledged) {
    let mut live = 0;
    for id in &told.submitted {
        let task = store.task(*id).await.unwrap().expect("no acknowledged task is lost");
        live += u64::from(!task.status.is_terminal());
        let events = all_events(store, *id).await;
        let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
        assert_eq!(numbers, (1..=task.last_event).collect::<Vec<_>>(), "{id}");
        let ends = events.iter().filter(|event| event.is_last()).count();
        assert_eq!(ends, usize::from(task.status.is_terminal()), "{id}");
        let lines: HashSet<_> = events.iter().map(|event| event.data["line"].to_string()).collect();
        let told_lines = events.iter().filter(|event| event.kind == EventKind::LogLine).count();
        assert_eq!(
            lines.len() - usize::from(told_lines < events.len()),
            told_lines,
            "{id}: doubled"
        );
    }
    for (id, number, text) in &told.news {
        let event = &store.events(*id, number - 1, 1).await.unwrap()[0];
        assert_eq!(event.data["line"], json!(text), "{id}/{number}");
    }
    for (id, status) in &told.finished {
        assert_eq!(store.task(*id).await.unwrap().unwrap().status, *status, "{id}");
    }
    let counts = store.counts().await.unwrap();
    assert_eq!(counts.queued + counts.running, live, "{counts:?}");
}
