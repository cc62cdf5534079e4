//! A model of the queue in plain code, and random histories that compare a store with it.
//!
//! The model knows for each task its status, attempt, lease and number of events, and nothing of transactions.
//! A history is a sequence of random operations from a seed; after each the reply of the store must be the
//! one of the model, and in the end all rows and events must agree. A failure names the seed and the step.

use std::collections::BTreeMap;
use std::time::Duration;

use carrel_domain::{Priority, TaskId, TaskStatus, Timestamp, VolumeId, WorkspaceId};
use carrel_store::{
    Appended, Cancellation, Claim, EventKind, Finished, Heartbeat, NewEvent, Release, Released,
    Store, Submission,
};
use fastrand::Rng;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::store::{LEASE, all_events, at, claim_request_on, end, new_task, workspace};

/// Operations of one history.
pub const STEPS: usize = 400;

/// The variable with the number of histories of a long run.
const SEEDS: &str = "CARREL_HISTORIES";

const DEFAULT_HISTORIES: u64 = 5;

const DELAY: Duration = Duration::from_secs(7);

/// Returns the seeds of a run.
#[expect(clippy::disallowed_methods, reason = "tests have settings of their own")]
pub fn seeds() -> std::ops::Range<u64> {
    let many = std::env::var(SEEDS).ok().and_then(|text| text.parse().ok());
    0..many.unwrap_or(DEFAULT_HISTORIES)
}

#[derive(Clone, Debug)]
struct Expected {
    workspace: WorkspaceId,
    priority: Priority,
    order: usize,
    status: TaskStatus,
    attempt: u32,
    lost: u32,
    due: Timestamp,
    lease: Timestamp,
    cancel: bool,
    events: u64,
}

#[derive(Debug, Default)]
struct Model {
    tasks: BTreeMap<TaskId, Expected>,
    placed: BTreeMap<WorkspaceId, VolumeId>,
}

impl Model {
    fn holds(&self, claim: Claim) -> bool {
        self.tasks
            .get(&claim.task)
            .is_some_and(|task| task.status == TaskStatus::Running && task.attempt == claim.attempt)
    }

    /// Returns the next task of each workspace that a worker of the volume may claim. Which workspace is next
    /// is left to the store.
    fn next(&self, volume: VolumeId, now: Timestamp) -> BTreeMap<WorkspaceId, TaskId> {
        let mut best: BTreeMap<WorkspaceId, (Priority, usize, TaskId)> = BTreeMap::new();
        for (id, task) in &self.tasks {
            let elsewhere = self.placed.get(&task.workspace).is_some_and(|own| *own != volume);
            if task.status != TaskStatus::Queued || task.due > now || elsewhere {
                continue;
            }
            let candidate = (task.priority, task.order, *id);
            let entry = best.entry(task.workspace).or_insert(candidate);
            *entry = (*entry).min(candidate);
        }
        best.into_iter().map(|(workspace, (.., id))| (workspace, id)).collect()
    }

    fn release(&mut self, id: TaskId, due: Timestamp, counts_as_lost: bool) {
        let task = self.tasks.get_mut(&id).expect("the task is known");
        task.lost += u32::from(counts_as_lost);
        task.events += 1;
        task.due = due;
        task.status = if task.cancel {
            TaskStatus::Cancelled
        } else if task.lost >= 3 {
            TaskStatus::Dead
        } else {
            TaskStatus::Queued
        };
        // A dead task has an error event before the terminal one.
        task.events += u64::from(task.status == TaskStatus::Dead);
    }
}

/// Plays a random history on stores that share a database, and compares every reply with the model.
#[expect(clippy::too_many_lines, reason = "one arm for each operation")]
pub async fn play(stores: &[&dyn Store], seed: u64, steps: usize) {
    let store = stores[0];
    let mut rng = Rng::with_seed(seed);
    let mut model = Model::default();
    let mut workspaces = Vec::new();
    for _ in 0..3 {
        workspaces.push(workspace(store).await);
    }
    let volumes = [VolumeId::generate(), VolumeId::generate()];
    let mut claims: Vec<Claim> = Vec::new();
    let mut now = 0;
    for order in 0..steps {
        now += rng.i64(0..4);
        let claim = rng.choice(&claims).copied();
        let store = stores[rng.usize(..stores.len())];
        match (rng.u8(0..100), claim) {
            (0..25, _) => {
                let workspace = workspaces[rng.usize(..workspaces.len())];
                let priority = Priority::ALL[rng.usize(..4)];
                let new = new_task(workspace, priority, at(now));
                let made = store.submit(new.clone()).await.unwrap();
                assert!(matches!(made, Submission::Created(..)), "{seed}/{order}: {made:?}");
                if rng.bool() {
                    assert_eq!(store.submit(new.clone()).await.unwrap(), made, "{seed}/{order}");
                }
                let expected = Expected {
                    workspace,
                    priority,
                    order,
                    status: TaskStatus::Queued,
                    attempt: 0,
                    lost: 0,
                    due: at(now),
                    lease: at(now),
                    cancel: false,
                    events: 1,
                };
                model.tasks.insert(new.id, expected);
            }
            (25..50, _) => {
                let volume = volumes[rng.usize(..volumes.len())];
                let next = model.next(volume, at(now));
                let claimed =
                    store.try_claim(claim_request_on("w", volume), at(now)).await.unwrap();
                assert_eq!(claimed.is_some(), !next.is_empty(), "{seed}/{order}");
                let Some(claimed) = claimed else { continue };
                let id = claimed.claim.task;
                assert_eq!(next.get(&claimed.task.workspace), Some(&id), "{seed}/{order}");
                model.placed.insert(claimed.task.workspace, volume);
                let task = model.tasks.get_mut(&id).unwrap();
                task.status = TaskStatus::Running;
                task.attempt += 1;
                task.events += 1;
                task.lease = at(now).after(LEASE);
                assert_eq!(claimed.claim.attempt, task.attempt, "{seed}/{order}");
                claims.push(claimed.claim);
            }
            (50..60, Some(claim)) => {
                let until = at(now).after(LEASE);
                let heartbeat = store.heartbeat(claim, until).await.unwrap();
                let expected = if model.holds(claim) {
                    let task = model.tasks.get_mut(&claim.task).unwrap();
                    task.lease = task.lease.max(until);
                    Heartbeat::Held { cancel_requested: task.cancel }
                } else {
                    Heartbeat::Lost
                };
                assert_eq!(heartbeat, expected, "{seed}/{order}");
            }
            (60..68, Some(claim)) => {
                let event = NewEvent {
                    kind: EventKind::LogLine,
                    data: json!({ "line": order }),
                    at: at(now),
                };
                let after = model.tasks[&claim.task].events;
                let appended = store.append(claim, after, vec![event.clone()]).await.unwrap();
                let held = model.holds(claim);
                assert_eq!(matches!(appended, Appended::Written(_)), held, "{seed}/{order}");
                if rng.bool() {
                    let again = store.append(claim, after, vec![event]).await.unwrap();
                    assert_eq!(again, appended, "{seed}/{order}");
                }
                if held {
                    model.tasks.get_mut(&claim.task).unwrap().events += 1;
                }
            }
            (68..80, Some(claim)) => {
                let ends = [TaskStatus::Completed, TaskStatus::Failed, TaskStatus::TimedOut];
                let status = ends[rng.usize(..ends.len())];
                let end = end(model.tasks[&claim.task].events, status, now);
                let finished = store.finish(claim, end.clone()).await.unwrap();
                if rng.bool() {
                    let again = store.finish(claim, end).await.unwrap();
                    assert_eq!(again, finished, "{seed}/{order}");
                }
                if model.holds(claim) {
                    let task = model.tasks.get_mut(&claim.task).unwrap();
                    task.status = if task.cancel { TaskStatus::Cancelled } else { status };
                    task.events += 1;
                    let Finished::Done { status, .. } = finished else {
                        panic!("{seed}/{order}: {finished:?}");
                    };
                    assert_eq!(status, task.status, "{seed}/{order}");
                } else {
                    assert_eq!(finished, Finished::Lost, "{seed}/{order}");
                }
            }
            (80..86, Some(claim)) => {
                let counts_as_lost = rng.bool();
                let due = at(now + rng.i64(0..10));
                let reason = "test".to_owned();
                let release = Release { reason, due, now: at(now), counts_as_lost };
                let released = store.release(claim, release).await.unwrap();
                if model.holds(claim) {
                    model.release(claim.task, due, counts_as_lost);
                    let Released::Done { status, .. } = released else {
                        panic!("{seed}/{order}: {released:?}");
                    };
                    assert_eq!(status, model.tasks[&claim.task].status, "{seed}/{order}");
                } else {
                    assert_eq!(released, Released::Lost, "{seed}/{order}");
                }
            }
            (86..88, _) => {
                let ids: Vec<_> = model.tasks.keys().copied().collect();
                let Some(id) = rng.choice(&ids).copied() else { continue };
                let events = store.fail_queued(id, "test", at(now)).await.unwrap();
                let task = model.tasks.get_mut(&id).unwrap();
                assert_eq!(events.is_some(), task.status == TaskStatus::Queued, "{seed}/{order}");
                if events.is_some() {
                    task.status = TaskStatus::Failed;
                    task.events += 2;
                }
            }
            (88..94, _) => {
                let ids: Vec<_> = model.tasks.keys().copied().collect();
                let Some(id) = rng.choice(&ids).copied() else { continue };
                let cancellation = store.cancel(id, at(now)).await.unwrap();
                let task = model.tasks.get_mut(&id).unwrap();
                match task.status {
                    TaskStatus::Queued => {
                        assert!(
                            matches!(cancellation, Cancellation::Cancelled(_)),
                            "{seed}/{order}"
                        );
                        task.status = TaskStatus::Cancelled;
                        task.events += 1;
                    }
                    TaskStatus::Running => {
                        assert_eq!(cancellation, Cancellation::Requested, "{seed}/{order}");
                        task.cancel = true;
                    }
                    over => {
                        assert_eq!(cancellation, Cancellation::Finished(over), "{seed}/{order}");
                    }
                }
            }
            (94.., _) => {
                now += rng.i64(0..40);
                store.release_expired(at(now), |_| DELAY).await.unwrap();
                let expired = model.tasks.iter().filter(|(_, task)| {
                    task.status == TaskStatus::Running && task.lease <= at(now)
                });
                let expired: Vec<_> = expired.map(|(id, _)| *id).collect();
                for id in expired {
                    model.release(id, at(now).after(DELAY), true);
                }
            }
            (_, None) => {}
        }
    }
    for workspace in workspaces {
        let volume = store.workspace(workspace).await.unwrap().unwrap().volume;
        assert_eq!(volume.as_ref(), model.placed.get(&workspace), "{seed}");
    }
    for (id, expected) in &model.tasks {
        agrees(store, seed, *id, expected).await;
    }
}

async fn agrees(store: &dyn Store, seed: u64, id: TaskId, expected: &Expected) {
    let task = store.task(id).await.unwrap().expect("no task is lost");
    assert_eq!(
        (task.status, task.attempt, task.last_event),
        (expected.status, expected.attempt, expected.events),
        "{seed}: {id}"
    );
    let events = all_events(store, id).await;
    let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=expected.events).collect::<Vec<_>>(), "{seed}: {id}");
    let ends: Vec<_> = events.iter().filter(|event| event.is_last()).collect();
    assert_eq!(ends.len(), usize::from(task.status.is_terminal()), "{seed}: {id}");
    assert_eq!(events.last().unwrap().is_last(), task.status.is_terminal(), "{seed}: {id}");
}
