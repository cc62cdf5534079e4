//! The durable queue, against plain writes and against other queues.

mod beanstalkd;
mod peers;
mod scaled;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_domain::{
    Clock as _, Layout, Priority, SystemClock, TaskId, TaskStatus, VolumeId, WorkspaceId,
};
use carrel_store::{
    ClaimRequest, Finish, NewTask, Sqlite, SqliteOptions, Store, Submission, WorkerId, Workspace,
};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::Fault;
use crate::ground::Ground;
use crate::measure::{Pair, Samples, alone, timed};
use crate::report::{Budget, Row};

const SUBMITTERS: usize = 8;
const WORKERS: usize = 16;
const SLOWEST: Duration = Duration::from_micros(600);
const LEAST_TASKS_PER_SECOND: f64 = 6000.0;

/// What is written at least: that the task is there, and that it is over.
const PLAIN_WRITES: usize = 2;

/// A record of the size that a task and its events have.
const PLAIN_BYTES: usize = 600;

/// What was found out about a queue.
struct Measured {
    /// From handing in a task until it is done, one after the other.
    times: Samples,
    /// Tasks handed in by several and done in a second.
    per_second: f64,
}

pub(crate) fn rows(ground: &Ground) -> Result<Vec<Row>, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let directory = ground.directory("queue")?;
    let store: Arc<dyn Store> =
        Arc::new(Sqlite::open(&SqliteOptions { path: directory.join("queue.db") })?);
    let pace = ground.pace;
    let all = SUBMITTERS * pace.calls;
    let plain = appends(&directory, pace.slow, pace.calls)?;
    let other = beanstalkd::measure(&directory, pace.slow, all)?;
    let carrel = measure(ground, &runtime, &store, &store)?;
    let mut rows = Vec::from(against(
        &carrel,
        plain,
        "embedded queue",
        "two appends with fdatasync, one at a time",
        [Budget::Time(SLOWEST), Budget::Rate(LEAST_TASKS_PER_SECOND)],
    ));
    if let Some(other) = other {
        let name = "beanstalkd with fsync";
        rows.extend(against(&carrel, other, "embedded queue", name, [Budget::None; 2]));
    }
    rows.extend(scaled::rows(ground, &runtime)?);
    Ok(rows)
}

/// Measures Carrel's queue, with one process that submits and one that works.
fn measure(
    ground: &Ground,
    runtime: &Runtime,
    submitting: &Arc<dyn Store>,
    working: &Arc<dyn Store>,
) -> Result<Measured, Fault> {
    let workspace = runtime.block_on(workspace(&**submitting))?;
    Ok(Measured {
        times: one_by_one(runtime, [submitting, working], workspace, ground.pace.slow)?,
        per_second: all_at_once(runtime, submitting, &[working], workspace, ground.pace.calls)?,
    })
}

/// Lays a queue beside another.
fn against(
    carrel: &Measured,
    other: Measured,
    queue: &str,
    name: &str,
    [time, rate]: [Budget; 2],
) -> [Row; 2] {
    let pair = Pair { plain: other.times, carrel: carrel.times.clone() };
    [
        Row::new(format!("{queue}, submit → complete; {name}"), pair, time),
        Row::rate(
            format!("{queue}, tasks per second of {SUBMITTERS} submitters; {name}"),
            other.per_second,
            carrel.per_second,
            rate,
        ),
    ]
}

/// Writes what has to be on the disk for a task at least.
fn appends(directory: &Path, rounds: usize, count: usize) -> Result<Measured, Fault> {
    let mut file = File::create(directory.join("appended"))?;
    let record = [b'x'; PLAIN_BYTES];
    let mut append = || {
        (0..PLAIN_WRITES).try_for_each(|_| {
            file.write_all(&record)?;
            file.sync_data()
        })
    };
    let times = alone(rounds, || timed(&mut append))?;
    let elapsed = timed(|| (0..count).try_for_each(|_| append()))?;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand writes")]
    let per_second = count as f64 / elapsed.as_secs_f64();
    Ok(Measured { times, per_second })
}

async fn workspace(store: &dyn Store) -> Result<WorkspaceId, Fault> {
    let id = WorkspaceId::generate();
    let workspace = Workspace {
        id,
        name: "bench".to_owned(),
        layout: Layout::Tenant,
        network: None,
        quota_bytes: 1 << 30,
        created_at: SystemClock.now(),
        volume: None,
    };
    store.add_workspace(workspace).await?;
    Ok(id)
}

fn one_by_one(
    runtime: &Runtime,
    [submitting, working]: [&Arc<dyn Store>; 2],
    workspace: WorkspaceId,
    rounds: usize,
) -> Result<Samples, Fault> {
    alone(rounds, || {
        timed(|| {
            runtime.block_on(async {
                let (claimed, submitted) =
                    tokio::join!(claim_and_finish(&**working), submit(&**submitting, workspace));
                claimed.and(submitted)
            })
        })
    })
}

/// Lets several submit and as many work, spread over the processes that work.
fn all_at_once(
    runtime: &Runtime,
    submitting: &Arc<dyn Store>,
    working: &[&Arc<dyn Store>],
    workspace: WorkspaceId,
    each: usize,
) -> Result<f64, Fault> {
    let all = SUBMITTERS * each;
    let elapsed = runtime.block_on(async {
        let workers: Vec<_> = (0..WORKERS)
            .zip(working.iter().cycle())
            .map(|(_, store)| {
                let store = Arc::clone(store);
                tokio::spawn(async move {
                    for _ in 0..all / WORKERS {
                        claim_and_finish(&*store).await?;
                    }
                    Ok::<_, Fault>(())
                })
            })
            .collect();
        let begun = Instant::now();
        let submitters: Vec<_> = (0..SUBMITTERS)
            .map(|_| {
                let store = Arc::clone(submitting);
                tokio::spawn(async move {
                    for _ in 0..each {
                        submit(&*store, workspace).await?;
                    }
                    Ok::<_, Fault>(())
                })
            })
            .collect();
        for task in submitters.into_iter().chain(workers) {
            task.await??;
        }
        Ok::<_, Fault>(begun.elapsed())
    })?;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand tasks")]
    let carrel = all as f64 / elapsed.as_secs_f64();
    Ok(carrel)
}

async fn submit(store: &dyn Store, workspace: WorkspaceId) -> Result<(), Fault> {
    let task = NewTask {
        id: TaskId::generate(),
        workspace,
        task_type: "bench".to_owned(),
        priority: Priority::Normal,
        configuration: json!({ "steps": [{ "action": "shell", "command": "true" }] }),
        timeout: Duration::from_mins(5),
        max_attempts: 3,
        correlation_id: None,
        now: SystemClock.now(),
        max_waiting: u64::MAX,
        idempotency_key: None,
    };
    match store.submit(task).await? {
        Submission::Created(..) => Ok(()),
        other => Err(format!("not queued: {other:?}").into()),
    }
}

async fn claim_and_finish(store: &dyn Store) -> Result<(), Fault> {
    let request = ClaimRequest {
        worker: WorkerId("bench".to_owned()),
        lease: Duration::from_secs(30),
        per_workspace: u32::MAX,
        volume: VolumeId::from_bytes([1; 16]),
    };
    let claimed = store.claim(request).await?;
    let finish = Finish {
        status: TaskStatus::Completed,
        result: json!({ "steps": [] }),
        error: None,
        took: Duration::ZERO,
        events: Vec::new(),
        after: claimed.task.last_event,
        now: SystemClock.now(),
    };
    store.finish(claimed.claim, finish).await?;
    Ok(())
}
