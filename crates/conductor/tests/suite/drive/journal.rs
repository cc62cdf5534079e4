use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use carrel_agent::{FailureKind, Teardown};
use carrel_conductor::drive::PollMode;
use carrel_conductor::{IssueId, OperatorCommand, Stage};
use carrel_domain::{Clock as _, SystemClock};
use carrel_store::{Journal as _, RunFilter, TenureOutcome};
use pretty_assertions::assert_eq;

use super::harness::{Harness, TurnScript};

#[tokio::test]
async fn an_agent_that_is_ended_with_the_conductor_goes_on_in_its_conversation() {
    for orderly in [true, false] {
        let harness = Harness::new(|turn| {
            if turn.prompt.contains("interrupted") {
                TurnScript::Move("Done")
            } else {
                TurnScript::Hang
            }
        });
        let issue = harness.issue("first").await;
        let working = harness.start().await;
        working
            .until("it is in its turn", |state| {
                state.issues.values().any(|claimed| claimed.thread.is_some())
            })
            .await;
        if orderly {
            working.end().await;
            assert_eq!(harness.seen.closed.load(Ordering::SeqCst), 1);
        } else {
            working.kill().await;
        }
        let entries = harness.store().entries("local").await.unwrap();
        assert_eq!(entries[0].1["stage"]["stage"], "running", "{entries:?}");
        let working = harness.start().await;
        working.until("it is done", |state| state.issues.is_empty()).await;
        let threads = harness.seen.threads.lock().unwrap().clone();
        assert_eq!(threads, [None, Some(format!("thread-{issue}"))]);
        let runs = working.handle.runs(RunFilter::default()).await.unwrap();
        let outcomes: Vec<_> = runs.iter().map(|run| run.outcome.clone().unwrap()).collect();
        assert_eq!(outcomes[1], "interrupted");
        assert!(runs[0].run > runs[1].run);
        working.end().await;
    }
}

#[tokio::test]
async fn nothing_is_begun_that_could_not_be_written_down() {
    let harness = Harness::new(|_| TurnScript::Move("Done"));
    harness.issue("first").await;
    harness.stuck.store(true, Ordering::SeqCst);
    let working = harness.start().await;
    let refused = || harness.refused.load(Ordering::SeqCst);
    working.until("it is tried again", |_| refused() >= 2).await;
    assert_eq!(harness.prompts().len(), 0);
    assert!(!harness.path("ws/CAR-1").exists());
    harness.stuck.store(false, Ordering::SeqCst);
    working.until("it is done", |state| !state.outcomes.is_empty()).await;
    working.end().await;
}

#[tokio::test]
async fn once_ends_when_the_journal_cannot_be_written_any_more() {
    let closing = Arc::new(OnceLock::<Arc<AtomicBool>>::new());
    let harness = Harness::new({
        let closing = Arc::clone(&closing);
        move |_| {
            closing.get().unwrap().store(true, Ordering::SeqCst);
            TurnScript::Answer("done")
        }
    });
    closing.set(Arc::clone(&harness.closed)).unwrap();
    harness.issue("first").await;
    let (conductor, _stop) = harness.open(PollMode::Once).await.unwrap();
    let ended = tokio::time::timeout(std::time::Duration::from_mins(1), conductor.run()).await;
    let report = ended.expect("it ends by itself");
    let (what, why) = &report.failed[0];
    assert_eq!(what, "the journal");
    assert!(why.contains("no room"), "{why}");
}

#[tokio::test]
async fn a_stop_is_honoured_while_the_journal_cannot_be_written() {
    let harness = Harness::new(|_| TurnScript::Hang);
    let first = harness.issue("first").await;
    let working = harness.start().await;
    let runs = |stage: &Stage| matches!(stage, Stage::Running(_));
    working.until_stage(&first, "it runs", runs).await;
    working.until("it talks", |state| state.issues.values().any(|e| e.thread.is_some())).await;
    harness.closed.store(true, Ordering::SeqCst);
    // Something to write down, so that the loop is in the middle of trying.
    harness.issue("second").await;
    let refused = || harness.refused.load(Ordering::SeqCst);
    working.until("it is tried", |_| refused() >= 1).await;
    working.end().await;
    assert_eq!(harness.seen.closed.load(Ordering::SeqCst), 1);
    harness.closed.store(false, Ordering::SeqCst);
    let entries = harness.store().entries("local").await.unwrap();
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0].1["stage"]["stage"], "running");
}

#[tokio::test]
async fn a_superseded_conductor_stops_its_agents_and_writes_nothing() {
    let harness = Harness::new(|_| TurnScript::Hang);
    let first = harness.issue("first").await;
    let working = harness.start().await;
    let runs = |stage: &Stage| matches!(stage, Stage::Running(_));
    working.until_stage(&first, "it runs", runs).await;
    working.until("it talks", |state| state.issues.values().any(|e| e.thread.is_some())).await;
    let store = harness.store();
    let taken = store.acquire("local", "somebody else", SystemClock.now()).await.unwrap();
    assert!(matches!(taken, TenureOutcome::Acquired(_)));
    let before = (store.entries("local").await.unwrap(), store.last_run("local").await.unwrap());
    harness.issue("second").await;
    let report = working.ended().await;
    assert_eq!(report.superseded.as_deref(), Some("somebody else"));
    assert_eq!(harness.seen.closed.load(Ordering::SeqCst), 1);
    let after = (store.entries("local").await.unwrap(), store.last_run("local").await.unwrap());
    assert_eq!(before, after);
    assert_eq!(harness.prompts().len(), 1);
}

#[tokio::test]
async fn a_workspace_of_another_tracker_is_neither_used_nor_removed() {
    let harness = Harness::new(|_| TurnScript::Move("Done"));
    let issue = harness.issue("first").await;
    harness.shift(&issue, "Backlog").await;
    let other = Harness::new(|_| TurnScript::Hang).called("other");
    other.write(&format!("workspace: {{root: {}}}\n", harness.path("ws").display()));
    other.issue("a namesake").await;
    let working = other.start().await;
    working
        .until("it has a workspace", |state| {
            state.issues.values().any(|claimed| claimed.thread.is_some())
        })
        .await;
    std::fs::write(harness.path("ws/CAR-1/precious"), "").unwrap();
    harness.shift(&issue, "Todo").await;
    let report = harness.once().await;
    let [(name, error)] = report.failed.as_slice() else { panic!("{report:?}") };
    assert!(name == "CAR-1" && error.contains("another tracker (here)"), "{error}");
    assert!(error.contains("workspace.root") && error.contains("carrel workspace rm"), "{error}");
    // Nobody uses it any more, and still it is not to be cleaned up.
    working.end().await;
    harness.shift(&issue, "Done").await;
    assert_eq!(harness.once().await.failed, []);
    assert!(harness.path("ws/CAR-1/precious").exists());
}

#[tokio::test]
async fn backoff_attempts_and_spending_are_there_after_a_crash() {
    let harness = Harness::new(|_| TurnScript::Fail(FailureKind::TurnFailed, "no luck"));
    let issue = IssueId(harness.issue("first").await);
    let working = harness.start().await;
    let waits = |stage: &Stage| matches!(stage, Stage::Retrying(_));
    working.until_stage(&issue.0, "it waits", waits).await;
    let before = working.handle.state();
    working.kill().await;
    let working = harness.start().await;
    working
        .until("it has looked", |state| state.next_due().is_some() && !state.issues.is_empty())
        .await;
    let after = working.handle.state();
    let (before, after) = (&before.issues[&issue], &after.issues[&issue]);
    assert_eq!((&before.stage, before.attempt), (&after.stage, after.attempt));
    assert_eq!(before.spent, after.spent);
    assert_eq!(after.spent.total_tokens, 7);
    assert_eq!(harness.prompts().len(), 1);
    working.end().await;
}

#[tokio::test]
async fn what_was_closed_meanwhile_is_cleaned_up_before_anything_is_begun() {
    let harness = Harness::new(|_| TurnScript::Hang);
    let issue = harness.issue("first").await;
    let working = harness.start().await;
    working
        .until("it has a place", |state| state.issues.values().any(|e| e.workspace.is_some()))
        .await;
    working.kill().await;
    assert!(harness.path("ws").join(&issue).is_dir());
    harness.shift(&issue, "Closed").await;
    let working = harness.start().await;
    working.until("it is forgotten", |state| state.issues.is_empty()).await;
    assert!(!harness.path("ws").join(&issue).exists());
    assert_eq!(harness.prompts().len(), 1);
    working.end().await;
}

#[tokio::test]
async fn item_124_a_workspace_stays_where_it_is_when_the_root_is_moved() {
    let harness = Harness::new(|_| TurnScript::Fail(FailureKind::TurnFailed, "no luck"));
    let issue = harness.issue("first").await;
    let working = harness.start().await;
    working.until_stage(&issue, "it waits", |stage| matches!(stage, Stage::Retrying(_))).await;
    harness.write(&format!("workspace: {{root: {}}}", harness.path("elsewhere").display()));
    let other = |state: &carrel_conductor::State| {
        state.notices.iter().any(|told| format!("{told:?}").contains("WorkflowChanged"))
    };
    working.until("the file is in force", other).await;
    let second = harness.issue("second").await;
    working.handle.send(OperatorCommand::RetryNow(IssueId(issue.clone()))).await.unwrap();
    working
        .until_stage(&second, "the other waits", |stage| matches!(stage, Stage::Retrying(_)))
        .await;
    working.until("both were tried", |state| state.outcomes.values().sum::<u64>() >= 3).await;
    let state = working.handle.state();
    let place = |issue: &str| state.issues[&IssueId(issue.to_owned())].workspace.clone().unwrap();
    assert_eq!(place(&issue), harness.path("ws").join(&issue));
    assert_eq!(place(&second), harness.path("elsewhere").join(&second));
    harness.shift(&issue, "Closed").await;
    working.until("it is cleaned", |state| state.issues.len() == 1).await;
    assert!(!harness.path("ws").join(&issue).exists());
    working.end().await;
}

#[tokio::test]
async fn a_workspace_that_is_still_locked_gets_no_other_agent() {
    let harness = Harness::new(|_| TurnScript::Hang);
    let issue = harness.issue("first").await;
    let working = harness.start().await;
    working
        .until("it has a place", |state| state.issues.values().any(|e| e.workspace.is_some()))
        .await;
    // The lock is what a process of the run would hold; the task that held it is not gone at once.
    let (mut conductor, held) =
        (Some(working), harness.path("ws").join(".carrel/locks/CAR-1.lock"));
    let lock = std::fs::File::open(held).unwrap();
    lock.lock_shared().unwrap();
    conductor.take().unwrap().kill().await;
    let opening = tokio::spawn({
        let free = std::time::Instant::now() + std::time::Duration::from_secs(1);
        async move {
            tokio::time::sleep_until(free.into()).await;
            drop(lock);
        }
    });
    let began = std::time::Instant::now();
    let (conductor, _stop) = harness.open(PollMode::Continuous).await.unwrap();
    assert!(began.elapsed() >= std::time::Duration::from_millis(900));
    opening.await.unwrap();
    let runs = conductor.handle().runs(RunFilter::default()).await.unwrap();
    assert_eq!(
        (runs[0].identifier.as_str(), runs[0].outcome.as_deref()),
        (issue.as_str(), Some("interrupted"))
    );
    let state = conductor.handle().state();
    assert!(matches!(state.issues[&IssueId(issue)].stage, Stage::Running(_)));
}

/// What becomes of a conductor between two runs on an issue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    Nothing,
    Restart,
}

/// Lets an agent fail to open and leave a process behind, and looks whether another one works beside that.
async fn assert_waits_for_the_remains_of_one_that_did_not_open(between: Between) {
    let alive = Arc::new(AtomicBool::new(true));
    let beside = Arc::new(AtomicBool::new(false));
    let harness = Harness::new({
        let (alive, beside) = (Arc::clone(&alive), Arc::clone(&beside));
        move |_| {
            beside.fetch_or(alive.load(Ordering::SeqCst), Ordering::SeqCst);
            TurnScript::Move("Done")
        }
    });
    *harness.seen.unopened.lock().unwrap() = Some(Teardown::Incomplete);
    let issue = harness.issue("first").await;
    let mut working = harness.start().await;
    working.until_stage(&issue, "it waits", |stage| matches!(stage, Stage::Retrying(_))).await;
    // The lock is what a process of the run would hold.
    let lock = std::fs::File::open(harness.path("ws").join(".carrel/locks/CAR-1.lock")).unwrap();
    lock.lock_shared().unwrap();
    if between == Between::Restart {
        working.end().await;
        working = harness.start().await;
    }
    working.handle.send(OperatorCommand::RetryNow(IssueId(issue.clone()))).await.unwrap();
    working.until_stage(&issue, "it runs", |stage| matches!(stage, Stage::Running(_))).await;
    // Time for an agent that does not wait.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    alive.store(false, Ordering::SeqCst);
    drop(lock);
    working.until("an agent works", |_| !harness.prompts().is_empty()).await;
    assert!(!beside.load(Ordering::SeqCst), "it worked beside what was left");
    working.end().await;
}

#[tokio::test]
async fn what_is_left_of_an_agent_that_did_not_open_is_waited_for() {
    assert_waits_for_the_remains_of_one_that_did_not_open(Between::Nothing).await;
}

#[tokio::test]
async fn what_is_left_of_an_agent_that_did_not_open_is_waited_for_after_a_restart() {
    assert_waits_for_the_remains_of_one_that_did_not_open(Between::Restart).await;
}
