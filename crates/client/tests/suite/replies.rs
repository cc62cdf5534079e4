//! Replies, error replies and responses of other servers.

use std::time::{Duration, Instant};

use carrel_client::{ClientError, SendError, full_body};
use carrel_domain::{Code, Coded as _, TaskId, TaskStatus, WorkspaceId};
use carrel_wire::{StepRequest, TaskQuery, TaskRequest};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::script::{Part, Script, json, response};

const ACCEPTED: &str = r#"{"task_id":"550e8400-e29b-41d4-a716-446655440000","status":"queued","queue":"workspace:tasks:normal","steps":1,"events_url":"/e"}"#;

#[tokio::test]
async fn a_task_is_submitted_as_the_service_takes_it_and_nothing_of_the_reply_is_lost() {
    let script = Script::start(vec![Part::Say(json("200 OK", ACCEPTED))]).await;
    let workspace = WorkspaceId::generate();
    let client = script.client().in_workspace(workspace).with_idempotency_key("key-1");
    let accepted =
        client.submit_task(&TaskRequest::new(vec![StepRequest::command("ls")])).await.unwrap();
    assert_eq!(accepted.status, TaskStatus::Queued);
    assert_eq!(
        serde_json::to_value(&accepted).unwrap(),
        serde_json::from_str::<serde_json::Value>(ACCEPTED).unwrap()
    );
    let head = &script.heads()[0];
    assert!(head.starts_with("post /api/tasks/submit http/1.1\r\n"), "{head}");
    for line in [
        "authorization: bearer s3cret",
        &format!("x-workspace-id: {workspace}"),
        "idempotency-key: key-1",
        "content-type: application/json",
    ] {
        assert!(head.lines().any(|other| other == line), "{line}: {head}");
    }
}

#[tokio::test]
async fn requests_share_a_connection_and_survive_its_end() {
    let part = || json("200 OK", r#"{"tasks":[],"total":0,"limit":5,"offset":0}"#);
    let script =
        Script::start(vec![Part::Say(part()), Part::SayAndClose(part()), Part::Say(part())]).await;
    let client = script.client();
    for _ in 0..3 {
        let query = TaskQuery { limit: Some(5), ..TaskQuery::default() };
        assert_eq!(client.tasks(&query).await.unwrap().total, 0);
        // The end of a connection takes a moment to be known.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(script.connections(), 2);
    assert!(script.heads()[0].starts_with("get /api/tasks?limit=5 http/1.1"));
}

#[tokio::test]
async fn an_error_reply_keeps_code_message_detail_and_retry_after() {
    let body = r#"{"error":{"code":"E_OVERLOADED","kind":"overloaded","message":"too much","detail":{"limit":16}}}"#;
    let text = json("429 Too Many Requests\r\nretry-after: 7", body);
    let script = Script::start(vec![Part::Say(text)]).await;
    let error = script.client().task(TaskId::generate()).await.unwrap_err();
    assert_eq!(
        (
            error.code(),
            error.to_string(),
            error.detail(),
            error.retry_after(),
            error.is_transient()
        ),
        (
            Code::Overloaded,
            "too much".to_owned(),
            json!({"limit": 16}),
            Some(Duration::from_secs(7)),
            true
        )
    );
}

#[tokio::test]
async fn a_response_of_another_server_is_a_protocol_error() {
    for (status, kind, body) in [
        ("502 Bad Gateway", "text/html", "<html>\u{1b}[31mno</html>"),
        ("200 OK", "text/html", "<html>"),
        ("200 OK", "application/json", r#"{"unexpected":true}"#),
        ("400 Bad Request", "application/json", r#"{"detail":"no"}"#),
    ] {
        let script = Script::start(vec![Part::Say(response(status, kind, body))]).await;
        let error = script.client().task(TaskId::generate()).await.unwrap_err();
        assert!(matches!(&error, ClientError::Protocol { .. }), "{error:?}");
        assert_eq!(error.code(), Code::UpstreamFailed);
        let text = error.to_string();
        assert!(text.contains(&script.address) && !text.contains('\u{1b}'), "{text}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_token_stays_here() {
    let other = Script::start(vec![Part::Say(json("200 OK", "{}"))]).await;
    let text = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: {}/x\r\ncontent-length: 0\r\n\r\n",
        other.address
    );
    let script = Script::start(vec![Part::Say(text)]).await;
    let error = script.client().task(TaskId::generate()).await.unwrap_err();
    assert!(error.to_string().contains("redirects are not followed"), "{error}");
    assert_eq!((other.heads().len(), other.connections()), (0, 0));
}

#[tokio::test]
async fn an_endless_response_is_an_error() {
    let mut text = "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\n\r\n".to_owned();
    text.push_str(&"x".repeat(3000));
    let script = Script::start(vec![Part::SayAndClose(text)]).await;
    let limit = carrel_domain::ByteSize::bytes(1000);
    let error = script.client().read_raw(WorkspaceId::generate(), "a", limit).await.unwrap_err();
    let ClientError::Unreachable { source: SendError::TooLarge { .. }, .. } = error else {
        panic!("{error:?}")
    };
}

#[tokio::test]
async fn a_refused_connection_is_reported_at_once_as_unsent() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let begun = Instant::now();
    let client = carrel_client::WorkspaceClient::new(
        address.parse().unwrap(),
        &carrel_client::Credentials::None,
    );
    let error = client.task(TaskId::generate()).await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(error.code(), Code::ServerUnreachable);
    let ClientError::Unreachable { source, .. } = error else { panic!("{error:?}") };
    assert!(source.is_unsent(), "{source:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_times_out() {
    let script = Script::start(vec![Part::Hang]).await;
    let error = script.client().task(TaskId::generate()).await.unwrap_err();
    let ClientError::Unreachable { source, .. } = error else { panic!("{error:?}") };
    assert!(matches!(source, SendError::Timeout { .. }) && !source.is_unsent(), "{source:?}");
}

#[tokio::test(start_paused = true)]
async fn a_response_that_stalls_times_out() {
    let text = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_owned();
    let script = Script::start(vec![Part::Say(text), Part::Hang]).await;
    let error = script.client().task(TaskId::generate()).await.unwrap_err();
    let ClientError::Unreachable { source: SendError::Timeout { .. }, .. } = error else {
        panic!("{error:?}")
    };
}

#[tokio::test]
async fn a_client_does_not_print_its_token() {
    let script = Script::start(vec![]).await;
    let client = script.client();
    let excerpt = format!(
        "{client:?} {:?}",
        carrel_client::Credentials::Internal(carrel_domain::Secret::new("s3cret"))
    );
    assert!(!excerpt.contains("s3cret"), "{excerpt}");
}

#[tokio::test]
async fn bytes_are_sent_as_they_are() {
    let text = json("200 OK", r#"{"written":true,"path":"a b","size_bytes":3}"#);
    let script = Script::start(vec![Part::Say(text)]).await;
    let workspace = WorkspaceId::generate();
    let written = script.client().write_raw(workspace, "a b", full_body("abc")).await.unwrap();
    assert_eq!(written.size_bytes, 3);
    let line = format!("put /api/workspaces/{workspace}/files/raw?path=a%20b http/1.1");
    assert!(script.heads()[0].starts_with(&line), "{:?}", script.heads());
}
