//! What processes tell each other over a real Redis, and what is left when it dies.

use std::time::{Duration, Instant};

use carrel_domain::{Priority, TaskId, VolumeId, WorkspaceId};
use carrel_service::{Bus as _, BusHealth, EventHub, Hint, RedisBus};
use pretty_assertions::assert_eq;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::redis::RedisServer;
use crate::test_environment::DEADLINE;

/// One process that uses the bus.
struct Process {
    bus: RedisBus,
    feed: EventHub,
    _stop: DropGuard,
}

impl Process {
    async fn start(server: &RedisServer) -> Self {
        let stop = CancellationToken::new();
        let (bus, service) = RedisBus::new(&server.address(), stop.clone()).unwrap();
        let feed = EventHub::default();
        tokio::spawn(service.run(feed.clone(), stop.clone()));
        let process = Self { bus, feed, _stop: stop.drop_guard() };
        process.until_well().await;
        process
    }

    async fn until_well(&self) {
        self.until(|health| *health == BusHealth::Available).await;
    }

    async fn until(&self, is_it: impl Fn(&BusHealth) -> bool) {
        let waiting = async {
            while !is_it(&self.bus.health()) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(DEADLINE, waiting).await.expect("it changes soon");
    }
}

fn hint(priority: Priority, volume: Option<VolumeId>) -> Hint {
    let (task, workspace) = (TaskId::generate(), WorkspaceId::generate());
    Hint::new(carrel_store::QueuedTask { task, workspace, priority, volume })
}

#[tokio::test]
async fn hints_come_by_urgency_then_of_the_own_volume_then_by_age() {
    let server = RedisServer::start();
    let process = Process::start(&server).await;
    let (own, other) = (VolumeId::generate(), VolumeId::generate());
    let offered = [
        hint(Priority::Low, None),
        hint(Priority::Normal, None),
        hint(Priority::Normal, None),
        hint(Priority::Normal, Some(own)),
        hint(Priority::Critical, None),
        hint(Priority::Critical, Some(other)),
    ];
    process.bus.offer(&offered).await.unwrap();
    let mut hints = process.bus.hints(own).unwrap();
    let mut found = Vec::new();
    for _ in 0..5 {
        found.push(timeout(DEADLINE, hints.next()).await.unwrap().unwrap().task);
    }
    assert_eq!(found, [4, 3, 1, 2, 0].map(|index: usize| offered[index].task));
    let nothing = timeout(Duration::from_millis(200), hints.next()).await;
    assert!(nothing.is_err(), "the other volume's stay: {nothing:?}");
    assert_eq!(process.bus.take_hint(other).await.unwrap().task, offered[5].task);
    assert_eq!(process.bus.take_hint(other).await, None);
}

#[tokio::test]
async fn a_worker_that_waits_for_nothing_takes_nothing() {
    let server = RedisServer::start();
    let process = Process::start(&server).await;
    let volume = VolumeId::generate();
    let mut hints = process.bus.hints(volume).unwrap();
    process.bus.offer(&[hint(Priority::Normal, None)]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.ask(&["LLEN", "workspace:tasks:normal"]), "1");
    assert!(timeout(DEADLINE, hints.next()).await.unwrap().is_some());
    assert_eq!(server.ask(&["LLEN", "workspace:tasks:normal"]), "0");
}

#[tokio::test]
async fn entries_that_are_no_hints_are_put_aside() {
    let server = RedisServer::start();
    let process = Process::start(&server).await;
    for entry in ["", "no json", r#"{"task_id":"x"}"#] {
        server.ask(&["LPUSH", "workspace:tasks:high", entry]);
    }
    let good = hint(Priority::Low, None);
    process.bus.offer(std::slice::from_ref(&good)).await.unwrap();
    let mut hints = process.bus.hints(VolumeId::generate()).unwrap();
    assert_eq!(timeout(DEADLINE, hints.next()).await.unwrap().unwrap().task, good.task);
    assert_eq!(server.ask(&["LLEN", "workspace:tasks:high"]), "0");
    assert_eq!(
        server.ask(&["LRANGE", "workspace:tasks:dead", "0", "-1"]),
        "{\"task_id\":\"x\"}\nno json"
    );
}

#[tokio::test]
async fn lists_are_replenished_up_to_the_number_of_queued_tasks() {
    let server = RedisServer::start();
    let process = Process::start(&server).await;
    let waiting: Vec<_> = (0..5).map(|_| hint(Priority::Normal, None)).collect();
    for _ in 0..3 {
        process.bus.replenish(&waiting).await.unwrap();
        assert_eq!(server.ask(&["LLEN", "workspace:tasks:normal"]), "5");
    }
    process.bus.take_hint(VolumeId::generate()).await.unwrap();
    process.bus.replenish(&waiting).await.unwrap();
    assert_eq!(server.ask(&["LLEN", "workspace:tasks:normal"]), "5");
    process.bus.replenish(&[]).await.unwrap();
}

#[tokio::test]
async fn signs_of_life_last_a_minute_and_status_two_hours() {
    let server = RedisServer::start();
    let process = Process::start(&server).await;
    let (worker, task) = (carrel_store::WorkerId("w".to_owned()), TaskId::generate());
    process.bus.announce(&worker, &[task]).await.unwrap();
    assert_eq!(server.ask(&["SMEMBERS", "workspace:worker:w:tasks"]), task.to_string());
    assert_eq!(server.ask(&["TTL", "workspace:worker:w:heartbeat"]), "60");
    process.bus.announce(&worker, &[]).await.unwrap();
    assert_eq!(server.ask(&["EXISTS", "workspace:worker:w:tasks"]), "0");
    let hint = hint(Priority::High, None);
    process.bus.offer(std::slice::from_ref(&hint)).await.unwrap();
    let key = format!("workspace:task:{}:status", hint.task);
    assert_eq!(server.ask(&["HMGET", &key, "status", "priority"]), "queued\nhigh");
    assert_eq!(server.ask(&["TTL", &key]), "7200");
}

#[tokio::test]
async fn a_killed_redis_is_noticed_and_found_again() {
    let mut server = RedisServer::start();
    let process = Process::start(&server).await;
    let mut hints = process.bus.hints(VolumeId::generate()).unwrap();
    let waiting = timeout(Duration::from_millis(50), hints.next()).await;
    assert!(waiting.is_err());
    server.kill();
    process.until(|health| matches!(health, BusHealth::Unavailable { .. })).await;
    assert!(process.bus.offer(&[hint(Priority::Normal, None)]).await.is_err());
    // Who waits for hints looks for work now and then.
    assert_eq!(timeout(DEADLINE, hints.next()).await.unwrap(), None);
    let returned = process.bus.clone();
    let returned = tokio::spawn(async move { returned.reconnected().await });
    server.begin();
    let begun = Instant::now();
    timeout(DEADLINE, returned).await.unwrap().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let offered = hint(Priority::Normal, None);
    process.bus.offer(std::slice::from_ref(&offered)).await.unwrap();
    let found = async {
        loop {
            if let Some(hint) = hints.next().await {
                return hint;
            }
        }
    };
    assert_eq!(timeout(DEADLINE, found).await.unwrap().task, offered.task);
}

#[tokio::test]
async fn a_redis_that_is_not_there_yet_is_waited_for() {
    let mut server = RedisServer::start();
    server.kill();
    let stop = CancellationToken::new();
    let (bus, service) = RedisBus::new(&server.address(), stop.clone()).unwrap();
    let process = Process { bus, feed: EventHub::default(), _stop: stop.clone().drop_guard() };
    tokio::spawn(service.run(process.feed.clone(), stop));
    process
        .until(
            |health| matches!(health, BusHealth::Unavailable { reason } if !reason.contains("yet")),
        )
        .await;
    server.begin();
    process.until_well().await;
}

#[test]
fn an_address_that_cannot_be_used_is_refused_without_repeating_it() {
    for address in [
        "",
        "localhost",
        "http://x:secret@y",
        "redis://",
        "rediss://",
        "rediss://:secret@x#insecure",
    ] {
        let stop = CancellationToken::new();
        let error = RedisBus::new(&carrel_domain::Secret::new(address), stop).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("redis://") && !text.contains("secret"), "{address}: {text}");
    }
}
