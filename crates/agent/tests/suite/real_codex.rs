use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_agent::{Event, FailureKind, Tools};
use carrel_testkit::agents::real_codex;
use carrel_testkit::fake_model::{FakeModel, ModelReply};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::test_environment::{NoTools, Notes, Opened, TestEnvironment};

/// Codex with a model that follows a script.
struct Scenario {
    test_env: TestEnvironment,
    program: PathBuf,
    model: FakeModel,
}

impl Scenario {
    /// Sets the scenario, unless Codex is missing.
    async fn set(replies: Vec<ModelReply>) -> Option<Self> {
        let program = match real_codex() {
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

    async fn open(&self, policy: &str, tools: Arc<dyn Tools>, thread: Option<String>) -> Opened {
        let command = format!("{} app-server", self.program.display());
        let yaml = format!(
            "codex: {{command: '{command}', approval_policy: {policy}, read_timeout_ms: 30000}}"
        );
        self.test_env.open_with(&yaml, tools, thread).await.unwrap()
    }
}

#[tokio::test]
async fn codex_takes_two_turns_uses_a_tool_and_runs_a_command() {
    let command = json!({"cmd": "pwd > where; echo $CARREL_ISSUE_IDENTIFIER"});
    let script = vec![
        ModelReply::Call("note", json!({"text": "hello"})),
        ModelReply::Call("exec_command", command),
        ModelReply::Say("The first is done."),
        ModelReply::Say("The second is done."),
    ];
    let Some(scenario) = Scenario::set(script).await else { return };
    let notes = Arc::new(Notes::default());
    let tools: Arc<dyn Tools> = Arc::<Notes>::clone(&notes);
    let mut opened = scenario.open("never", tools, None).await;
    let thread = opened.session.thread().unwrap();
    assert_eq!(opened.session.turn("Do the first.").await, Ok("The first is done.".to_owned()));
    assert_eq!(opened.session.turn("Do the second.").await, Ok("The second is done.".to_owned()));
    let heard = opened.close().await;

    assert_eq!(*notes.kept(), [json!({"text": "hello"})]);
    assert_eq!(
        scenario.test_env.read("where").trim(),
        scenario.test_env.inside("").to_str().unwrap().trim_end_matches('/')
    );
    let last = scenario.model.requests().pop().unwrap()["input"].to_string();
    for words in ["noted as number 7", "CAR-1", "Do the first.", "Do the second."] {
        assert!(last.contains(words), "{words}: {last}");
    }
    let sessions: Vec<String> = heard
        .all()
        .into_iter()
        .filter_map(|event| match event {
            Event::SessionStarted { session, .. } => Some(session),
            _ => None,
        })
        .collect();
    assert_eq!(sessions.len(), 2);
    assert!(sessions.iter().all(|session| session.starts_with(&thread)), "{sessions:?}");
    let used = heard.all().into_iter().rev().find_map(|event| match event {
        Event::Usage(tokens) => Some((tokens.input, tokens.output, tokens.total)),
        _ => None,
    });
    assert_eq!(used, Some((40, 8, 48)));
    assert_eq!(heard.said("turn_completed").len(), 2);
    assert_eq!(heard.said("tool_call_completed"), ["note"]);
    assert_eq!(heard.said("malformed"), Vec::<String>::new());
}

#[tokio::test]
async fn codex_asks_for_approval_and_does_nothing_without_it() {
    let script = vec![ModelReply::Call("exec_command", json!({"cmd": "touch forbidden"}))];
    let Some(scenario) = Scenario::set(script).await else { return };
    let mut opened = scenario.open("untrusted", Arc::new(NoTools), None).await;
    let failure = opened.session.turn("Touch it.").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ApprovalRequired, "{failure}");
    assert!(failure.message.contains("touch forbidden"), "{failure}");
    opened.close().await;
    assert!(!scenario.test_env.inside("forbidden").exists());
}

#[tokio::test]
async fn codex_is_interrupted_and_its_thread_goes_on_later() {
    let script = vec![ModelReply::Say("Begun."), ModelReply::Silence, ModelReply::Say("Gone on.")];
    let Some(scenario) = Scenario::set(script).await else { return };
    let mut opened = scenario.open("never", Arc::new(NoTools), None).await;
    let thread = opened.session.thread();
    opened.session.turn("Begin.").await.unwrap();
    let (heard, stop) = (opened.heard.clone(), opened.stop.clone());
    let stopping = async {
        while scenario.model.requests().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(opened.session.turn("Wait."), stopping);
    assert_eq!(ended.unwrap_err().kind, FailureKind::Stopped);
    let begun = Instant::now();
    opened.close().await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    drop(heard);

    let mut again = scenario.open("never", Arc::new(NoTools), thread.clone()).await;
    assert_eq!(again.session.thread(), thread);
    assert_eq!(again.session.turn("Go on.").await, Ok("Gone on.".to_owned()));
    let heard = again.close().await;
    assert_eq!(heard.said("thread_resumed").len(), 1);
    let last = scenario.model.requests().pop().unwrap()["input"].to_string();
    assert!(last.contains("Begin.") && last.contains("interrupted"), "{last}");
}

#[tokio::test]
async fn codex_goes_on_with_its_thread_after_it_was_killed() {
    let script = vec![
        ModelReply::Call("note", json!({"text": "before"})),
        ModelReply::Say("Remember 42."),
        ModelReply::Silence,
        ModelReply::Call("note", json!({"text": "after"})),
        ModelReply::Say("It was 42."),
    ];
    let Some(scenario) = Scenario::set(script).await else { return };
    let notes = Arc::new(Notes::default());
    let tools = || -> Arc<dyn Tools> { Arc::<Notes>::clone(&notes) };
    let mut opened = scenario.open("never", tools(), None).await;
    let thread = opened.session.thread();
    opened.session.turn("Choose a number.").await.unwrap();
    let killing = async {
        while scenario.model.requests().len() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        kill_processes_of(scenario.test_env.home(".codex").to_str().unwrap());
    };
    let (ended, ()) = tokio::join!(opened.session.turn("Wait."), killing);
    assert_eq!(ended.unwrap_err().kind, FailureKind::Exited);
    opened.close().await;

    let mut again = scenario.open("never", tools(), thread.clone()).await;
    assert_eq!(again.session.thread(), thread);
    assert_eq!(again.session.turn("Which number?").await, Ok("It was 42.".to_owned()));
    let heard = again.close().await;
    assert_eq!(*notes.kept(), [json!({"text": "before"}), json!({"text": "after"})]);
    let last = scenario.model.requests().pop().unwrap()["input"].to_string();
    assert!(last.contains("Remember 42."), "{last}");
    let used = heard.all().into_iter().filter_map(|event| match event {
        Event::Usage(tokens) => Some(tokens.total),
        _ => None,
    });
    assert_eq!(used.collect::<Vec<_>>(), [12, 24], "what was used before counts once");
}

/// Kills processes with a text in their environment.
fn kill_processes_of(text: &str) {
    let mut killed = 0;
    for entry in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else { continue };
        if String::from_utf8_lossy(&environment).contains(text) {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            killed += 1;
        }
    }
    assert!(killed > 0, "there is no process to kill");
}

#[tokio::test]
async fn codex_starts_a_new_thread_when_its_old_one_is_lost() {
    let Some(scenario) = Scenario::set(vec![ModelReply::Say("Hello.")]).await else { return };
    let lost = "01a1e244-541f-7c23-a6be-000000000000".to_owned();
    let mut opened = scenario.open("never", Arc::new(NoTools), Some(lost.clone())).await;
    assert_ne!(opened.session.thread(), Some(lost));
    assert_eq!(opened.session.turn("Hi.").await, Ok("Hello.".to_owned()));
    let heard = opened.close().await;
    assert_eq!(heard.said("thread_not_resumed").len(), 1);
}

#[tokio::test]
async fn codex_that_is_refused_by_its_provider_fails_its_turn() {
    let script = vec![ModelReply::Refuse(429), ModelReply::Refuse(401)];
    let Some(scenario) = Scenario::set(script).await else { return };
    let mut opened = scenario.open("never", Arc::new(NoTools), None).await;
    let failure = opened.session.turn("Try.").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::RateLimited { retry_after: None }, "{failure}");
    let failure = opened.session.turn("Try.").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::TurnFailed, "{failure}");
    opened.close().await;
}

#[tokio::test]
async fn the_default_policy_and_a_read_only_sandbox_are_understood_by_codex() {
    let script = vec![
        ModelReply::Call("exec_command", json!({"cmd": "touch new || echo cannot-write"})),
        ModelReply::Say("Done."),
    ];
    let Some(scenario) = Scenario::set(script).await else { return };
    let yaml = format!(
        "codex: {{command: '{} app-server', thread_sandbox: read-only, read_timeout_ms: 30000}}",
        scenario.program.display()
    );
    let mut opened = scenario.test_env.open(&yaml).await.unwrap();
    assert_eq!(opened.session.turn("Try.").await, Ok("Done.".to_owned()));
    opened.close().await;
    assert!(!scenario.test_env.inside("new").exists());
    let last = scenario.model.requests().pop().unwrap()["input"].to_string();
    assert!(last.contains("cannot-write"), "{last}");
}
