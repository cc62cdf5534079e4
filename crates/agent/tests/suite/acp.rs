use std::path::PathBuf;
use std::sync::Arc;

use carrel_agent::{AgentFailure, FailureKind};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::conformance::Kind;
use crate::test_environment::{NoTools, Notes, ProcessEvent, TestEnvironment};

async fn turn(scenario: &str) -> (Result<String, AgentFailure>, ProcessEvent, TestEnvironment) {
    let test_env = Kind::Acp.test_env().await;
    let mut opened = Kind::Acp.open(&test_env, scenario, "").await.unwrap();
    let ended = opened.session.turn("the prompt").await;
    (ended, opened.close().await, test_env)
}

/// Returns what the agent was sent, in order.
fn received(test_env: &TestEnvironment) -> Vec<Value> {
    test_env.read("received").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn item_057_a_session_begins_as_the_protocol_says() {
    let (ended, _, test_env) = turn("success").await;
    assert_eq!(ended, Ok("done".to_owned()));
    let sent = received(&test_env);
    let workspace = test_env.inside("");
    let workspace = workspace.to_str().unwrap().trim_end_matches('/');
    let methods: Vec<&str> = sent.iter().filter_map(|message| message["method"].as_str()).collect();
    assert_eq!(methods, ["initialize", "session/new", "session/prompt"]);
    assert_eq!(sent[0]["params"]["protocolVersion"], 1);
    assert_eq!(sent[1]["params"], json!({"cwd": workspace, "mcpServers": []}));
    assert_eq!(
        sent[2]["params"],
        json!({"sessionId": "session-1", "prompt": [{"type": "text", "text": "the prompt"}]})
    );
    assert!(sent.iter().all(|message| message["jsonrpc"] == "2.0"));
}

#[tokio::test]
async fn an_agent_that_speaks_another_version_is_not_talked_to() {
    let test_env = Kind::Acp.test_env().await;
    let failure =
        Kind::Acp.open(&test_env, "newer", "").await.err().expect("it speaks another version");
    assert_eq!(failure.kind, FailureKind::ResponseError);
    assert_eq!(failure.message, "the agent speaks version 2 of the protocol instead of 1");
}

#[tokio::test]
async fn item_070_tools_are_offered_by_a_server_that_the_agent_starts() {
    let test_env = Kind::Acp.test_env().await;
    let yaml = format!("{}}}", Kind::Acp.plays("success"));
    let opened = test_env.open_with(&yaml, Arc::new(Notes::default()), None).await.unwrap();
    let servers = received(&test_env)[1]["params"]["mcpServers"].clone();
    assert_eq!((&servers[0]["name"], &servers[0]["args"]), (&json!("carrel"), &json!(["mcp"])));
    assert_eq!(servers[0]["env"][0]["name"], "CARREL_TOOLS");
    let socket = PathBuf::from(servers[0]["env"][0]["value"].as_str().unwrap());
    assert!(socket.exists());
    opened.close().await;
    assert!(!socket.parent().unwrap().exists());
}

#[tokio::test]
async fn item_065_a_permission_is_given_or_stops_the_turn_as_the_workflow_says() {
    let (ended, heard, test_env) = turn("approval").await;
    assert_eq!(ended, Ok("answered".to_owned()));
    assert_eq!(heard.said("approval_auto_approved"), ["rm x"]);
    let chosen = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
    assert_eq!(received(&test_env).pop().unwrap()["result"], chosen);

    let test_env = Kind::Acp.test_env().await;
    let yaml = Kind::Acp.plays("approval").replace("kind: acp", "kind: acp, approvals: ask");
    let mut opened = test_env.open(&format!("{yaml}}}")).await.unwrap();
    let failure = opened.session.turn("").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ApprovalRequired);
    assert_eq!(failure.message, "approval requested: rm x");
    opened.close().await;
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    assert_eq!(received(&test_env)[3]["result"], cancelled);
}

#[tokio::test]
async fn what_is_not_offered_is_refused_without_stalling() {
    let (ended, heard, test_env) = turn("unknown").await;
    assert_eq!(ended, Ok("answered".to_owned()));
    assert_eq!(heard.said("unknown_request"), ["fs/read_text_file"]);
    assert_eq!(received(&test_env).pop().unwrap()["error"]["code"], -32601);
}

#[tokio::test]
async fn a_refusal_of_the_model_and_a_missing_login_are_failures_that_say_so() {
    let failure = turn("refusal").await.0.unwrap_err();
    assert_eq!(failure.kind, FailureKind::TurnFailed);
    let failure = turn("logged_out").await.0.unwrap_err();
    assert_eq!(failure.kind, FailureKind::TurnFailed);
    assert!(failure.message.contains("log the agent in"), "{failure}");
}

#[tokio::test]
async fn a_turn_that_does_not_end_is_cancelled_before_the_agent_is_ended() {
    let test_env = Kind::Acp.test_env().await;
    let yaml = format!("{}}}", Kind::Acp.plays_for("waits", 900));
    let mut opened = test_env.open(&yaml).await.unwrap();
    assert_eq!(opened.session.turn("").await.unwrap_err().kind, FailureKind::TurnTimeout);
    opened.close().await;
    let last = received(&test_env).pop().unwrap();
    assert_eq!(last["method"], "session/cancel");
    assert_eq!(last["params"], json!({"sessionId": "session-1"}));
}

#[tokio::test]
async fn a_session_is_taken_up_again_or_begun_anew() {
    for (thread, expected, said) in
        [("session-0", "session-0", "thread_resumed"), ("lost", "session-1", "thread_not_resumed")]
    {
        let test_env = Kind::Acp.test_env().await;
        let yaml = format!("{}}}", Kind::Acp.plays("success"));
        let tools = Arc::new(NoTools);
        let mut opened = test_env.open_with(&yaml, tools, Some(thread.to_owned())).await.unwrap();
        assert_eq!(opened.session.thread().as_deref(), Some(expected));
        assert_eq!(opened.session.turn("").await, Ok("done".to_owned()));
        let heard = opened.close().await;
        assert_eq!(heard.said(said).len(), 1, "{:?}", heard.all());
        let told: Vec<String> = heard.said("agent_message_chunk");
        assert!(!told.contains(&"what was said before".to_owned()), "{told:?}");
    }
    let test_env = Kind::Acp.test_env().await;
    let opened = Kind::Acp.open(&test_env, "forgetful", "").await.unwrap();
    assert_eq!(opened.session.thread(), None);
    opened.close().await;
}
