//! Agents that make progress, and agents that only talk.

use carrel_testkit::agents::{CODEX, real_codex};
use carrel_testkit::fake_model::{FakeModel, ModelReply};
use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::json;

use super::codex::codex_fixture;
use super::seen::StateApi;
use super::{ConductorFixture, Running};
use crate::{Run, eventually};

/// A repository with a commit, an ignored log and a filter that must never run outside the sandbox.
const REPOSITORY: &str = r"hooks:
  after_create: |
    set -e
    git init -q -b main .
    git config user.name Example && git config user.email example@localhost
    echo '*.log' > .gitignore && echo one > tracked
    git add . && git commit -q -m first
    echo '* filter=evil' > .git/info/attributes
    git config filter.evil.clean 'touch OUTSIDE/../evil 2>/dev/null; cat'
";

/// The settings of an agent that counts its turns.
fn agent(script: &str) -> String {
    format!(
        "agent:\n  kind: command\n  sandbox: {{writable: [OUTSIDE]}}\n  command: |\n    echo turn >> OUTSIDE/turns\n    {script}\n    echo \"Nothing is left to do at $(date +%s%N).\"\n"
    )
}

fn turns(fixture: &ConductorFixture) -> usize {
    fixture.notes("turns").lines().count()
}

/// Waits until an issue is blocked, and returns the reason with its sentence.
fn blocked(fixture: &ConductorFixture, running: &Running) -> (String, String) {
    let api = StateApi::of(fixture, running);
    let state = || api.get("/api/v1/state").body;
    running.until("the issue is blocked", || state()["counts"]["blocked"] == 1);
    let row = state()["blocked"][0].clone();
    let text = |name: &str| row[name].as_str().unwrap().to_owned();
    (text("reason"), text("error"))
}

/// Returns the number of turns after which an agent in a repository is blocked, and the reason.
fn outcome(script: &str) -> (usize, String) {
    let budget = "budgets: {issue: {turns: 5}}\n";
    let fixture = ConductorFixture::with(&format!("{REPOSITORY}{budget}{}", agent(script)));
    fixture.issue("one");
    let running = fixture.start_with(&["--port", "0"]);
    let (reason, _) = blocked(&fixture, &running);
    assert_eq!(running.end(), 0);
    assert!(!fixture.fixture.path("evil").exists(), "a program of the repository ran outside");
    (turns(&fixture), reason)
}

#[test]
fn a_command_that_only_finds_new_words_is_blocked_after_three_turns() {
    let fixture = ConductorFixture::with(&agent("true"));
    fixture.issue("one");
    let running = fixture.start_with(&["--port", "0"]);
    let (reason, error) = blocked(&fixture, &running);
    assert_eq!(reason, "no_progress");
    assert!(error.starts_with("no progress: "), "{error}");
    assert_eq!(turns(&fixture), 3);
    assert!(running.log().contains("no progress"), "{}", running.log());
    let api = StateApi::of(&fixture, &running);
    let shown = api.get("/api/v1/CAR-1").body;
    assert_eq!(
        (&shown["status"], &shown["blocked"]["reason"]),
        (&json!("blocked"), &json!("no_progress"))
    );
    let mut command = fixture.command(&["conductor", "state"]);
    command.args(["--server", &api.server()]).env("CARREL_TOKEN", api.token());
    let state = Run::of(command);
    assert!(state.stdout.contains("no progress"), "{}{}", state.stdout, state.stderr);
    assert_eq!(running.end(), 0);
    assert_eq!(turns(&fixture), 3);
}

#[test]
fn in_a_repository_contents_and_commits_count_and_nothing_else() {
    let stuck = |turns: usize| (turns, "no_progress".to_owned());
    let over = || (5, "budget".to_owned());
    for (script, expected) in [
        ("touch tracked; echo one > tracked", stuck(3)),
        ("date +%N >> growing.log; mkdir -p a && date +%N > a/deep.log", stuck(3)),
        ("git -c core.fsmonitor= commit -q --amend --no-edit --reset-author", stuck(3)),
        ("date +%N > tracked", over()),
        ("date +%N > untracked", over()),
        ("ln -sfn $(date +%N) link", over()),
        ("date +%N > tracked; git commit -q -a -m more", over()),
        ("git branch b$(date +%N)", over()),
    ] {
        assert_eq!(outcome(script), expected, "{script}");
    }
}

#[test]
fn a_kill_in_the_middle_keeps_the_count_of_a_command() {
    let script = "test $(wc -l < OUTSIDE/turns) != 3 || sleep 1000";
    let fixture = ConductorFixture::with(&agent(script));
    fixture.issue("one");
    let mut running = fixture.start();
    running.until("the third turn has begun", || turns(&fixture) == 3);
    running.signal(Signal::KILL);
    running.wait();
    std::fs::remove_file(&running.log).unwrap();
    let running = fixture.start_with(&["--port", "0"]);
    assert_eq!(blocked(&fixture, &running).0, "no_progress");
    assert_eq!(turns(&fixture), 4, "two, one that was cut short, and one more");
    assert_eq!(running.end(), 0);
}

#[test]
fn a_codex_server_that_only_finds_new_words_is_blocked_after_three_turns() {
    let fixture = ConductorFixture::new();
    let script = CODEX.replace(">>received", ">>/dev/null").replace(
        "success) usage $((turn * 10)) \"$turn\"; done_well ;;",
        "success) usage $((turn * 10)) \"$turn\"; done_well \"nothing is left at $(date +%N)\" ;;",
    );
    assert!(script.contains("nothing is left"), "the script has changed");
    let program = fixture.fixture.path("outside/codex.sh");
    std::fs::write(&program, script).unwrap();
    fixture.write("agent: {sandbox: {readable: [OUTSIDE]}}\ncodex: {command: 'bash OUTSIDE/codex.sh success'}");
    fixture.issue("one");
    let running = fixture.start_with(&["--port", "0"]);
    assert_eq!(blocked(&fixture, &running).0, "no_progress");
    let api = StateApi::of(&fixture, &running);
    assert_eq!(api.get("/api/v1/CAR-1").body["totals"]["turns"], 3);
    assert_eq!(running.end(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_with_a_model_that_only_finds_new_words_is_blocked_after_three_turns() {
    let program = match real_codex() {
        Ok(program) => program,
        Err(reason) => return carrel_skip::unavailable(&reason),
    };
    let words =
        ["Nothing is left.", "All is done.", "It is finished.", "I am done.", "Done, done."];
    let model = FakeModel::start(words.map(ModelReply::Say)).await;
    let fixture = codex_fixture(&program, &model, "");
    let running = fixture.start();
    eventually("it is blocked", || running.log().contains("no progress"));
    assert_eq!(model.requests().len(), 3);
    assert_eq!(running.end(), 0);
}
