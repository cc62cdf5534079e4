use std::sync::atomic::{AtomicUsize, Ordering};

use carrel_conductor::{BlockReason, IssueId, Stage};
use carrel_store::RunFilter;
use pretty_assertions::assert_eq;

use super::harness::{Harness, Turn, TurnScript};

fn is_stuck(stage: &Stage) -> bool {
    matches!(stage, Stage::Blocked(block) if block.reason == BlockReason::NoProgress)
}

/// Returns the number of turns after which a script's issue is blocked for no progress.
async fn turns_until_stuck(script: fn(Turn) -> TurnScript, more: &str) -> usize {
    let harness = Harness::new(script);
    harness.write(more);
    let issue = harness.issue("first").await;
    let working = harness.start().await;
    working.until_stage(&issue, "it is blocked", is_stuck).await;
    let turns = harness.prompts().len();
    working.end().await;
    turns
}

/// Returns the budget that ends a script which always has an effect, and the number of its turns.
async fn turns_until_budget(script: fn(Turn) -> TurnScript) -> (usize, String) {
    let harness = Harness::new(script);
    harness.write("budgets: {issue: {turns: 6}}");
    let issue = harness.issue("first").await;
    let working = harness.start().await;
    let over = |stage: &Stage| matches!(stage, Stage::Blocked(_));
    working.until_stage(&issue, "it is blocked", over).await;
    let state = working.handle.state();
    let Stage::Blocked(block) = &state.issues[&IssueId(issue)].stage else { panic!() };
    let reason = block.reason.to_string();
    working.end().await;
    (harness.prompts().len(), reason)
}

const BUDGET: &str = "its budget is exhausted: for the issue, 6 of 6 turns are used up";

#[tokio::test]
async fn an_agent_that_only_finds_new_words_is_blocked_after_three_turns() {
    assert_eq!(turns_until_stuck(|_| TurnScript::NewWords, "").await, 3);
    assert_eq!(turns_until_stuck(|_| TurnScript::NewWords, "agent: {max_turns: 1}").await, 3);
    let fewer = "agent: {max_turns_without_progress: 1}";
    assert_eq!(turns_until_stuck(|_| TurnScript::NewWords, fewer).await, 1);
}

#[tokio::test]
async fn an_agent_that_only_looks_at_its_issue_or_moves_it_in_place_is_blocked() {
    assert_eq!(turns_until_stuck(|_| TurnScript::Look, "").await, 3);
    assert_eq!(turns_until_stuck(|_| TurnScript::Move("Todo"), "").await, 3);
}

#[tokio::test]
async fn writing_the_same_again_is_an_effect_only_once() {
    let script = |turn: Turn| {
        std::fs::write(turn.directory.join("work"), "the same").unwrap();
        TurnScript::NewWords
    };
    assert_eq!(turns_until_stuck(script, "").await, 4);
}

#[tokio::test]
async fn changes_of_hooks_are_not_those_of_the_agent() {
    // Only a turn of its own run is compared, so files that appear between two runs do not count.
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let harness = Harness::new(|turn| {
        RUNS.fetch_add(1, Ordering::SeqCst);
        let _ = turn;
        TurnScript::NewWords
    });
    harness.write("agent: {max_turns: 1}");
    let issue = harness.issue("first").await;
    let working = harness.start().await;
    for run in 1..3 {
        let ended = |state: &carrel_conductor::State| {
            let waits = |stage: &Stage| matches!(stage, Stage::Retrying(_));
            let claimed = state.issues.get(&IssueId(issue.clone()));
            claimed.is_some_and(|claimed| {
                claimed.turns_without_progress == run && waits(&claimed.stage)
            })
        };
        working.until("a run has ended", ended).await;
        std::fs::write(harness.path("ws").join(&issue).join("by-a-hook"), run.to_string()).unwrap();
    }
    working.until_stage(&issue, "it is blocked", is_stuck).await;
    assert_eq!(RUNS.load(Ordering::SeqCst), 3);
    working.end().await;
}

#[tokio::test]
async fn an_agent_that_writes_goes_on_to_its_budget() {
    let script = |turn: Turn| {
        std::fs::write(turn.directory.join("work"), turn.number.to_string()).unwrap();
        TurnScript::Answer("the same words")
    };
    assert_eq!(turns_until_budget(script).await, (6, BUDGET.to_owned()));
}

#[tokio::test]
async fn an_agent_that_comments_goes_on_to_its_budget() {
    assert_eq!(turns_until_budget(|_| TurnScript::Comment).await, (6, BUDGET.to_owned()));
}

#[tokio::test]
async fn a_kill_in_the_middle_keeps_the_count() {
    static TURNS: AtomicUsize = AtomicUsize::new(0);
    let harness = Harness::new(|_| match TURNS.fetch_add(1, Ordering::SeqCst) {
        2 => TurnScript::Hang,
        _ => TurnScript::NewWords,
    });
    let issue = harness.issue("first").await;
    let working = harness.start().await;
    working.until("the third turn has begun", |_| TURNS.load(Ordering::SeqCst) == 3).await;
    working.kill().await;
    let working = harness.start().await;
    working.until_stage(&issue, "it is blocked", is_stuck).await;
    assert_eq!(TURNS.load(Ordering::SeqCst), 4, "two turns, one that was cut short, and one more");
    let runs = working.handle.runs(RunFilter::default()).await.unwrap();
    assert_eq!(runs.len(), 2);
    working.end().await;
    let working = harness.start().await;
    working.until_stage(&issue, "it is still blocked", is_stuck).await;
    assert_eq!(TURNS.load(Ordering::SeqCst), 4);
    working.end().await;
}

#[tokio::test]
async fn the_transcript_says_which_effects_a_turn_had() {
    let harness = Harness::new(|turn| match turn.number {
        1 => {
            std::fs::write(turn.directory.join("work"), "done").unwrap();
            TurnScript::Comment
        }
        _ => TurnScript::NewWords,
    });
    let issue = harness.issue("first").await;
    let working = harness.start().await;
    working.until_stage(&issue, "it is blocked", is_stuck).await;
    let runs = working.handle.runs(RunFilter::default()).await.unwrap();
    let transcript = std::fs::read_to_string(runs[0].transcript.as_ref().unwrap()).unwrap();
    let lines = transcript.lines().map(|line| serde_json::from_str(line).unwrap());
    let effects: Vec<String> = lines
        .filter(|line: &serde_json::Value| line["event"] == "effects")
        .map(|line| line["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(effects, ["files, tracker", "none", "none", "none"]);
    working.end().await;
}
