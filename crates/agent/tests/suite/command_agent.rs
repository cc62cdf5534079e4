use std::sync::Arc;
use std::time::Duration;

use carrel_agent::{Event, FailureKind};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{Notes, TestEnvironment, command};

#[tokio::test]
async fn a_command_reads_its_prompt_and_its_last_message_is_the_answer() {
    let test_env = TestEnvironment::new().await;
    let (ended, heard) = test_env.command("cat > prompt.txt; echo first; echo 'all done'").await;
    assert_eq!(ended, Ok("all done".to_owned()));
    assert_eq!(test_env.read("prompt.txt"), "the prompt");
    assert_eq!(heard.said("message"), ["first", "all done"]);
    assert!(matches!(&heard.all()[0], Event::SessionStarted { session, thread, .. }
        if *session == format!("{thread}-1")));
}

#[tokio::test]
async fn each_turn_starts_the_command_again_and_what_it_uses_adds_up() {
    let test_env = TestEnvironment::new().await;
    let script = r#"cat >> prompts.txt
        echo '{"event":"usage","input_tokens":5,"output_tokens":1}'
        echo '{"event":"usage","input_tokens":7,"output_tokens":2}'"#;
    let mut opened = test_env.open(&command(script, "")).await.unwrap();
    opened.session.turn("one\n").await.unwrap();
    opened.session.turn("two\n").await.unwrap();
    assert_eq!(opened.session.thread(), None);
    let heard = opened.close().await;
    assert_eq!(test_env.read("prompts.txt"), "one\ntwo\n");
    let used = heard.all().into_iter().filter_map(|event| match event {
        Event::Usage(tokens) => Some((tokens.input, tokens.output, tokens.total)),
        _ => None,
    });
    assert_eq!(used.collect::<Vec<_>>(), [(5, 1, 6), (7, 2, 9), (12, 3, 15), (14, 4, 18)]);
}

#[tokio::test]
async fn a_command_that_fails_says_so_with_its_last_words() {
    let test_env = TestEnvironment::new().await;
    let (ended, heard) = test_env.command("echo 'no such model' >&2; exit 3").await;
    let failure = ended.unwrap_err();
    assert_eq!(failure.kind, FailureKind::TurnFailed);
    assert_eq!(failure.message, "the command failed: it exited with status 3: no such model");
    assert_eq!(heard.said("stderr"), ["no such model"]);
    assert_eq!(heard.said("malformed"), Vec::<String>::new());
    let missing = test_env.command("no-such-agent --now").await.0.unwrap_err();
    assert_eq!(missing.kind, FailureKind::NotFound, "{missing}");
    assert!(missing.message.contains("no-such-agent"), "{missing}");
}

#[tokio::test]
async fn questions_and_limits_are_outcomes_of_their_own() {
    let test_env = TestEnvironment::new().await;
    let asks = r#"echo '{"event":"input_required","question":"Which one?"}'"#;
    let failure = test_env.command(asks).await.0.unwrap_err();
    assert_eq!((failure.kind, &*failure.message), (FailureKind::InputRequired, "Which one?"));
    let limited = r#"echo '{"event":"rate_limits","limits":{"primary":1}}'
        echo '{"event":"rate_limited","retry_after_seconds":90,"message":"slow down"}'; exit 1"#;
    let (ended, heard) = test_env.command(limited).await;
    let retry_after = Some(Duration::from_secs(90));
    assert_eq!(ended.unwrap_err().kind, FailureKind::RateLimited { retry_after });
    assert!(heard.all().contains(&Event::RateLimits { limits: json!({"primary": 1}) }));
}

#[tokio::test]
async fn an_agent_that_fills_the_workspace_is_stopped_with_the_name_of_the_setting() {
    let script = "for name in $(seq 20000); do : > $name; done; sleep 100";
    let (ended, _) = TestEnvironment::new().await.command(script).await;
    let message = ended.unwrap_err().message;
    assert!(message.contains("workspace.quota_files"), "{message}");
}

#[tokio::test]
async fn a_limit_that_the_command_got_over_is_no_failure() {
    let test_env = TestEnvironment::new().await;
    let script = r#"echo '{"event":"rate_limited"}'; echo done"#;
    assert_eq!(test_env.command(script).await.0, Ok("done".to_owned()));
}

#[tokio::test]
async fn item_072_and_112_a_command_uses_tools_that_run_outside_its_sandbox() {
    let test_env = TestEnvironment::new().await;
    let notes = Arc::new(Notes::default());
    let script = r#"printf '%s\n' \
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}' \
        '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
        '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' \
        '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"note","arguments":{"text":"a"}}}' \
        '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"fail"}}' \
        '{"jsonrpc":"2.0","id":5,"method":"resources/list"}' | carrel-agent-spawner mcp > answers"#;
    let tools = Arc::<Notes>::clone(&notes);
    let mut opened = test_env.open_with(&command(script, ""), tools, None).await.unwrap();
    opened.session.turn("").await.unwrap();
    let heard = opened.close().await;
    let answers: Vec<Value> =
        test_env.read("answers").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let to = |id: u64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(to(1)["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(to(2)["result"]["tools"][0]["name"], "note");
    assert_eq!(
        to(3)["result"],
        json!({"content": [{"type": "text", "text": "noted as number 7"}], "isError": false})
    );
    assert_eq!(to(4)["result"]["isError"], true);
    assert_eq!(to(5)["error"]["code"], -32601);
    assert_eq!(notes.kept(), [json!({"text": "a"})]);
    assert_eq!(heard.said("tool_call_completed"), ["note"]);
    assert_eq!(heard.said("tool_call_failed"), ["fail"]);
}
