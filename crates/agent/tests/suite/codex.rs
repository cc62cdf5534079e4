use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_agent::FailureKind;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::conformance::Kind;
use crate::test_environment::{Notes, Opened, ProcessEvent, TestEnvironment};

async fn open(test_env: &TestEnvironment, scenario: &str, more: &str) -> Opened {
    Kind::Codex.open(test_env, scenario, more).await.unwrap()
}

async fn turn(
    scenario: &str,
    more: &str,
) -> (Result<String, carrel_agent::AgentFailure>, ProcessEvent, TestEnvironment) {
    let test_env = Kind::Codex.test_env().await;
    let mut opened = open(&test_env, scenario, more).await;
    let ended = opened.session.turn("the prompt").await;
    (ended, opened.close().await, test_env)
}

/// Returns what the server was sent, in order.
fn received(test_env: &TestEnvironment) -> Vec<Value> {
    test_env.read("received").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn methods(test_env: &TestEnvironment) -> Vec<String> {
    let all = received(test_env).into_iter();
    all.filter_map(|message| message["method"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn item_057_to_059_and_102_a_session_begins_as_the_protocol_says() {
    let (ended, _, test_env) = turn("success", "").await;
    ended.unwrap();
    assert_eq!(
        methods(&test_env),
        ["initialize", "initialized", "thread/start", "thread/name/set", "turn/start"]
    );
    let sent = received(&test_env);
    let workspace = test_env.inside("");
    let workspace = workspace.to_str().unwrap().trim_end_matches('/');
    assert_eq!(sent[0]["params"]["clientInfo"]["name"], "carrel");
    assert_eq!(sent[0]["params"]["capabilities"]["experimentalApi"], true);
    let granular =
        json!({"granular": {"sandbox_approval": false, "rules": false, "mcp_elicitations": false}});
    assert_eq!(
        sent[2]["params"],
        json!({"approvalPolicy": granular, "sandbox": "danger-full-access", "cwd": workspace, "dynamicTools": []})
    );
    assert_eq!(sent[3]["params"], json!({"threadId": "thread-1", "name": "CAR-1: A title"}));
    assert_eq!(
        sent[4]["params"],
        json!({
            "threadId": "thread-1",
            "input": [{"type": "text", "text": "the prompt"}],
            "cwd": workspace,
            "approvalPolicy": granular,
            "sandboxPolicy": {"type": "externalSandbox", "networkAccess": "enabled"},
        })
    );
    assert!(sent.iter().all(|message| message.get("jsonrpc").is_none()));
}

#[tokio::test]
async fn ids_are_never_used_twice() {
    let test_env = Kind::Codex.test_env().await;
    let mut opened = open(&test_env, "success", "").await;
    for _ in 0..3 {
        opened.session.turn("again").await.unwrap();
    }
    opened.close().await;
    let mut ids: Vec<u64> =
        received(&test_env).iter().filter_map(|message| message["id"].as_u64()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[tokio::test]
async fn item_060_the_ids_of_thread_and_turn_name_the_session() {
    let (_, heard, _) = turn("success", "").await;
    let named = heard.all().into_iter().find_map(|event| match event {
        carrel_agent::Event::SessionStarted { session, thread, .. } => Some((session, thread)),
        _ => None,
    });
    assert_eq!(named, Some(("thread-1-turn-1".to_owned(), "thread-1".to_owned())));
}

#[tokio::test]
async fn item_061_a_request_that_is_not_answered_fails() {
    let test_env = Kind::Codex.test_env().await;
    let begun = Instant::now();
    let opened = Kind::Codex.open(&test_env, "mute", ", read_timeout_ms: 300").await;
    let failure = opened.err().expect("nobody answers");
    assert_eq!(failure.kind, FailureKind::ResponseTimeout);
    assert_eq!(failure.message, "thread/start got no reply within 300 ms (codex.read_timeout_ms)");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_rejected_request_fails_with_the_reason() {
    let test_env = Kind::Codex.test_env().await;
    let failure = Kind::Codex.open(&test_env, "refused", "").await.err().expect("it is refused");
    assert_eq!(failure.kind, FailureKind::ResponseError);
    assert_eq!(failure.message, "the agent rejected thread/start: unknown variant (-32600)");
}

#[tokio::test]
async fn a_server_that_is_overloaded_is_asked_again() {
    let (ended, _, test_env) = turn("overloaded", "").await;
    assert_eq!(ended, Ok("done".to_owned()));
    assert_eq!(methods(&test_env).iter().filter(|method| *method == "turn/start").count(), 2);
}

#[tokio::test]
async fn what_arrives_before_a_reply_is_not_lost() {
    let (ended, _, test_env) = turn("early", "").await;
    assert_eq!(ended, Ok("done".to_owned()));
    let answered = received(&test_env).into_iter().find(|message| message.get("error").is_some());
    assert_eq!(answered.unwrap()["id"], 901);
}

#[tokio::test]
async fn item_065_an_approval_is_given_or_stops_the_turn_as_the_policy_says() {
    let (ended, heard, test_env) = turn("approval", ", approval_policy: never").await;
    assert_eq!(ended, Ok("answered".to_owned()));
    assert_eq!(heard.said("approval_auto_approved"), ["rm x"]);
    let answer = received(&test_env).pop().unwrap();
    assert_eq!(answer, json!({"id": 901, "result": {"decision": "acceptForSession"}}));

    let (ended, heard, test_env) = turn("approval", ", approval_policy: on-request").await;
    let failure = ended.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ApprovalRequired);
    assert_eq!(heard.said("approval_required"), ["approval requested: rm x"]);
    let answered = received(&test_env).into_iter().find(|message| message["id"] == 901);
    assert_eq!(answered.unwrap()["result"], json!({"decision": "cancel"}));
}

#[tokio::test]
async fn item_066_and_076_a_tool_that_is_not_there_is_refused_without_stalling() {
    let (ended, heard, test_env) = turn("no_tool", "").await;
    assert_eq!(ended, Ok("answered".to_owned()));
    assert_eq!(heard.said("unsupported_tool_call"), ["nothing"]);
    let answer = received(&test_env).pop().unwrap();
    assert_eq!(answer["result"]["success"], false);
    let output: Value = serde_json::from_str(answer["result"]["output"].as_str().unwrap()).unwrap();
    assert_eq!(output["error"]["supportedTools"], json!([]));
}

#[tokio::test]
async fn item_070_and_072_tools_are_offered_and_used_outside() {
    let test_env = Kind::Codex.test_env().await;
    let notes = Arc::new(Notes::default());
    let yaml = format!("{}}}", Kind::Codex.plays("tool"));
    let mut opened = test_env.open_with(&yaml, Arc::<Notes>::clone(&notes), None).await.unwrap();
    assert_eq!(opened.session.turn("").await, Ok("answered".to_owned()));
    let heard = opened.close().await;
    assert_eq!(heard.said("tool_call_completed"), ["note"]);
    assert_eq!(*notes.kept(), [json!({"text": "hello"})]);
    let sent = received(&test_env);
    assert_eq!(sent[2]["params"]["dynamicTools"][0]["name"], "note");
    let answer = sent.last().unwrap();
    assert_eq!(
        answer["result"],
        json!({"success": true, "output": "noted as number 7", "contentItems": [{"type": "inputText", "text": "noted as number 7"}]})
    );
}

#[tokio::test]
async fn an_elicitation_needs_input() {
    let (ended, _, test_env) = turn("elicitation", ", approval_policy: never").await;
    let failure = ended.unwrap_err();
    assert_eq!((failure.kind, &*failure.message), (FailureKind::InputRequired, "Who are you?"));
    let answered = received(&test_env).into_iter().find(|message| message["id"] == 901);
    assert_eq!(answered.unwrap()["result"], json!({"action": "cancel"}));
}

#[tokio::test]
async fn an_unknown_request_is_answered_with_an_error() {
    let (ended, heard, test_env) = turn("unknown", "").await;
    assert_eq!(ended, Ok("answered".to_owned()));
    assert_eq!(heard.said("unknown_request"), ["some/newRequest"]);
    assert_eq!(received(&test_env).pop().unwrap()["error"]["code"], -32601);
}

#[tokio::test]
async fn turns_of_other_threads_are_not_taken_for_this_one() {
    assert_eq!(turn("other_threads", "").await.0, Ok("done".to_owned()));
}

#[tokio::test]
async fn a_turn_that_was_interrupted_is_no_success() {
    let failure = turn("interrupted", "").await.0.unwrap_err();
    assert_eq!(failure.kind, FailureKind::TurnCancelled);
}

#[tokio::test]
async fn a_turn_that_does_not_end_is_interrupted_before_the_server_is_ended() {
    let (ended, _, test_env) = turn("input", "").await;
    ended.unwrap_err();
    let last = received(&test_env).pop().unwrap();
    assert_eq!(
        (&last["method"], &last["params"]),
        (&json!("turn/interrupt"), &json!({"threadId": "thread-1", "turnId": "turn-1"}))
    );
}

#[tokio::test]
async fn a_thread_is_taken_up_again_or_begun_anew() {
    for (thread, expected, said) in
        [("thread-0", "thread-0", "thread_resumed"), ("lost", "thread-1", "thread_not_resumed")]
    {
        let test_env = Kind::Codex.test_env().await;
        let yaml = format!("{}}}", Kind::Codex.plays("success"));
        let tools = Arc::new(Notes::default());
        let mut opened = test_env.open_with(&yaml, tools, Some(thread.to_owned())).await.unwrap();
        assert_eq!(opened.session.thread().as_deref(), Some(expected));
        assert_eq!(opened.session.turn("").await, Ok("done".to_owned()));
        let heard = opened.close().await;
        assert_eq!(heard.said(said).len(), 1, "{:?}", heard.all());
    }
}

async fn turn_with_tools(
    scenario: &str,
) -> (Result<String, carrel_agent::AgentFailure>, ProcessEvent, TestEnvironment) {
    let test_env = Kind::Codex.test_env().await;
    let notes = Arc::new(Notes::default());
    let yaml = format!("{}}}", Kind::Codex.plays(scenario));
    let mut opened = test_env.open_with(&yaml, Arc::<Notes>::clone(&notes), None).await.unwrap();
    // What is configured while a session is open is for the next.
    notes.later.lock().unwrap().push(json!({"name": "nothing"}));
    let ended = opened.session.turn("").await;
    (ended, opened.close().await, test_env)
}

#[tokio::test]
async fn item_075_a_tool_that_fails_says_so_and_the_turn_goes_on() {
    let (ended, heard, test_env) = turn_with_tools("failing_tool").await;
    assert_eq!(ended, Ok("answered".to_owned()));
    assert_eq!(heard.said("tool_call_failed"), ["fail"]);
    let answer = received(&test_env).pop().unwrap();
    assert_eq!(answer["result"]["success"], false);
    assert_eq!(answer["result"]["output"], r#"{"error":{"code":"bad_arguments"}}"#);
}

#[tokio::test]
async fn item_071_and_133_a_session_has_the_tools_that_it_was_opened_with() {
    let (ended, heard, test_env) = turn_with_tools("no_tool").await;
    assert_eq!(ended, Ok("answered".to_owned()));
    assert_eq!(heard.said("unsupported_tool_call"), ["nothing"]);
    let offered = received(&test_env)[2]["params"]["dynamicTools"].clone();
    let names: Vec<&Value> = offered.as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["note", "fail", "wait"]);
}
