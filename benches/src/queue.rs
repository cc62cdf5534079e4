//! The durable queue in one file.

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
use crate::measure::{interleave, timed};
use crate::report::{Budget, Row};

const SUBMITTERS: usize = 8;
const WORKERS: usize = 16;
const SLOWEST: Duration = Duration::from_micros(600);
const LEAST_TASKS_PER_SECOND: f64 = 6000.0;

/// What is written at least: that the task is there, and that it is over.
const PLAIN_WRITES: usize = 2;

/// A record of the size that a task and its events have.
const PLAIN_BYTES: usize = 600;

pub(crate) fn rows(ground: &Ground) -> Result<Vec<Row>, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let directory = ground.directory("queue")?;
    let store: Arc<dyn Store> =
        Arc::new(Sqlite::open(&SqliteOptions { path: directory.join("queue.db") })?);
    let workspace = runtime.block_on(workspace(&*store))?;
    Ok(vec![
        one_by_one(ground, &runtime, &store, workspace, &directory)?,
        all_at_once(ground, &runtime, &store, workspace, &directory)?,
    ])
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
    ground: &Ground,
    runtime: &Runtime,
    store: &Arc<dyn Store>,
    workspace: WorkspaceId,
    directory: &Path,
) -> Result<Row, Fault> {
    let mut file = File::create(directory.join("plain"))?;
    let record = [b'x'; PLAIN_BYTES];
    let plain = || {
        timed(|| {
            for _ in 0..PLAIN_WRITES {
                file.write_all(&record)?;
                file.sync_data()?;
            }
            Ok::<_, std::io::Error>(())
        })
    };
    let carrel = || {
        let begun = Instant::now();
        runtime.block_on(async {
            let (claimed, submitted) =
                tokio::join!(claim_and_finish(&**store), submit(&**store, workspace));
            claimed.and(submitted)
        })?;
        Ok(begun.elapsed())
    };
    let pair = interleave(ground.pace.slow, plain, carrel)?;
    let work = "embedded queue, submit → complete; two appends with fdatasync";
    Ok(Row::new(work, pair, Budget::Time(SLOWEST)))
}

fn all_at_once(
    ground: &Ground,
    runtime: &Runtime,
    store: &Arc<dyn Store>,
    workspace: WorkspaceId,
    directory: &Path,
) -> Result<Row, Fault> {
    let each = ground.pace.calls;
    let all = SUBMITTERS * each;
    let plain = appends_per_second(directory, each)?;
    let elapsed = runtime.block_on(async {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
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
                let store = Arc::clone(store);
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
    let work = format!(
        "embedded queue, tasks per second of {SUBMITTERS} submitters; one append with fdatasync at a time"
    );
    Ok(Row::rate(work, plain, carrel, Budget::Rate(LEAST_TASKS_PER_SECOND)))
}

fn appends_per_second(directory: &Path, count: usize) -> Result<f64, Fault> {
    let mut file = File::create(directory.join("appended"))?;
    let record = [b'x'; PLAIN_BYTES];
    let begun = Instant::now();
    for _ in 0..count {
        file.write_all(&record)?;
        file.sync_data()?;
    }
    #[expect(clippy::cast_precision_loss, reason = "a few thousand writes")]
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    Ok(rate)
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
        repeat: None,
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
