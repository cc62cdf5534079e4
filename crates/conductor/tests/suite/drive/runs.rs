use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use carrel_agent::FailureKind;
use carrel_conductor::drive::{CommandError, PollMode, StartError};
use carrel_conductor::{
    BlockReason, CommandRejection, IssueId, OperatorCommand, RetryReason, Stage,
};
use carrel_store::{NewIssue, RunFilter};
use pretty_assertions::assert_eq;

use super::harness::{CALLED, Harness, TurnScript};

fn files(path: &std::path::Path) -> usize {
    std::fs::read_dir(path).map_or(0, |entries| {
        entries.filter(|claimed| claimed.as_ref().unwrap().file_name() != ".carrel").count()
    })
}

#[tokio::test]
async fn an_issue_is_worked_off_and_its_workspace_goes_when_it_is_closed() {
    let harness = Harness::new(|turn| match turn.number {
        1 => TurnScript::Answer("half"),
        _ => TurnScript::Move("Done"),
    });
    harness.issue("first").await;
    let working = harness.start().await;
    working
        .until("the issue is forgotten", |state| {
            !state.outcomes.is_empty() && state.issues.is_empty()
        })
        .await;
    let prompts = harness.prompts();
    assert_eq!(prompts[0], ("CAR-1".to_owned(), "Do CAR-1, attempt .".to_owned()));
    assert!(prompts[1].1.starts_with("This is turn 2 of at most 20."), "{}", prompts[1].1);
    assert_eq!(*harness.seen.tools.lock().unwrap(), ["issue_show", "issue_comment", "issue_move"]);
    assert_eq!(files(&harness.path("ws")), 0);
    let runs = working.handle.runs(RunFilter::default()).await.unwrap();
    let run = &runs[0];
    assert_eq!((runs.len(), run.identifier.as_str(), run.ended_at.is_some()), (1, "CAR-1", true));
    let transcript = std::fs::read_to_string(run.transcript.as_ref().unwrap()).unwrap();
    for part in ["run_started", "Do CAR-1", "moved to Done", "run_ended"] {
        assert!(transcript.contains(part), "{part}: {transcript}");
    }
    let environment = harness.seen.environment.lock().unwrap().clone();
    assert_eq!(environment["CARREL_ISSUE_IDENTIFIER"], "CAR-1");
    working.end().await;
    assert_eq!(harness.seen.closed.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_snapshot_is_asked_for_before_each_turn() {
    let harness = Harness::new(|turn| match turn.number {
        1 | 2 => TurnScript::NewWords,
        _ => TurnScript::Move("Done"),
    });
    harness.issue("first").await;
    let working = harness.start().await;
    working
        .until("the issue is forgotten", |state| {
            !state.outcomes.is_empty() && state.issues.is_empty()
        })
        .await;
    let asked = harness.seen.snapshots.lock().unwrap().clone();
    assert_eq!(asked, [1, 2, 3].map(|turn| ("CAR-1".to_owned(), turn)));
    let runs = working.handle.runs(RunFilter::default()).await.unwrap();
    let transcript = std::fs::read_to_string(runs[0].transcript.as_ref().unwrap()).unwrap();
    assert!(transcript.contains(r#""number":"@2""#), "{transcript}");
    working.end().await;
}

#[tokio::test]
async fn item_015_the_prompt_gets_the_issue_and_the_attempt() {
    const ASKS: &str = "{{ issue.id }}|{{ issue.identifier }}|{{ issue.title }}|{{ issue.description }}|\
        {{ issue.priority }}|{{ issue.state }}|{{ issue.branch_name }}|{{ issue.url }}|\
        {{ issue.assignee_id }}|{{ issue.labels | join: ',' }}|{{ issue.native_ref }}|\
        {% for blocker in issue.blocked_by %}{{ blocker.id }} {{ blocker.identifier }} {{ blocker.state }}{% endfor %}|\
        {{ issue.dispatchable }}|{{ issue.created_at | slice: 0, 2 }}|{{ issue.updated_at | slice: -1 }}|{{ attempt }}";
    let harness = Harness::new(|_| TurnScript::Fail(FailureKind::TurnFailed, "no luck"));
    let text = std::fs::read_to_string(harness.path("WORKFLOW.md")).unwrap();
    let front = text.rsplit_once("---\n").unwrap().0;
    std::fs::write(harness.path("WORKFLOW.md"), format!("{front}---\n{ASKS}")).unwrap();
    let blocker = harness.issue("blocker").await;
    harness.shift(&blocker, "Done").await;
    let new_issue = NewIssue {
        title: "first".to_owned(),
        description: Some("why".to_owned()),
        priority: Some(2),
        state: "Todo".to_owned(),
        labels: vec!["Bug".to_owned(), "ui".to_owned()],
        blocked_by: vec![1],
    };
    let issue = harness.tracker().add(new_issue).await.unwrap().identifier;
    let working = harness.start().await;
    for attempt in ["", "1", "2"] {
        let waits = |stage: &Stage| matches!(stage, Stage::Retrying(_));
        working.until_stage(&issue, "it waits", waits).await;
        let (_, prompt) = harness.prompts().pop().unwrap();
        let told = "CAR-2|CAR-2|first|why|2|Todo|car-2|||bug,ui||CAR-1 CAR-1 Done|true|20|Z|";
        assert_eq!(prompt, format!("{told}{attempt}"));
        let tried = harness.prompts().len();
        working.handle.send(OperatorCommand::RetryNow(IssueId(issue.clone()))).await.unwrap();
        working.until("it is tried again", |_| harness.prompts().len() > tried).await;
    }
    working.end().await;
}

#[tokio::test]
async fn item_026_028_and_099_whatever_issues_are_called_each_agent_works_below_the_root() {
    let places = Arc::new(Mutex::new(BTreeMap::new()));
    let seen = Arc::clone(&places);
    let harness = Harness::new(move |turn| {
        seen.lock().unwrap().insert(turn.issue, turn.directory);
        TurnScript::Hang
    });
    let names = ["a/b", "a_b", "a b", "../../elsewhere", "/etc", "~", "\u{1f680}-1"];
    for name in names.into_iter().chain([".."]) {
        harness.issue(&format!("{CALLED}{name}")).await;
    }
    let working = harness.start().await;
    working.until("all but one work", |_| places.lock().unwrap().len() == names.len()).await;
    let places = places.lock().unwrap().clone();
    assert!(names.iter().all(|name| places.contains_key(*name)), "{places:?}");
    let keys: BTreeSet<_> = places.values().map(|place| place.file_name().unwrap()).collect();
    assert_eq!(keys.len(), names.len(), "{places:?}");
    for place in places.values() {
        assert_eq!(place.parent(), Some(harness.path("ws").as_path()));
        let safe = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        assert!(place.file_name().unwrap().to_str().unwrap().chars().all(safe), "{place:?}");
    }
    assert_eq!(files(&harness.path("ws")), names.len());
    let refused = |stage: &Stage| matches!(stage, Stage::Retrying(retry) if retry.error.as_ref().is_some_and(|error| error.contains("..")));
    working.until_stage("CAR-8", "that is no name for a directory", refused).await;
    working.end().await;
}

#[tokio::test]
async fn item_052_a_silent_agent_is_ended_and_its_issue_waits_for_another_attempt() {
    let harness = Harness::new(|_| TurnScript::Hang);
    harness.write("codex: {stall_timeout_ms: 300}");
    let issue = harness.issue("first").await;
    let working = harness.start().await;
    let stalled = |stage: &Stage| matches!(stage, Stage::Retrying(retry) if retry.reason == RetryReason::Stall);
    working.until_stage(&issue, "it waits", stalled).await;
    assert_eq!(harness.seen.closed.load(Ordering::SeqCst), 1, "its session is closed");
    let state = working.handle.state();
    let claimed = &state.issues[&IssueId(issue)];
    assert_eq!((claimed.attempt, state.agents()), (1, 0));
    working.end().await;
}

#[tokio::test]
async fn item_016_a_prompt_with_an_unknown_name_fails_the_attempt() {
    let harness = Harness::new(|_| TurnScript::Move("Done"));
    let text = std::fs::read_to_string(harness.path("WORKFLOW.md")).unwrap();
    std::fs::write(harness.path("WORKFLOW.md"), format!("{text} {{{{ issue.nope }}}}")).unwrap();
    let issue = harness.issue("first").await;
    let working = harness.start().await;
    working.until_stage(&issue, "it waits", |stage| matches!(stage, Stage::Retrying(_))).await;
    let state = working.handle.state();
    let Stage::Retrying(retry) = &state.issues[&IssueId(issue)].stage else { panic!() };
    let error = retry.error.as_ref().unwrap();
    assert!(error.contains("requested index=nope"), "{error}");
    assert_eq!(harness.prompts(), []);
    working.end().await;
}

#[tokio::test]
async fn an_agent_without_a_conversation_gets_its_instructions_in_every_turn() {
    let harness = Harness::new(|turn| match turn.number {
        1 => TurnScript::Answer("half"),
        _ => TurnScript::Move("Done"),
    });
    let harness = harness.forgetful();
    harness.issue("first").await;
    let working = harness.start().await;
    working
        .until("it is done", |state| state.issues.is_empty() && !state.outcomes.is_empty())
        .await;
    working.end().await;
    assert!(harness.prompts().iter().all(|(_, prompt)| prompt.starts_with("Do CAR-1")));
}

#[tokio::test]
async fn a_question_blocks_an_issue_until_an_operator_answers() {
    let harness = Harness::new(|turn| {
        if turn.prompt.contains("blue") {
            TurnScript::Move("Done")
        } else {
            TurnScript::Fail(FailureKind::InputRequired, "which colour?")
        }
    });
    let issue = harness.issue("first").await;
    let working = harness.start().await;
    let asks = |stage: &Stage| matches!(stage, Stage::Blocked(block) if block.reason == BlockReason::Input("which colour?".to_owned()));
    working.until_stage(&issue, "it asks", asks).await;
    let id = IssueId(issue);
    let refused = working
        .handle
        .send(OperatorCommand::Answer(IssueId("CAR-9".to_owned()), String::new()))
        .await;
    assert!(
        matches!(refused, Err(CommandError::Rejected(CommandRejection::UnknownIssue(_)))),
        "{refused:?}"
    );
    working.handle.send(OperatorCommand::Answer(id, "blue".to_owned())).await.unwrap();
    working.until("it is done", |state| state.issues.is_empty()).await;
    let prompts = harness.prompts();
    assert!(prompts[1].1.starts_with("You had asked something"), "{}", prompts[1].1);
    working.end().await;
}

#[tokio::test]
async fn one_that_fails_waits_and_one_that_breaks_is_a_failure() {
    for (deed, said) in [
        (TurnScript::Fail(FailureKind::TurnFailed, "no luck"), "turn_failed: no luck"),
        (TurnScript::Panic, "a defect in Carrel"),
    ] {
        let harness = Harness::new(move |_| deed.clone());
        let issue = harness.issue("first").await;
        let working = harness.start().await;
        let waits = |stage: &Stage| matches!(stage, Stage::Retrying(retry) if retry.reason == RetryReason::Failure);
        working.until_stage(&issue, "it waits", waits).await;
        let state = working.handle.state();
        let Stage::Retrying(retry) = &state.issues[&IssueId(issue)].stage else { panic!() };
        assert!(retry.error.as_ref().unwrap().contains(said), "{retry:?}");
        working.end().await;
    }
}

#[tokio::test]
async fn an_issue_that_is_moved_away_loses_its_agent_and_keeps_its_workspace() {
    let harness = Harness::new(|_| TurnScript::Hang);
    let issue = harness.issue("first").await;
    let working = harness.start().await;
    working
        .until("it works", |state| {
            state.agents() == 1 && state.issues.values().any(|e| e.workspace.is_some())
        })
        .await;
    harness.shift(&issue, "Backlog").await;
    working.until_stage(&issue, "it rests", |stage| *stage == Stage::Resting).await;
    assert_eq!((files(&harness.path("ws")), harness.seen.closed.load(Ordering::SeqCst)), (1, 1));
    harness.shift(&issue, "Closed").await;
    working.until("it is forgotten", |state| state.issues.is_empty()).await;
    assert_eq!(files(&harness.path("ws")), 0);
    working.end().await;
}

#[tokio::test]
async fn once_gives_every_issue_one_turn_and_tells_who_failed() {
    static TURNS: AtomicUsize = AtomicUsize::new(0);
    let harness = Harness::new(|turn| {
        let number = TURNS.fetch_add(1, Ordering::SeqCst).to_string();
        std::fs::write(turn.directory.join("work"), number).unwrap();
        match turn.issue.as_str() {
            "CAR-2" => TurnScript::Fail(FailureKind::TurnFailed, "no luck"),
            _ => TurnScript::Answer("done"),
        }
    });
    harness.write("agent: {max_concurrent_agents: 2}");
    for title in ["one", "two", "three"] {
        harness.issue(title).await;
    }
    let report = harness.once().await;
    assert_eq!(report.succeeded, 2);
    assert_eq!(report.failed, [("CAR-2".to_owned(), "turn_failed: no luck".to_owned())]);
    assert_eq!(harness.prompts().len(), 3);
    assert!(harness.seen.most_at_once.load(Ordering::SeqCst) <= 2);
    // What waits to be tried again is tried when somebody wants to see it.
    assert_eq!(harness.once().await.succeeded, 2);
    assert_eq!(harness.prompts().len(), 6);
    harness.away.store(true, Ordering::SeqCst);
    assert_eq!(harness.once().await.failed.len(), 1);
}

#[tokio::test]
async fn item_003_and_096_a_changed_file_is_in_force_and_a_broken_one_is_not() {
    let harness = Harness::new(|_| TurnScript::Hang);
    harness.write("agent: {max_concurrent_agents: 1}");
    for title in ["one", "two"] {
        harness.issue(title).await;
    }
    let working = harness.start().await;
    working.until("one works", |state| state.agents() == 1).await;
    harness.write("agent: {max_concurrent_agents: many}");
    working.until("the file is broken", |state| state.workflow_error.is_some()).await;
    assert_eq!(
        working.handle.workflow().config.conductor.as_ref().unwrap().agent.max_concurrent_agents,
        1
    );
    harness.write("agent: {max_concurrent_agents: 2}");
    working.until("two work", |state| state.workflow_error.is_none() && state.agents() == 2).await;
    let file = harness.path("WORKFLOW.md");
    let other = std::fs::read_to_string(&file).unwrap().replace("Do ", "Please do ");
    std::fs::write(&file, other.replace("agents: 2", "agents: 3")).unwrap();
    harness.issue("three").await;
    working.until("three work", |state| state.agents() == 3).await;
    working.until("all were asked", |_| harness.prompts().len() == 3).await;
    assert_eq!(harness.prompts()[2].1, "Please do CAR-3, attempt .");
    let told: Vec<_> = working
        .handle
        .state()
        .notices
        .iter()
        .map(|said| serde_json::to_value(&**said).unwrap())
        .collect();
    let count = |what: &str| told.iter().filter(|told| told["what"] == what).count();
    assert_eq!((count("workflow_broken"), count("workflow_changed")), (1, 2), "{told:?}");
    working.end().await;
}

#[tokio::test]
async fn item_097_no_second_conductor_takes_the_same_issues() {
    let harness = Harness::new(|_| TurnScript::Hang);
    let working = harness.start().await;
    let refused = harness.open(PollMode::Continuous).await;
    assert!(matches!(refused, Err(StartError::InUse { .. })));
    let said = refused.err().unwrap().to_string();
    assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
    working.end().await;
    harness.open(PollMode::Continuous).await.unwrap();
}

#[tokio::test]
async fn a_tracker_that_comes_back_is_asked_again() {
    let harness = Harness::new(|_| TurnScript::Move("Done"));
    harness.issue("first").await;
    harness.away.store(true, Ordering::SeqCst);
    let working = harness.start().await;
    working.until("it was said", |state| !state.notices.is_empty()).await;
    harness.away.store(false, Ordering::SeqCst);
    working
        .until("it is done", |state| !state.outcomes.is_empty() && state.issues.is_empty())
        .await;
    working.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_are_never_two_for_one_issue() {
    static TURNS: AtomicUsize = AtomicUsize::new(0);
    let harness = Harness::new(|turn| {
        TURNS.fetch_add(1, Ordering::SeqCst);
        if turn.number < 3 {
            TurnScript::Answer(if turn.number == 1 { "begun" } else { "going on" })
        } else {
            TurnScript::Move("Done")
        }
    });
    harness.write("agent: {max_concurrent_agents: 7}");
    for number in 0..30 {
        harness.issue(&number.to_string()).await;
    }
    let working = harness.start().await;
    working
        .until("all are done", |state| {
            state.outcomes.values().sum::<u64>() >= 30 && state.issues.is_empty()
        })
        .await;
    working.end().await;
    assert_eq!(TURNS.load(Ordering::SeqCst), 90);
    assert!(!harness.seen.doubled.load(Ordering::SeqCst));
    assert!(harness.seen.most_at_once.load(Ordering::SeqCst) <= 7);
}
