//! Following what happens.

use std::sync::Arc;

use carrel_service::FollowItem;
use carrel_store::Event;
use futures_util::StreamExt as _;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::test_environment::TestEnvironment;

async fn numbers(test_env: &TestEnvironment, id: carrel_domain::TaskId, after: u64) -> Vec<u64> {
    let events: Vec<Arc<Event>> = test_env
        .tasks
        .follow(id, after)
        .filter_map(async |followed| match followed {
            FollowItem::Event(event) => Some(event),
            FollowItem::Idle => None,
        })
        .collect()
        .await;
    events.iter().map(|event| event.number).collect()
}

#[tokio::test]
async fn readers_see_every_event_once_in_order_however_late_they_come() {
    let test_env = TestEnvironment::new().await;
    let working = test_env.work();
    let id = test_env
        .submit(json!({ "steps": [{ "action": "shell", "command": "for i in {1..1000}; do echo $i; done" }] }))
        .await;
    let early = numbers(&test_env, id, 0);
    let middle = async {
        test_env.until(id, |event| event.number == 200).await;
        numbers(&test_env, id, 100).await
    };
    let (early, middle) = tokio::join!(early, middle);
    let late = numbers(&test_env, id, 0).await;
    let last = *late.last().unwrap();
    assert!(last > 1000, "{last}");
    assert_eq!(late, (1..=last).collect::<Vec<_>>());
    assert_eq!(early, late);
    assert_eq!(middle, (101..=last).collect::<Vec<_>>());
    working.stop.cancel();
    working.done.await.unwrap();
}

#[tokio::test]
async fn a_reader_that_reconnects_all_the_time_misses_nothing() {
    let test_env = TestEnvironment::new().await;
    let working = test_env.work();
    let id = test_env
        .submit(json!({ "steps": [{ "action": "shell", "command": "for i in {1..300}; do echo $i; done" }] }))
        .await;
    let mut seen = Vec::new();
    loop {
        let after = seen.last().copied().unwrap_or(0);
        let part: Vec<_> = test_env
            .tasks
            .follow(id, after)
            .filter_map(async |followed| match followed {
                FollowItem::Event(event) => Some(event),
                FollowItem::Idle => None,
            })
            .take(7)
            .collect()
            .await;
        seen.extend(part.iter().map(|event| event.number));
        if part.last().is_some_and(|event| event.is_last()) {
            break;
        }
    }
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    working.stop.cancel();
    working.done.await.unwrap();
}
