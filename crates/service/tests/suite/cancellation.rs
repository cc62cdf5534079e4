//! Ending a task early, and workers that stop or vanish.

use std::time::{Duration, Instant};

use carrel_domain::{Clock as _, Code, Coded as _, SystemClock, TaskStatus};
use carrel_service::{Cancelled, ServiceError, WorkerOptions};
use carrel_store::{ClaimRequest, WorkerId};
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::test_environment::{TestEnvironment, is_line, statuses, steps};

/// The promise is a second; the rest is for a busy machine.
const PROMPTLY: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_running_step_is_cancelled_within_a_second_and_keeps_what_it_printed() {
    let test_env = TestEnvironment::new().await;
    let _working = test_env.work();
    let id = test_env
        .submit(json!({ "steps": [
            { "action": "shell", "command": "echo begun; sleep 300" },
            { "action": "shell", "command": "touch never" },
        ]}))
        .await;
    test_env.until(id, is_line("begun")).await;
    let asked = Instant::now();
    assert_eq!(test_env.tasks.cancel(id).await.unwrap(), Cancelled::Requested);
    let (task, events) = test_env.end_of(id).await;
    assert!(asked.elapsed() < PROMPTLY, "{:?}", asked.elapsed());
    assert_eq!(task.status, TaskStatus::Cancelled);
    assert_eq!(steps(&task)[0].1, "cancelled");
    assert_eq!(steps(&task)[1].1, "skipped");
    assert_eq!(statuses(&events).last(), Some(&"cancelled"));
    let again = test_env.tasks.cancel(id).await.unwrap_err();
    assert_eq!(again.code(), Code::TaskFinished);
    assert!(matches!(again, ServiceError::Finished { status: TaskStatus::Cancelled, .. }));
    assert!(!test_env.path("never").exists());
}

#[tokio::test]
async fn a_waiting_task_is_cancelled_without_a_worker() {
    let test_env = TestEnvironment::new().await;
    let id = test_env.submit(json!({ "steps": [{ "action": "shell", "command": "true" }] })).await;
    assert_eq!(test_env.tasks.cancel(id).await.unwrap(), Cancelled::Done);
    let (task, events) = test_env.end_of(id).await;
    assert_eq!((task.status, task.attempt), (TaskStatus::Cancelled, 0));
    assert_eq!(statuses(&events), ["queued", "cancelled"]);
}

#[tokio::test]
async fn a_worker_that_stops_lets_short_tasks_end_and_gives_long_ones_back() {
    let test_env = TestEnvironment::new().await;
    let options = WorkerOptions { drain: Duration::from_secs(2), ..WorkerOptions::new(2) };
    let working = test_env.work_as(options);
    let step = |command| json!({ "steps": [{ "action": "shell", "command": command }] });
    let short = test_env.submit(step("echo begun; sleep 0.5")).await;
    let long = test_env.submit(step("echo begun; sleep 300")).await;
    test_env.until(short, is_line("begun")).await;
    test_env.until(long, is_line("begun")).await;
    working.stop.cancel();
    working.done.await.unwrap();
    let status = async |id| test_env.tasks.find(test_env.workspace, id).await.unwrap().status;
    assert_eq!(status(short).await, TaskStatus::Completed);
    assert_eq!(status(long).await, TaskStatus::Queued);
    let next = test_env.work();
    test_env.until(long, |event| event.data["attempt"] == 2).await;
    test_env.tasks.cancel(long).await.unwrap();
    assert_eq!(test_env.end_of(long).await.0.status, TaskStatus::Cancelled);
    next.stop.cancel();
    next.done.await.unwrap();
}

#[tokio::test]
async fn the_task_of_a_worker_that_vanished_is_taken_over() {
    let test_env = TestEnvironment::new().await;
    let id = test_env.submit(json!({ "steps": [{ "action": "shell", "command": "true" }] })).await;
    let lease = Duration::from_millis(100);
    let vanished = WorkerId("vanished".to_owned());
    let volume = test_env.workspaces.volume();
    let request = ClaimRequest { worker: vanished, lease, per_workspace: 1, volume };
    let claimed = test_env.tasks.store().claim(request).await.unwrap();
    assert_eq!(claimed.claim.task, id);
    let sweep = CancellationToken::new();
    let sweeping = tokio::spawn(test_env.sweep().run(sweep.clone()));
    let next = test_env.work();
    let (task, events) = test_env.end_of(id).await;
    assert_eq!((task.status, task.attempt), (TaskStatus::Completed, 2), "{task:?}");
    assert_eq!(statuses(&events), ["queued", "running", "queued", "running", "completed"]);
    sweep.cancel();
    sweeping.await.unwrap();
    next.stop.cancel();
    next.done.await.unwrap();
}

#[tokio::test]
async fn a_worker_that_lost_its_task_ends_what_it_runs_and_writes_nothing() {
    let test_env = TestEnvironment::new().await;
    let slow = WorkerOptions { heartbeat: Duration::from_millis(100), ..WorkerOptions::new(1) };
    let working = test_env.work_as(slow);
    let command = "echo begun; sleep 2; touch late";
    let id = test_env.submit(json!({ "steps": [{ "action": "shell", "command": command }] })).await;
    test_env.until(id, is_line("begun")).await;
    let far = SystemClock.now().after(Duration::from_hours(1));
    test_env.tasks.store().release_expired(far, |_| Duration::from_hours(1)).await.unwrap();
    working.stop.cancel();
    working.done.await.unwrap();
    let task = test_env.tasks.find(test_env.workspace, id).await.unwrap();
    assert_eq!((task.status, task.attempt), (TaskStatus::Queued, 1));
    assert!(!test_env.path("late").exists(), "the command was ended");
}
