//! Several processes that share a store and a Redis.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_domain::{TaskId, TaskStatus};
use carrel_service::repository::DEFAULT_HOSTS;
use carrel_service::{
    FollowItem, OnEnqueueFailure, ServiceError, Sweep, TaskSubmission, Tasks, Worker, WorkerOptions,
};
use carrel_store::{Event, EventKind};
use carrel_wire::TaskRequest;
use futures_util::StreamExt as _;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::redis::RedisServer;
use crate::test_environment::{DEADLINE, Joined, TestEnvironment, Working, is_line, statuses};

struct Scenario {
    test_env: TestEnvironment,
    redis: RedisServer,
    /// Takes requests.
    api: Joined,
    /// Runs tasks.
    worker: Joined,
}

impl Scenario {
    async fn new(failure: OnEnqueueFailure) -> Self {
        let (test_env, redis) = (TestEnvironment::new().await, RedisServer::start());
        let (api, worker) = (test_env.joined(&redis, failure), test_env.joined(&redis, failure));
        api.until_well(true).await;
        worker.until_well(true).await;
        Self { test_env, redis, api, worker }
    }

    async fn usual() -> Self {
        Self::new(OnEnqueueFailure::Keep).await
    }

    fn work(&self) -> Working {
        let options =
            WorkerOptions { heartbeat: Duration::from_millis(500), ..WorkerOptions::new(3) };
        let worker =
            Worker::new(options, self.worker.tasks.clone(), self.test_env.workspaces.clone());
        let stop = CancellationToken::new();
        let running = stop.clone();
        let done = tokio::spawn(async move { worker.run(running).await });
        Working { stop, done }
    }

    fn sweep(&self) -> Working {
        let sweep = Sweep::new(self.api.tasks.clone(), Duration::from_hours(1));
        let stop = CancellationToken::new();
        let done = tokio::spawn(sweep.run(stop.clone()));
        Working { stop, done }
    }

    async fn submit(&self, body: Value) -> Result<TaskId, ServiceError> {
        let request: TaskRequest = serde_json::from_value(body).unwrap();
        let submit = TaskSubmission::check(
            request,
            self.test_env.workspace,
            &DEFAULT_HOSTS.map(str::to_owned),
        )
        .unwrap();
        Ok(self.api.tasks.submit(submit, "test").await?.task.id)
    }

    async fn shell(&self, command: &str) -> TaskId {
        self.submit(json!({ "steps": [{ "action": "shell", "command": command }] })).await.unwrap()
    }

    /// Reads all events where requests are taken.
    async fn events(&self, id: TaskId) -> Vec<Arc<Event>> {
        timeout(DEADLINE, read(&self.api.tasks, id)).await.expect("the task ends soon")
    }
}

async fn read(tasks: &Tasks, id: TaskId) -> Vec<Arc<Event>> {
    let following = tasks.follow(id, 0).filter_map(async |followed| match followed {
        FollowItem::Event(event) => Some(event),
        FollowItem::Idle => None,
    });
    following.collect().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_submitted_in_one_process_runs_in_another_and_is_followed_in_the_first() {
    let scenario = Scenario::usual().await;
    let working = scenario.work();
    for _ in 0..5 {
        let id = scenario.shell("echo a").await;
        let events = scenario.events(id).await;
        assert_eq!(statuses(&events), ["queued", "running", "completed"]);
        let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
        assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    }
    assert_eq!(scenario.redis.ask(&["LLEN", "workspace:tasks:normal"]), "0");
    working.stop.cancel();
    working.done.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_within_milliseconds_of_the_commit() {
    let scenario = Scenario::usual().await;
    let working = scenario.work();
    let id =
        scenario.shell("sleep 0.5; for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.05; done").await;
    let mut following = Box::pin(scenario.api.tasks.follow(id, 0));
    let mut late = Vec::new();
    while let Some(followed) = timeout(DEADLINE, following.next()).await.unwrap() {
        if let FollowItem::Event(event) = followed
            && event.kind == EventKind::LogLine
        {
            let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
            late.push(now.saturating_sub(u128::try_from(event.at.as_millis()).unwrap()));
        }
    }
    late.sort_unstable();
    // An event waits up to 20 ms for others before it is written; asking the store again would take
    // seconds.
    assert!(late.len() == 8 && late[4] < 200, "{late:?}");
    working.stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_runs_elsewhere_is_cancelled_within_a_second() {
    for away in [false, true] {
        let mut scenario = Scenario::usual().await;
        let working = scenario.work();
        let id = scenario.shell("echo begun; sleep 300").await;
        let mut following = Box::pin(scenario.api.tasks.follow(id, 0));
        while let Some(followed) = timeout(DEADLINE, following.next()).await.unwrap() {
            if matches!(followed, FollowItem::Event(event) if is_line("begun")(&event)) {
                break;
            }
        }
        if away {
            scenario.redis.kill();
        }
        let begun = Instant::now();
        scenario.api.tasks.cancel(id).await.unwrap();
        let ended = async {
            while scenario.test_env.tasks.find_any(id).await.unwrap().status == TaskStatus::Running
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(DEADLINE, ended).await.unwrap();
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(1), "away: {away}, {took:?}");
        // The reader hears of it soon, too.
        let rest = timeout(Duration::from_secs(5), following.collect::<Vec<_>>()).await.unwrap();
        let last = rest.iter().rev().find_map(|followed| match followed {
            FollowItem::Event(event) => Some(event.data["status"].clone()),
            FollowItem::Idle => None,
        });
        assert_eq!(last, Some(json!("cancelled")), "{rest:?}");
        working.stop.cancel();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_submitted_while_redis_is_away_still_runs() {
    let mut scenario = Scenario::usual().await;
    let (working, sweeping) = (scenario.work(), scenario.sweep());
    scenario.redis.kill();
    scenario.api.until_well(false).await;
    let begun = Instant::now();
    let id = scenario.shell("true").await;
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    assert_eq!(statuses(&scenario.events(id).await), ["queued", "running", "completed"]);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
    scenario.redis.begin();
    scenario.api.until_well(true).await;
    scenario.worker.until_well(true).await;
    let id = scenario.shell("true").await;
    assert_eq!(statuses(&scenario.events(id).await), ["queued", "running", "completed"]);
    working.stop.cancel();
    sweeping.stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_that_died_with_redis_are_pushed_again_within_a_second_of_its_return() {
    let mut scenario = Scenario::usual().await;
    let _sweeping = scenario.sweep();
    for _ in 0..3 {
        scenario.shell("true").await;
    }
    scenario.redis.kill();
    scenario.api.until_well(false).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    scenario.redis.begin();
    let begun = Instant::now();
    while scenario.redis.ask(&["LLEN", "workspace:tasks:normal"]) != "3" {
        assert!(begun.elapsed() < Duration::from_secs(1), "nothing is pushed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_fails_while_redis_is_away_if_the_operator_wants_that() {
    let mut scenario = Scenario::new(OnEnqueueFailure::Fail).await;
    let body = json!({
        "steps": [{ "action": "shell", "command": "true" }], "idempotency_key": "k"
    });
    scenario.redis.kill();
    scenario.api.until_well(false).await;
    let error = scenario.submit(body.clone()).await.unwrap_err();
    assert!(error.to_string().starts_with("Redis enqueue failed: "), "{error}");
    let ServiceError::NotEnqueued { id: failed, reason } = error else { panic!("{error}") };
    let task = scenario.api.tasks.find_any(failed).await.unwrap();
    assert_eq!((task.status, task.error), (TaskStatus::Failed, Some(reason)));
    assert_eq!(statuses(&scenario.events(failed).await), ["queued", "failed"]);
    scenario.redis.begin();
    scenario.api.until_well(true).await;
    let id = scenario.submit(body.clone()).await.unwrap();
    assert_ne!(id, failed, "the key is free again");
    assert_eq!(scenario.submit(body).await.unwrap(), id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_leaves_no_hints_behind() {
    let scenario = Scenario::usual().await;
    let working = scenario.work();
    let mut ids = Vec::new();
    for _ in 0..30 {
        ids.push(scenario.shell("true").await);
    }
    for id in ids {
        scenario.events(id).await;
    }
    let begun = Instant::now();
    while scenario.redis.ask(&["LLEN", "workspace:tasks:normal"]) != "0" {
        assert!(begun.elapsed() < DEADLINE, "hints are left");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    working.stop.cancel();
}
