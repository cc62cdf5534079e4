//! How fast tasks pass through a PostgreSQL server that writes to the disk: submitted, claimed and
//! finished, with their events.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a measurement fails by panicking"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use carrel_domain::{Clock as _, Priority, Secret, SystemClock, TaskStatus, WorkspaceId};
use carrel_store::{Finish, NewTask, Postgres, PostgresOptions, Store, Submission};
use carrel_testkit::servers;
use carrel_testkit::store::{claim_request, new_task, workspace};
use serde_json::json;
use tokio::sync::Notify;

const WORKERS: usize = 64;
const TASKS: usize = 6000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let server = servers::PostgresServer::start_durable().await;
    for (submitters, stores) in [(1, 1), (8, 1), (64, 1), (8, 3), (64, 3)] {
        let url = server.database(None).await;
        let open = || Postgres::open(&PostgresOptions { url: Secret::new(url.clone()) }).unwrap();
        open().migrate().await.unwrap();
        // One store submits, and the others work; a single one does both.
        let stores: Vec<Arc<dyn Store>> =
            (0..stores).map(|_| Arc::new(open()) as Arc<dyn Store>).collect();
        let workspace = workspace(&*stores[0]).await;
        let latency = idle(&stores, workspace).await;
        let tasks = if submitters == 1 { TASKS / 6 } else { TASKS };
        let rate = pace(&stores, workspace, submitters, tasks).await;
        println!(
            "{submitters:>3} submitters, {} processes: {rate:>6.0} tasks/s; idle submit → running p50 {:.2} ms",
            stores.len(),
            latency.as_secs_f64() * 1e3
        );
    }
}

async fn submit(store: &dyn Store, workspace: WorkspaceId) {
    let new = new_task(workspace, Priority::Normal, SystemClock.now());
    let made = store.submit(NewTask { max_waiting: u64::MAX, ..new }).await.unwrap();
    assert!(matches!(made, Submission::Created(..)), "{made:?}");
}

async fn work(store: &dyn Store) {
    let claimed = store.claim(claim_request("w")).await.unwrap();
    let finish = Finish {
        status: TaskStatus::Completed,
        result: json!({ "steps": [] }),
        error: None,
        took: Duration::ZERO,
        events: Vec::new(),
        after: claimed.task.last_event,
        now: SystemClock.now(),
    };
    store.finish(claimed.claim, finish).await.unwrap();
}

/// Returns the middle of the times from a submission to its claim while nothing else is done.
async fn idle(stores: &[Arc<dyn Store>], workspace: WorkspaceId) -> Duration {
    let mut times = Vec::new();
    for _ in 0..200 {
        let begun = Instant::now();
        let claimed = async {
            let claimed = stores[stores.len() - 1].claim(claim_request("w")).await.unwrap();
            (begun.elapsed(), claimed)
        };
        let ((time, claimed), ()) = tokio::join!(claimed, submit(&*stores[0], workspace));
        times.push(time);
        let finish = Finish {
            status: TaskStatus::Completed,
            result: json!({}),
            error: None,
            took: Duration::ZERO,
            events: Vec::new(),
            after: claimed.task.last_event,
            now: SystemClock.now(),
        };
        stores[0].finish(claimed.claim, finish).await.unwrap();
    }
    times.sort();
    times[times.len() / 2]
}

async fn pace(
    stores: &[Arc<dyn Store>],
    workspace: WorkspaceId,
    submitters: usize,
    tasks: usize,
) -> f64 {
    let done = Arc::new((AtomicUsize::new(0), Notify::new()));
    let begun = Instant::now();
    let workers: Vec<_> = (0..WORKERS)
        .map(|number| {
            let first = usize::from(stores.len() > 1);
            let store = Arc::clone(&stores[first + number % (stores.len() - first)]);
            let done = Arc::clone(&done);
            tokio::spawn(async move {
                loop {
                    work(&*store).await;
                    if done.0.fetch_add(1, Ordering::Relaxed) + 1 == tasks {
                        done.1.notify_one();
                    }
                }
            })
        })
        .collect();
    for _ in 0..submitters {
        let store = Arc::clone(&stores[0]);
        tokio::spawn(async move {
            for _ in 0..=(tasks / submitters) {
                submit(&*store, workspace).await;
            }
        });
    }
    done.1.notified().await;
    workers.iter().for_each(tokio::task::JoinHandle::abort);
    tasks as f64 / begun.elapsed().as_secs_f64()
}
