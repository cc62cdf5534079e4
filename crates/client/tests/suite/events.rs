//! Events across broken connections.

use std::fmt::Write as _;
use std::time::Duration;

use carrel_client::{ClientError, FollowOptions};
use carrel_domain::{TaskId, TaskStatus};
use carrel_wire::TaskEvent;
use futures_util::StreamExt as _;
use pretty_assertions::assert_eq;

use crate::script::{Part, Script, json};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: connected\n\n";

/// A stream with these events; the last one is terminal if it is `end`.
fn stream(numbers: impl IntoIterator<Item = u64>, end: u64) -> String {
    let mut text = HEAD.to_owned();
    for number in numbers {
        let (kind, data) = if number == end {
            ("status_changed", r#"{"status":"completed"}"#.to_owned())
        } else {
            ("log_line", format!(r#"{{"line":"{number}"}}"#))
        };
        write!(text, "id: {number}\nevent: {kind}\ndata: {data}\n\n").unwrap();
    }
    text
}

async fn follow(script: &Script, options: FollowOptions) -> Vec<Result<TaskEvent, ClientError>> {
    script.client().follow_task(TaskId::generate(), options).collect().await
}

fn numbers(events: &[Result<TaskEvent, ClientError>]) -> Vec<u64> {
    events.iter().map(|event| event.as_ref().unwrap().id).collect()
}

fn last_seen(head: &str) -> &str {
    head.lines().find_map(|line| line.strip_prefix("last-event-id: ")).unwrap()
}

#[tokio::test]
async fn each_event_comes_once_and_in_order_however_often_the_connection_breaks() {
    let unavailable =
        r#"{"error":{"code":"E_STORE_UNAVAILABLE","kind":"x","message":"x","detail":{}}}"#;
    let script = Script::start(vec![
        Part::SayAndClose(format!("{}id: 3\nevent: log_line\ndata: {{\"li", stream(1..=2, 9))),
        Part::SayAndClose(stream(2..=4, 9)),
        Part::SayAndClose(json("503 Service Unavailable", unavailable)),
        Part::SayAndClose(String::new()),
        Part::SayAndClose(HEAD.to_owned()),
        // More than there should be behind the last one.
        Part::Say(stream(5..=12, 9)),
    ])
    .await;
    let events = follow(&script, FollowOptions::default()).await;
    assert_eq!(numbers(&events), (1..=9).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap().as_ref().unwrap().ending(), Some(TaskStatus::Completed));
    let heads = script.heads();
    let request: Vec<_> = heads.iter().map(|head| last_seen(head)).collect();
    assert_eq!(request, ["0", "2", "4", "4", "4", "4"]);
}

#[tokio::test]
async fn a_reader_goes_on_behind_what_it_has_seen() {
    let script = Script::start(vec![Part::Say(stream(6..=7, 7))]).await;
    let options = FollowOptions { after: 5, ..FollowOptions::default() };
    assert_eq!(numbers(&follow(&script, options).await), [6, 7]);
    assert_eq!(last_seen(&script.heads()[0]), "5");
}

#[tokio::test]
async fn a_slow_reader_does_not_count_as_silence_of_the_server() {
    let script =
        Script::start(vec![Part::SayAndClose(stream(1..=1, 3)), Part::Say(stream(2..=3, 3))]).await;
    let retry_for = Duration::from_millis(300);
    let options = FollowOptions { retry_for, ..FollowOptions::default() };
    let mut events = Box::pin(script.client().follow_task(TaskId::generate(), options));
    assert_eq!(events.next().await.unwrap().unwrap().id, 1);
    tokio::time::sleep(retry_for * 2).await;
    assert_eq!(numbers(&events.collect::<Vec<_>>().await), [2, 3]);
}

#[tokio::test]
async fn there_is_nothing_behind_the_last_event() {
    let script = Script::start(vec![Part::Say("HTTP/1.1 204 No Content\r\n\r\n".to_owned())]).await;
    assert_eq!(follow(&script, FollowOptions::default()).await.len(), 0);
}

#[tokio::test]
async fn a_refusal_is_the_end() {
    let body =
        r#"{"error":{"code":"E_TASK_NOT_FOUND","kind":"x","message":"no task","detail":{}}}"#;
    let script = Script::start(vec![Part::Say(json("404 Not Found", body))]).await;
    let events = follow(&script, FollowOptions::default()).await;
    assert_eq!((events.len(), script.heads().len()), (1, 1));
    assert_eq!(events[0].as_ref().unwrap_err().to_string(), "no task");
}

#[tokio::test]
async fn a_gap_or_nonsense_is_an_error_and_never_passed_over() {
    for text in [
        stream([1, 3], 9),
        format!("{}id: x\ndata: {{}}\n\n", stream([1], 9)),
        format!("{}id: 2\ndata: nonsense\n\n", stream([1], 9)),
        format!("{}data: {}", stream([1], 9), "x".repeat(5 << 20)),
    ] {
        let script = Script::start(vec![Part::Say(text)]).await;
        let events = follow(&script, FollowOptions::default()).await;
        let last = events.last().unwrap();
        assert!(matches!(last, Err(ClientError::Protocol { .. })), "{last:?}");
        assert!(events.len() <= 2, "{events:?}");
    }
}

#[tokio::test]
async fn a_page_is_no_stream() {
    let script = Script::start(vec![Part::Say(json("200 OK", "{}"))]).await;
    let events = follow(&script, FollowOptions::default()).await;
    assert!(events[0].as_ref().unwrap_err().to_string().contains("instead of events"));
}

#[tokio::test]
async fn a_server_that_stays_away_is_given_up_in_time() {
    let script = Script::start(vec![Part::SayAndClose(stream([1], 9))]).await;
    let options =
        FollowOptions { retry_for: Duration::from_millis(500), ..FollowOptions::default() };
    let events = follow(&script, options).await;
    assert_eq!(events.len(), 2);
    assert!(events[1].is_err(), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_made_again() {
    let script = Script::start(vec![Part::Hang, Part::Say(stream([1], 1))]).await;
    let events = follow(&script, FollowOptions::default()).await;
    assert_eq!((numbers(&events), script.heads().len()), (vec![1], 2));
}
