//! Ending a task early, and workers that stop or vanish.

use std::time::{Duration, Instant};

use carrel_domain::{Clock as _, Code, Coded as _, SystemClock, TaskStatus};
use carrel_service::{Cancelled, ServiceError, WorkerOptions};
use carrel_store::{ClaimRequest, WorkerId};
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, is_line, statuses, steps};

/// The promise is a second; the rest is for a busy machine.
const PROMPTLY: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_running_step_is_cancelled_within_a_second_and_keeps_what_it_printed() {
    let lab = Lab::new().await;
    let _working = lab.work();
    let id = lab
        .submit(json!({ "steps": [
            { "action": "shell", "command": "echo begun; sleep 300" },
            { "action": "shell", "command": "touch never" },
        ]}))
        .await;
    lab.until(id, is_line("begun")).await;
    let asked = Instant::now();
    assert_eq!(lab.tasks.cancel(id).await.unwrap(), Cancelled::Requested);
    let (task, events) = lab.end_of(id).await;
    assert!(asked.elapsed() < PROMPTLY, "{:?}", asked.elapsed());
    assert_eq!(task.status, TaskStatus::Cancelled);
    assert_eq!(steps(&task)[0].1, "cancelled");
    assert_eq!(steps(&task)[1].1, "skipped");
    assert_eq!(statuses(&events).last(), Some(&"cancelled"));
    let again = lab.tasks.cancel(id).await.unwrap_err();
    assert_eq!(again.code(), Code::TaskFinished);
    assert!(matches!(again, ServiceError::Finished { status: TaskStatus::Cancelled, .. }));
    assert!(!lab.path("never").exists());
}

#[tokio::test]
async fn a_waiting_task_is_cancelled_without_a_worker() {
    let lab = Lab::new().await;
    let id = lab.submit(json!({ "steps": [{ "action": "shell", "command": "true" }] })).await;
    assert_eq!(lab.tasks.cancel(id).await.unwrap(), Cancelled::Done);
    let (task, events) = lab.end_of(id).await;
    assert_eq!((task.status, task.attempt), (TaskStatus::Cancelled, 0));
    assert_eq!(statuses(&events), ["queued", "cancelled"]);
}

#[tokio::test]
async fn a_worker_that_stops_lets_short_tasks_end_and_gives_long_ones_back() {
    let lab = Lab::new().await;
    let options = WorkerOptions { drain: Duration::from_secs(2), ..WorkerOptions::new(2) };
    let working = lab.work_as(options);
    let step = |command| json!({ "steps": [{ "action": "shell", "command": command }] });
    let short = lab.submit(step("echo begun; sleep 0.5")).await;
    let long = lab.submit(step("echo begun; sleep 300")).await;
    lab.until(short, is_line("begun")).await;
    lab.until(long, is_line("begun")).await;
    working.stop.cancel();
    working.done.await.unwrap();
    let status = async |id| lab.tasks.find(lab.workspace, id).await.unwrap().status;
    assert_eq!(status(short).await, TaskStatus::Completed);
    assert_eq!(status(long).await, TaskStatus::Queued);
    let next = lab.work();
    lab.until(long, |event| event.data["attempt"] == 2).await;
    lab.tasks.cancel(long).await.unwrap();
    assert_eq!(lab.end_of(long).await.0.status, TaskStatus::Cancelled);
    next.stop.cancel();
    next.done.await.unwrap();
}

#[tokio::test]
async fn the_task_of_a_worker_that_vanished_is_taken_over() {
    let lab = Lab::new().await;
    let id = lab.submit(json!({ "steps": [{ "action": "shell", "command": "true" }] })).await;
    let lease = Duration::from_millis(100);
    let vanished = WorkerId("vanished".to_owned());
    let volume = lab.workspaces.volume();
    let request = ClaimRequest { worker: vanished, lease, per_workspace: 1, volume };
    let claimed = lab.tasks.store().claim(request).await.unwrap();
    assert_eq!(claimed.claim.task, id);
    let sweep = CancellationToken::new();
    let sweeping = tokio::spawn(lab.sweep().run(sweep.clone()));
    let next = lab.work();
    let (task, events) = lab.end_of(id).await;
    assert_eq!((task.status, task.attempt), (TaskStatus::Completed, 2), "{task:?}");
    assert_eq!(statuses(&events), ["queued", "running", "queued", "running", "completed"]);
    sweep.cancel();
    sweeping.await.unwrap();
    next.stop.cancel();
    next.done.await.unwrap();
}

#[tokio::test]
async fn a_worker_that_lost_its_task_ends_what_it_runs_and_writes_nothing() {
    let lab = Lab::new().await;
    let slow = WorkerOptions { heartbeat: Duration::from_millis(100), ..WorkerOptions::new(1) };
    let working = lab.work_as(slow);
    let command = "echo begun; sleep 2; touch late";
    let id = lab.submit(json!({ "steps": [{ "action": "shell", "command": command }] })).await;
    lab.until(id, is_line("begun")).await;
    let far = SystemClock.now().after(Duration::from_hours(1));
    lab.tasks.store().release_expired(far, |_| Duration::from_hours(1)).await.unwrap();
    working.stop.cancel();
    working.done.await.unwrap();
    let task = lab.tasks.find(lab.workspace, id).await.unwrap();
    assert_eq!((task.status, task.attempt), (TaskStatus::Queued, 1));
    assert!(!lab.path("late").exists(), "the command was ended");
}
