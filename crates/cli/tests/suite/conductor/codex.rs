use std::path::Path;

use carrel_testkit::agents::real_codex;
use carrel_testkit::fake_model::{FakeModel, ModelReply};
use rustix::process::Signal;
use serde_json::json;

use super::ConductorFixture;
use crate::eventually;

/// Returns a fixture with one issue, whose agent is a real Codex that asks a fake model.
pub(super) fn codex_fixture(program: &Path, model: &FakeModel, settings: &str) -> ConductorFixture {
    let fixture = ConductorFixture::with(&format!(
        "{settings}codex: {{command: '{} app-server', approval_policy: never, read_timeout_ms: 30000}}",
        program.display()
    ));
    let home = fixture.fixture.path("home/.codex");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("config.toml"), model.codex_settings()).unwrap();
    fixture.issue("First");
    fixture
}

/// Tells whether any process has a text in its environment.
fn is_somebody_there(text: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut environments =
        entries.filter_map(|entry| std::fs::read(entry.path().join("environ")).ok());
    environments.any(|environment| String::from_utf8_lossy(&environment).contains(text))
}

#[tokio::test(flavor = "multi_thread")]
async fn item_113_codex_goes_on_with_its_thread_after_a_kill_of_carrel() {
    let program = match real_codex() {
        Ok(program) => program,
        Err(reason) => return carrel_skip::unavailable(&reason),
    };
    let model = FakeModel::start([
        ModelReply::Call("exec_command", json!({"cmd": "echo one > work"})),
        ModelReply::Say("Begun: remember 42."),
        ModelReply::Silence,
        ModelReply::Call("issue_move", json!({"state": "Done"})),
        ModelReply::Say("It was 42."),
    ])
    .await;
    let fixture = codex_fixture(&program, &model, "");

    let mut running = fixture.start();
    eventually("the second turn waits", || model.requests().len() == 3);
    running.signal(Signal::KILL);
    running.wait();
    let own = fixture.fixture.path("home/.codex/carrel").display().to_string();
    eventually("nothing of Codex is left", || !is_somebody_there(&own));

    let running = fixture.start();
    eventually("the issue is done", || fixture.state("CAR-1") == "Done");
    assert_eq!(running.end(), 0);
    let gone_on = model.requests()[3]["input"].to_string();
    for words in ["Do CAR-1.", "Begun: remember 42."] {
        assert!(gone_on.contains(words), "{words}: {gone_on}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_uses_a_tool_of_carrel_and_one_of_the_tracker() {
    let program = match real_codex() {
        Ok(program) => program,
        Err(reason) => return carrel_skip::unavailable(&reason),
    };
    let model = FakeModel::start([
        ModelReply::Call("Write", json!({"file_path": "made.txt", "content": "by a tool\n"})),
        ModelReply::Call(
            "Bash",
            json!({"command": "cat made.txt && ls /proc/1/root/home; echo end"}),
        ),
        ModelReply::Call("issue_move", json!({"state": "Human Review"})),
        ModelReply::Say("Done."),
    ])
    .await;
    let fixture = codex_fixture(&program, &model, "agent: {tools: [default]}\n");
    let run = fixture.once();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(fixture.state("CAR-1"), "Human Review");
    let made = fixture.workspace("CAR-1").join("made.txt");
    assert_eq!(std::fs::read_to_string(made).unwrap(), "by a tool\n");
    let last = model.requests().pop().unwrap()["input"].to_string();
    assert!(last.contains("by a tool") && last.contains("end"), "{last}");
}
