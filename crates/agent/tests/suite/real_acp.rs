use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use carrel_agent::{Event, FailureKind, Tools};
use carrel_testkit::agents::real_acp;
use carrel_testkit::fake_model::{FakeModel, ModelReply};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::test_environment::{NoTools, Notes, Opened, TestEnvironment};

/// `codex-acp` with a model that follows a script.
struct Scenario {
    test_env: TestEnvironment,
    program: PathBuf,
    model: FakeModel,
}

impl Scenario {
    /// Sets the scenario, unless the agent is missing.
    async fn set(replies: Vec<ModelReply>) -> Option<Self> {
        let program = match real_acp() {
            Ok(program) => program,
            Err(reason) => {
                carrel_skip::unavailable(&reason);
                return None;
            }
        };
        let (test_env, model) = (TestEnvironment::new().await, FakeModel::start(replies).await);
        std::fs::create_dir(test_env.home(".codex")).unwrap();
        std::fs::write(test_env.home(".codex/config.toml"), model.codex_settings()).unwrap();
        Some(Self { test_env, program, model })
    }

    async fn open(&self, tools: Arc<dyn Tools>, thread: Option<String>) -> Opened {
        let program = self.program.display();
        let yaml =
            format!("agent: {{kind: acp, command: {program}}}\ncodex: {{read_timeout_ms: 30000}}");
        self.test_env.open_with(&yaml, tools, thread).await.unwrap()
    }
}

#[tokio::test]
async fn a_real_agent_takes_two_turns_uses_a_tool_and_runs_a_command() {
    let script = vec![
        ModelReply::CallIn("mcp__carrel", "note", json!({"text": "hello"})),
        ModelReply::Call("exec_command", json!({"cmd": "pwd > where"})),
        ModelReply::Say("The first is done."),
        ModelReply::Say("The second is done."),
    ];
    let Some(scenario) = Scenario::set(script).await else { return };
    let notes = Arc::new(Notes::default());
    let mut opened = scenario.open(Arc::<Notes>::clone(&notes), None).await;
    for (prompt, answer) in
        [("Do the first.", "The first is done."), ("Do the second.", "The second is done.")]
    {
        assert_eq!(opened.session.turn(prompt).await.unwrap(), answer);
    }
    let heard = opened.close().await;
    assert_eq!(notes.kept(), [json!({"text": "hello"})]);
    let workspace = scenario.test_env.inside("");
    assert_eq!(
        scenario.test_env.read("where").trim(),
        workspace.to_str().unwrap().trim_end_matches('/')
    );
    let last = scenario.model.requests().pop().unwrap()["input"].to_string();
    assert!(last.contains("Do the first.") && last.contains("Do the second."), "{last}");
    let used = heard.all().into_iter().filter_map(|event| match event {
        Event::Usage(tokens) => Some(tokens.total),
        _ => None,
    });
    assert_eq!(used.collect::<Vec<_>>(), [36, 48]);
    assert_eq!(heard.said("malformed"), Vec::<String>::new());
}

#[tokio::test]
async fn a_real_agent_is_cancelled_and_its_session_goes_on_later() {
    let script = vec![ModelReply::Say("Begun."), ModelReply::Silence, ModelReply::Say("Gone on.")];
    let Some(scenario) = Scenario::set(script).await else { return };
    let mut opened = scenario.open(Arc::new(NoTools), None).await;
    let thread = opened.session.thread();
    opened.session.turn("Begin.").await.unwrap();
    let stop = opened.stop.clone();
    let stopping = async {
        while scenario.model.requests().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(opened.session.turn("Wait."), stopping);
    assert_eq!(ended.unwrap_err().kind, FailureKind::Stopped);
    opened.close().await;

    let mut again = scenario.open(Arc::new(NoTools), thread.clone()).await;
    assert_eq!(again.session.thread(), thread);
    assert_eq!(again.session.turn("Go on.").await.unwrap(), "Gone on.");
    assert_eq!(again.close().await.said("thread_resumed").len(), 1);
    let last = scenario.model.requests().pop().unwrap()["input"].to_string();
    assert!(last.contains("Begin."), "{last}");
}

#[tokio::test]
async fn a_real_agent_that_its_provider_refuses_fails_its_turn() {
    let Some(scenario) = Scenario::set(vec![ModelReply::Refuse(429)]).await else { return };
    let mut opened = scenario.open(Arc::new(NoTools), None).await;
    let failure = opened.session.turn("Try.").await.unwrap_err();
    opened.close().await;
    assert!(
        matches!(failure.kind, FailureKind::RateLimited { .. }),
        "{:?} {failure}",
        failure.kind
    );
}
