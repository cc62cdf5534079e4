//! Items of the acceptance list that the loop alone can show, by number (`docs/conformance.md`).

use std::path::PathBuf;
use std::time::Duration;

use carrel_conductor::dashboard::render;
use carrel_conductor::snapshot::Snapshot;
use carrel_conductor::{
    AgentUpdate, Effect, Event, Issue, Mode, Notice, OperatorCommand, PollState, RetryReason,
    Rules, RunEnd, Spend, Stage, TrackerError, TrackerErrorKind,
};
use carrel_config::{Budgets, Environment, ValidationScope, Workflow};
use carrel_domain::Timestamp;
use serde_json::json;

use crate::decide_harness::{Loop, SOME_EFFECT, moved};
use crate::simulated_world::{BEGIN, issue, rules};

fn after(seconds: i64) -> Timestamp {
    Timestamp::from_millis(BEGIN + seconds * 1000)
}

#[test]
fn item_041_issues_are_begun_by_priority_and_then_by_age() {
    let of = |number, priority, age: Option<i64>| Issue {
        priority,
        created_at: age.map(after),
        ..issue(number)
    };
    let mut rules = rules();
    rules.max_agents = 10;
    let mut it = Loop::with(rules);
    it.lists(&[
        of(0, None, Some(1)),
        of(1, Some(2), Some(9)),
        of(2, Some(1), None),
        of(3, Some(1), Some(5)),
        of(4, Some(1), Some(3)),
        of(5, Some(0), Some(0)),
        of(6, Some(4), Some(7)),
        of(7, Some(2), Some(9)),
    ]);
    let order = ["id-4", "id-3", "id-2", "id-1", "id-7", "id-6", "id-5", "id-0"];
    assert_eq!(it.taken(), order);
}

#[test]
fn item_041_an_older_issue_that_is_seen_later_goes_before_a_younger_one() {
    let of = |number, age| Issue { created_at: Some(after(age)), ..issue(number) };
    let mut rules = rules();
    rules.max_agents = 1;
    let mut it = Loop::with(rules);
    let run = it.begins(&of(0, 0));
    it.polls(&[of(0, 0), of(1, 9)]);
    it.polls(&[of(0, 0), of(1, 9), of(2, 5)]);
    let waiting = Snapshot::of(&it.state, Timestamp::from_millis(it.now)).waiting;
    let waiting: Vec<_> = waiting.into_iter().map(|row| row.issue_identifier).collect();
    assert_eq!(waiting, ["CAR-2", "CAR-1"]);
    it.ends(run, RunEnd::Completed);
    assert_eq!(it.taken(), ["id-2"]);
}

#[test]
fn item_041_an_issue_that_is_continued_again_and_again_does_not_starve_others() {
    let mut rules = rules();
    rules.max_agents = 1;
    let mut it = Loop::with(rules);
    let all = [0, 1, 2, 3].map(issue);
    let mut run = it.begins(&all[0]);
    let mut begun = Vec::new();
    it.polls(&all[..3]);
    for round in 0..5 {
        if round == 2 {
            it.command(OperatorCommand::Refresh);
            it.lists(&all);
        }
        // Whoever was continued is due by then.
        it.now += 5000;
        it.ends(run, RunEnd::Completed);
        begun.extend(it.taken());
        it.reads(&all);
        run = it.start().expect("one of them holds the slot").run;
    }
    // The last one was seen after the first had become due again, and before the second had.
    assert_eq!(begun, ["id-1", "id-2", "id-0", "id-3", "id-1"]);
}

#[test]
fn item_014_no_more_agents_run_for_a_state_than_it_may_have() {
    let mut rules = rules();
    rules.max_agents = 10;
    rules.max_agents_by_state = [("todo".to_owned(), 2)].into();
    let mut it = Loop::with(rules);
    let spelled = |number, state: &str| moved(&issue(number), state);
    it.lists(&[
        spelled(0, "Todo"),
        spelled(1, " TODO "),
        spelled(2, "todo"),
        spelled(3, "In Progress"),
        spelled(4, "In Progress"),
        spelled(5, "in progress"),
    ]);
    assert_eq!(it.taken(), ["id-0", "id-1", "id-3", "id-4", "id-5"]);
}

#[test]
fn item_014_043_050_052_and_106_the_rules_of_the_loop_are_those_of_the_file() {
    let text = "---\n\
        tracker: {kind: local, active_states: [' To Do '], terminal_states: [DONE], required_labels: [Agent]}\n\
        agent: {max_concurrent_agents: 4, max_concurrent_agents_by_state: {To Do: 2}, max_turns: 6, max_turns_without_progress: 2, max_retry_backoff_ms: 7000}\n\
        codex: {stall_timeout_ms: 8000}\n\
        polling: {interval_ms: 9000}\n\
        budgets: {run: {tokens: 5}, issue: {turns: 7, tokens: 0, minutes: 0, attempts: 0}}\n---\n";
    let file = std::path::Path::new("/w/WORKFLOW.md");
    let workflow = Workflow::parse(
        text.as_bytes(),
        file,
        &Environment::default(),
        ValidationScope::Everything,
    );
    let config = workflow.unwrap().config.conductor.unwrap();
    let words = |word: &str| [word.to_owned()].into();
    let mut budgets = Budgets::default();
    budgets.run.tokens = Some(5);
    budgets.issue.turns = Some(7);
    let expected = Rules {
        active: words("to do"),
        terminal: words("done"),
        required_labels: words("agent"),
        max_agents: 4,
        max_agents_by_state: [("to do".to_owned(), 2)].into(),
        max_turns: 6,
        max_turns_without_progress: Some(2),
        max_backoff: Duration::from_secs(7),
        stall_timeout: Some(Duration::from_secs(8)),
        poll_interval: Duration::from_secs(9),
        budgets,
    };
    assert_eq!(Rules::of(&config), expected);
}

#[test]
fn item_042_what_the_tracker_keeps_back_is_never_begun() {
    let kept = Issue { dispatchable: false, ..issue(0) };
    let mut it = Loop::new();
    it.lists(std::slice::from_ref(&kept));
    assert!(it.taken().is_empty() && it.state.waiting.is_empty());
    // Kept back between the list and the second look.
    it.polls(&[issue(0)]);
    it.reads(&[kept]);
    assert!(it.start().is_none());
    assert!(it.state.issues.is_empty());
}

#[test]
fn item_043_required_labels_are_compared_without_case_and_space() {
    let mut rules = rules();
    rules.required_labels = ["agent".to_owned(), "ready".to_owned()].into();
    let labels = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect();
    let mut it = Loop::with(rules);
    let fits = Issue { labels: labels(&[" Agent", "READY ", "other"]), ..issue(0) };
    let lacks = Issue { labels: labels(&["agent"]), ..issue(1) };
    it.lists(&[fits, lacks]);
    assert_eq!(it.taken(), ["id-0"]);
}

#[test]
fn item_043_a_blank_required_label_matches_nothing() {
    let mut rules = rules();
    rules.required_labels = [String::new()].into();
    let mut it = Loop::with(rules);
    it.lists(&[issue(0)]);
    assert!(it.taken().is_empty());
}

#[test]
fn item_044_a_refresh_in_an_active_state_updates_what_runs() {
    let mut it = Loop::new();
    it.begins(&issue(0));
    let changed = Issue { title: "Another".to_owned(), ..moved(&issue(0), "In Progress") };
    it.polls(std::slice::from_ref(&changed));
    assert_eq!(it.claimed(&changed).issue, changed);
    assert!(matches!(it.stage(&changed), Some(Stage::Running(_))));
    assert!(it.effects.contains(&Effect::Save(changed.id)), "and it is remembered");
}

#[test]
fn item_045_and_107_a_state_that_is_not_active_stops_the_agent_and_keeps_the_workspace() {
    for elsewhere in [Some(moved(&issue(0), "Review")), None] {
        let mut it = Loop::new();
        let run = it.begins(&issue(0));
        it.apply(Event::WorkspaceReady(run, PathBuf::from("/root/CAR-0")));
        it.polls(&[]);
        it.reads(elsewhere.as_slice());
        assert!(it.stops(run) && !it.cleans());
        it.ends(run, RunEnd::Failed("stopped".to_owned()));
        assert_eq!(it.stage(&issue(0)), Some(&Stage::Resting));
        assert!(!it.cleans() && it.start().is_none());
        assert_eq!(it.claimed(&issue(0)).workspace, Some(PathBuf::from("/root/CAR-0")));
    }
}

#[test]
fn item_046_and_107_a_terminal_state_stops_the_agent_and_then_cleans_up() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.apply(Event::WorkspaceReady(run, PathBuf::from("/root/CAR-0")));
    it.polls(&[]);
    let done = moved(&issue(0), "Done");
    it.reads(std::slice::from_ref(&done));
    assert!(it.stops(run));
    assert!(!it.cleans(), "not while the agent lives");
    it.ends(run, RunEnd::Failed("stopped".to_owned()));
    let clean = Effect::Clean(Box::new(done.clone()), Some(PathBuf::from("/root/CAR-0")));
    assert!(it.effects.contains(&clean));
    it.apply(Event::Cleaned(done.id.clone(), Ok(None)));
    assert!(it.state.issues.is_empty() && it.effects.contains(&Effect::Erase(done.id)));
}

#[test]
fn item_047_with_nothing_running_there_is_nothing_to_reconcile() {
    let mut it = Loop::new();
    it.lists(&[]);
    assert_eq!(it.effects, []);
}

#[test]
fn item_048_and_105_a_run_that_ends_well_is_continued_after_a_second_as_attempt_one() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    assert_eq!(it.state.issues[&issue(0).id].attempt, 0);
    it.ends(run, RunEnd::Completed);
    let Some(Stage::Retrying(retry)) = it.stage(&issue(0)) else { panic!("{:?}", it.effects) };
    assert_eq!((retry.reason, retry.due), (RetryReason::Continuation, after(1)));
    it.after(1000);
    it.reads(&[issue(0)]);
    let start = it.start().expect("it goes on");
    assert_eq!((start.attempt, &start.thread), (Some(1), &None));
}

#[test]
fn item_049_and_105_failures_are_retried_after_10_s_and_then_twice_as_long_each_time() {
    let mut it = Loop::new();
    it.state.rules.max_backoff = Duration::from_mins(5);
    let mut run = it.begins(&issue(0));
    for (attempt, seconds) in [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160)] {
        it.ends(run, RunEnd::Failed("it broke".to_owned()));
        let Some(Stage::Retrying(retry)) = it.stage(&issue(0)) else { panic!("{:?}", it.effects) };
        let wait = retry.due.as_millis() - it.now;
        assert!((seconds * 1000..=seconds * 1100).contains(&wait), "{attempt}: {wait}");
        assert_eq!(it.claimed(&issue(0)).attempt, attempt);
        it.after(wait - 1);
        assert!(it.taken().is_empty(), "not before its time");
        it.after(1);
        it.reads(&[issue(0)]);
        run = it.start().expect("it is tried again").run;
        assert_eq!(it.start().and_then(|start| start.attempt), Some(attempt));
    }
}

#[test]
fn item_050_and_106_the_longest_wait_is_the_one_of_the_workflow_file() {
    let mut it = Loop::new();
    it.state.rules.max_backoff = Duration::from_secs(15);
    let mut run = it.begins(&issue(0));
    for attempt in 1..9 {
        it.ends(run, RunEnd::Failed("it broke".to_owned()));
        let Some(Stage::Retrying(retry)) = it.stage(&issue(0)) else { panic!("{:?}", it.effects) };
        let wait = retry.due.as_millis() - it.now;
        // Those that wait as long as they may are a tenth apart, too.
        let least = if attempt == 1 { 10_000 } else { 13_500 };
        assert!((least..=15_000).contains(&wait), "{attempt}: {wait}");
        it.after(15_000);
        it.reads(&[issue(0)]);
        run = it.start().expect("it is tried again").run;
    }
}

#[test]
fn item_051_a_retry_knows_its_attempt_due_time_name_and_error() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.ends(run, RunEnd::Failed("it broke".to_owned()));
    let claimed = it.claimed(&issue(0));
    let Stage::Retrying(retry) = &claimed.stage else { panic!("{claimed:?}") };
    assert_eq!((claimed.attempt, claimed.issue.identifier.as_str()), (1, "CAR-0"));
    assert_eq!(retry.error.as_deref(), Some("it broke"));
    assert!(retry.due > after(9));
    assert!(it.effects.contains(&Effect::Save(issue(0).id)), "and it is remembered");
}

#[test]
fn item_052_a_stalled_agent_is_ended_and_its_issue_retried() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.after(60_000);
    assert!(!it.stops(run), "silence is allowed for so long");
    it.after(1);
    assert!(it.stops(run));
    it.ends(run, RunEnd::Failed("stopped".to_owned()));
    let Some(Stage::Retrying(retry)) = it.stage(&issue(0)) else { panic!("{:?}", it.effects) };
    assert_eq!(retry.reason, RetryReason::Stall);
    assert_eq!(retry.error.as_deref(), Some("stalled for 60001 ms without agent activity"));
}

#[test]
fn item_053_a_retry_without_a_slot_waits_visibly_and_is_no_failure() {
    let mut rules = rules();
    rules.max_agents = 1;
    let mut it = Loop::with(rules);
    let run = it.begins(&issue(0));
    it.ends(run, RunEnd::Failed("it broke".to_owned()));
    // Another one takes the place meanwhile.
    it.now += 500;
    it.command(OperatorCommand::Refresh);
    it.lists(&[issue(0), issue(1)]);
    it.reads(&[issue(1)]);
    let other = it.start().expect("the other is begun").run;
    it.after(11_000);
    let claimed = it.claimed(&issue(0));
    let Stage::Retrying(retry) = &claimed.stage else { panic!("{claimed:?}") };
    assert!(retry.no_slot);
    assert_eq!((claimed.attempt, retry.error.as_deref()), (1, Some("it broke")));
    let seen = Snapshot::of(&it.state, Timestamp::from_millis(it.now));
    assert!(seen.retrying[0].waits_for_slot);
    let screen = render(&seen, 120, 40).plain();
    assert!(screen.contains("waits for a slot"), "{screen}");
    assert_eq!(it.state.next_due().map(|due| due > after(11)), Some(true), "it does not spin");
    it.ends(other, RunEnd::Failed("too".to_owned()));
    assert_eq!(it.taken(), ["id-0"], "it has waited longest");
    it.reads(&[issue(0)]);
    assert_eq!(it.start().and_then(|start| start.attempt), Some(1));
}

#[test]
fn item_080_sums_of_tokens_stay_right_over_repeated_reports() {
    let used = |input, output| Spend {
        input_tokens: input,
        output_tokens: output,
        total_tokens: input + output,
        ..Spend::default()
    };
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    for (input, output) in [(10, 1), (10, 1), (30, 5), (20, 4), (30, 5)] {
        it.updates(run, AgentUpdate::Usage(used(input, output)));
    }
    let sum = |it: &Loop| {
        let spent = it.state.spent(Timestamp::from_millis(it.now));
        (spent.input_tokens, spent.output_tokens, spent.total_tokens)
    };
    assert_eq!(sum(&it), (30, 5, 35));
    it.now += 5000;
    let live = it.state.spent(Timestamp::from_millis(it.now)).time;
    assert_eq!(live, Duration::from_secs(5), "agents at work count");
    it.ends(run, RunEnd::Completed);
    it.after(1000);
    it.reads(&[issue(0)]);
    let run = it.start().expect("it goes on").run;
    it.updates(run, AgentUpdate::Usage(used(7, 1)));
    assert_eq!(sum(&it), (37, 6, 43), "a new run counts from nothing");
    let spent = it.state.spent(Timestamp::from_millis(it.now)).time;
    assert_eq!(spent, Duration::from_secs(5), "and nothing is counted twice");
}

#[test]
fn item_080_the_latest_rate_limits_win_and_a_used_up_one_holds_what_is_to_be_begun() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.updates(run, AgentUpdate::RateLimits(json!({ "primary": { "usedPercent": 10 } })));
    let full = json!({ "primary": { "usedPercent": 100, "resetsInSeconds": 90 } });
    it.updates(run, AgentUpdate::RateLimits(full.clone()));
    assert_eq!(it.state.rate_limits, Some(full));
    it.polls(&[issue(0), issue(1)]);
    assert!(it.taken().is_empty(), "nothing is begun");
    assert_eq!(it.state.next_due().map(|due| due <= after(90)), Some(true));
    it.state.rules.stall_timeout = None;
    it.state.poll = PollState::Waiting { due: after(100_000) };
    assert_eq!(it.state.next_due(), Some(after(90)), "but then it is");
    it.after(60_000);
    assert_eq!(it.taken(), ["id-1"]);
}

#[test]
fn item_125_a_restart_never_overlaps_two_agents_for_one_issue() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.updates(
        run,
        AgentUpdate::SessionStarted { session: "t-1".to_owned(), thread: "t".to_owned() },
    );
    it.restart();
    it.apply(Event::Due);
    assert!(it.start().is_none(), "first it is read");
    it.reads(&[issue(0)]);
    assert_eq!(it.taken(), ["id-0"]);
    let poll = it.poll_query().unwrap();
    it.reads(&[issue(0)]);
    let start = it.start().expect("it is taken up again").clone();
    assert!(start.run > run, "under another number");
    assert_eq!(start.thread.as_deref(), Some("t"), "in the same conversation");
    it.apply(Event::Polled(poll, Ok(vec![issue(0)])));
    assert!(it.start().is_none() && it.taken().is_empty());
    it.ends(run, RunEnd::Completed);
    assert!(matches!(it.stage(&issue(0)), Some(Stage::Running(now)) if now.id == start.run));
}

#[test]
fn item_126_late_answers_and_timers_are_ignored_and_refreshes_come_together() {
    let mut it = Loop::new();
    let first = it.poll_query().unwrap();
    it.lists(&[]);
    it.apply(Event::Polled(first, Ok(vec![issue(0)])));
    assert_eq!(it.effects, [], "that question was answered");
    it.command(OperatorCommand::Refresh);
    let second = it.poll_query().expect("a refresh asks at once");
    for _ in 0..3 {
        it.command(OperatorCommand::Refresh);
        assert_eq!(it.effects, []);
    }
    assert_eq!(it.state.poll, PollState::InFlight { query: second, repeat: true });
    it.apply(Event::Polled(second, Ok(vec![])));
    let third = it.poll_query().expect("one more for all of them");
    it.apply(Event::Polled(third, Ok(vec![])));
    assert_eq!(it.poll_query(), None, "and not two");
    it.apply(Event::Due);
    assert_eq!(it.effects, [], "a timer that is out of date does nothing");
}

#[test]
fn item_126_an_answer_from_before_the_end_of_a_turn_begins_no_other() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.now += 30_000;
    it.apply(Event::Due);
    let poll = it.poll_query().unwrap();
    it.updates(run, AgentUpdate::TurnEnded(SOME_EFFECT));
    let done = moved(&issue(0), "Done");
    let (query, ids) = it.read_query().unwrap();
    it.apply(Event::Polled(poll, Ok(vec![issue(0)])));
    assert!(!it.effects.iter().any(|effect| matches!(effect, Effect::NextTurn { .. })));
    it.apply(Event::Read(query, ids, Ok(vec![done])));
    assert_eq!(it.effects.iter().filter(|effect| **effect == Effect::Finish(run)).count(), 1);
    it.ends(run, RunEnd::Completed);
    assert!(it.cleans());
}

#[test]
fn item_126_an_answer_that_is_overtaken_by_a_later_one_says_nothing() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.polls(&[]);
    let (early, ids) = it.read_query().unwrap();
    it.polls(&[issue(0)]);
    it.apply(Event::Read(early, ids, Ok(vec![moved(&issue(0), "Done")])));
    assert_eq!(it.effects, [], "it was finished before it was reopened");
    assert!(matches!(it.stage(&issue(0)), Some(Stage::Running(there)) if there.id == run));
}

#[test]
fn item_125_an_issue_that_waits_for_a_slot_is_not_dispatched_while_its_workspace_is_removed() {
    let mut rules = rules();
    rules.max_agents = 1;
    let mut it = Loop::with(rules);
    let run = it.begins(&issue(0));
    it.apply(Event::WorkspaceReady(run, PathBuf::from("/root/CAR-0")));
    it.polls(&[]);
    it.reads(&[]);
    it.ends(run, RunEnd::Failed("stopped".to_owned()));
    // Another one has the place while the first may be worked on again, and then is finished.
    it.polls(&[Issue { priority: Some(1), ..issue(1) }, issue(0)]);
    it.reads(&[issue(1)]);
    let other = it.start().expect("the other is begun").run;
    assert!(it.state.waiting.contains_key(&issue(0).id));
    it.now += 30_000;
    it.apply(Event::Due);
    let poll = it.poll_query().unwrap();
    it.apply(Event::Polled(poll, Err(TrackerError::new(TrackerErrorKind::Request, "no answer"))));
    it.reads(&[issue(1), moved(&issue(0), "Done")]);
    assert!(it.cleans());
    it.ends(other, RunEnd::Completed);
    assert!(it.taken().is_empty() && it.start().is_none());
}

#[test]
fn item_004_a_broken_workflow_file_begins_nothing_and_the_rest_goes_on() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.apply(Event::WorkflowInvalid("front matter is not a map".to_owned()));
    assert!(matches!(it.notices()[..], [Notice::WorkflowBroken { .. }]));
    it.apply(Event::WorkflowInvalid("front matter is not a map".to_owned()));
    assert!(it.notices().is_empty(), "it is said once");
    let seen = Snapshot::of(&it.state, Timestamp::from_millis(it.now));
    assert_eq!(seen.workflow_error.as_deref(), Some("front matter is not a map"));
    let screen = render(&seen, 120, 40).plain();
    assert!(screen.contains("is invalid, so nothing is dispatched: front matter"), "{screen}");
    it.polls(&[issue(0), issue(1)]);
    assert!(it.taken().is_empty());
    it.polls(&[issue(1)]);
    it.reads(&[moved(&issue(0), "Review")]);
    assert!(it.stops(run), "what runs is still kept in step");
    it.apply(Event::WorkflowChanged(Box::new(rules())));
    assert_eq!(it.taken(), ["id-1"]);
    assert_eq!(it.state.ledger.mode, Mode::Working);
}
