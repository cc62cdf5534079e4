//! The tests of the journal and of the embedded tracker, for any store.
//!
//! Built like [`store`](crate::store): each function is one promise of `Journal` or `IssueStore`, takes an empty
//! store, and is listed in [`conductor_tests!`](crate::conductor_tests).

use std::pin::Pin;

use carrel_store::{
    Comment, IssueChange, IssueFilter, IssueOutcome, IssueStore, Journal, JournalRecord,
    NewComment, NewIssue, NewRun, RunFilter, RunRecord, StoredIssue, Tenure, TenureOutcome,
};
use futures_util::future::join_all;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::store::at;

const HERE: &str = "local";
const ELSEWHERE: &str = "linear:other";

/// A store that is both journal and tracker.
pub trait ConductorStore: Journal + IssueStore {}

impl<T: Journal + IssueStore> ConductorStore for T {}

/// Acquires a scope that is free.
pub async fn acquire(store: &dyn ConductorStore, scope: &str, holder: &str) -> Tenure {
    match store.acquire(scope, holder, at(0)).await.unwrap() {
        TenureOutcome::Acquired(tenure) => tenure,
        TenureOutcome::Held { by } => panic!("held by {by}"),
    }
}

async fn here(store: &dyn ConductorStore) -> Tenure {
    acquire(store, HERE, "a test").await
}

pub fn save(issue: &str, entry: Value) -> JournalRecord {
    JournalRecord::Save { issue: issue.to_owned(), entry }
}

fn started(run: u64, issue: &str) -> JournalRecord {
    JournalRecord::RunStarted(NewRun {
        run,
        issue: issue.to_owned(),
        identifier: issue.to_uppercase(),
        attempt: 2,
        transcript: Some(format!("{run}.jsonl")),
    })
}

fn record(run: u64, issue: &str) -> RunRecord {
    RunRecord {
        run,
        issue: issue.to_owned(),
        identifier: issue.to_uppercase(),
        attempt: 2,
        started_at: at(1),
        ended_at: None,
        outcome: None,
        error: None,
        workspace: None,
        thread: None,
        session: None,
        transcript: Some(format!("{run}.jsonl")),
    }
}

fn ended(run: u64) -> JournalRecord {
    JournalRecord::RunEnded {
        run,
        outcome: "failed".to_owned(),
        error: Some("it broke".to_owned()),
    }
}

pub async fn entries_are_kept_by_scope_and_issue(store: &dyn ConductorStore) {
    let here = here(store).await;
    let elsewhere = acquire(store, ELSEWHERE, "another test").await;
    let records = vec![save("a", json!({ "n": 1 })), save("b", json!({ "n": 2 }))];
    store.append(&here, records, at(1)).await.unwrap();
    store.append(&elsewhere, vec![save("a", json!("other"))], at(1)).await.unwrap();
    let delete = JournalRecord::Delete { issue: "b".to_owned() };
    store.append(&here, vec![save("a", json!({ "n": 3 })), delete], at(2)).await.unwrap();
    let entries = store.entries(HERE).await.unwrap();
    assert_eq!(entries, [("a".to_owned(), json!({ "n": 3 }))]);
    let others = store.entries(ELSEWHERE).await.unwrap();
    assert_eq!(others, [("a".to_owned(), json!("other"))]);
}

pub async fn records_are_appended_in_order_and_all_or_none(store: &dyn ConductorStore) {
    let here = here(store).await;
    let delete = |issue: &str| JournalRecord::Delete { issue: issue.to_owned() };
    let records = vec![save("a", json!(1)), delete("a"), save("a", json!(2))];
    store.append(&here, records, at(1)).await.unwrap();
    store.append(&here, vec![started(7, "a")], at(1)).await.unwrap();
    // A repetition after a lost reply changes nothing.
    store.append(&here, vec![started(7, "a")], at(1)).await.unwrap();
    // The number of a run is never given to another, and the whole append fails.
    let records = vec![save("a", json!(3)), JournalRecord::Ledger(json!("new")), started(7, "b")];
    store.append(&here, records, at(2)).await.unwrap_err();
    store.append(&here, vec![ended(7)], at(2)).await.unwrap();
    store.append(&here, vec![save("a", json!(3)), started(7, "a")], at(2)).await.unwrap_err();
    assert_eq!(store.entries(HERE).await.unwrap(), [("a".to_owned(), json!(2))]);
    assert_eq!(store.ledger(HERE).await.unwrap(), None);
}

pub async fn the_ledger_is_the_last_one_appended(store: &dyn ConductorStore) {
    let here = here(store).await;
    for ledger in [json!({ "number": 1 }), json!({ "number": 2 })] {
        store.append(&here, vec![JournalRecord::Ledger(ledger)], at(1)).await.unwrap();
    }
    assert_eq!(store.ledger(HERE).await.unwrap(), Some(json!({ "number": 2 })));
    assert_eq!(store.ledger(ELSEWHERE).await.unwrap(), None);
}

pub async fn a_run_is_open_until_its_end_is_recorded_once(store: &dyn ConductorStore) {
    let here = here(store).await;
    store.append(&here, vec![started(5, "a"), started(6, "b")], at(1)).await.unwrap();
    let placed = JournalRecord::RunWorkspace { run: 5, workspace: "/w/A".to_owned() };
    let session =
        JournalRecord::RunSession { run: 5, session: "t-1".to_owned(), thread: "t".to_owned() };
    store.append(&here, vec![placed, session], at(2)).await.unwrap();
    let open = RunFilter { open: true, ..RunFilter::default() };
    let first = RunRecord {
        workspace: Some("/w/A".to_owned()),
        session: Some("t-1".to_owned()),
        thread: Some("t".to_owned()),
        ..record(5, "a")
    };
    let found = store.runs(HERE, open.clone()).await.unwrap();
    assert_eq!(found, [record(6, "b"), first.clone()]);
    store.append(&here, vec![ended(5)], at(3)).await.unwrap();
    let again = JournalRecord::RunEnded { run: 5, outcome: "well".to_owned(), error: None };
    store.append(&here, vec![again], at(4)).await.unwrap();
    assert_eq!(store.runs(HERE, open).await.unwrap(), [record(6, "b")]);
    let of_a = RunFilter { issue: Some("a".to_owned()), ..RunFilter::default() };
    let over = RunRecord {
        ended_at: Some(at(3)),
        outcome: Some("failed".to_owned()),
        error: Some("it broke".to_owned()),
        ..first
    };
    assert_eq!(store.runs(HERE, of_a).await.unwrap(), std::slice::from_ref(&over));
    let named =
        |name: &str| RunFilter { identifier: Some(name.to_owned()), ..RunFilter::default() };
    assert_eq!(store.runs(HERE, named(&over.identifier)).await.unwrap(), [over]);
    assert_eq!(store.runs(HERE, named("unknown")).await.unwrap(), []);
    let latest = RunFilter { limit: Some(1), ..RunFilter::default() };
    assert_eq!(store.runs(HERE, latest).await.unwrap(), [record(6, "b")]);
    assert_eq!(store.last_run(HERE).await.unwrap(), Some(6));
    assert_eq!(store.last_run(ELSEWHERE).await.unwrap(), None);
}

pub async fn old_runs_are_deleted_but_not_the_last_nor_open_ones(store: &dyn ConductorStore) {
    let here = here(store).await;
    let records = vec![started(1, "a"), started(2, "a"), started(3, "a"), ended(1), ended(3)];
    store.append(&here, records, at(1)).await.unwrap();
    assert_eq!(store.delete_runs(&here, at(1)).await.unwrap(), 0);
    assert_eq!(store.delete_runs(&here, at(2)).await.unwrap(), 1);
    let left = store.runs(HERE, RunFilter::default()).await.unwrap();
    assert_eq!(left.iter().map(|run| run.run).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(store.last_run(HERE).await.unwrap(), Some(3));
}

fn new_issue(title: &str, state: &str) -> NewIssue {
    NewIssue { title: title.to_owned(), state: state.to_owned(), ..NewIssue::default() }
}

fn done(outcome: IssueOutcome) -> StoredIssue {
    match outcome {
        IssueOutcome::Done(issue) => issue,
        IssueOutcome::Unknown(number) => panic!("there is no issue {number}"),
    }
}

async fn add(store: &dyn ConductorStore, title: &str, state: &str) -> StoredIssue {
    done(store.add_issue(new_issue(title, state), at(1)).await.unwrap())
}

pub async fn issues_are_numbered_from_one_and_returned_unchanged(store: &dyn ConductorStore) {
    let first = add(store, "first", "Todo").await;
    let new = NewIssue {
        title: "second".to_owned(),
        description: Some("text\nof two lines".to_owned()),
        state: " In Progress ".to_owned(),
        priority: Some(2),
        labels: vec!["bug".to_owned()],
        blocked_by: vec![first.number],
    };
    let second = done(store.add_issue(new, at(2)).await.unwrap());
    let expected = StoredIssue {
        number: 2,
        title: "second".to_owned(),
        description: Some("text\nof two lines".to_owned()),
        state: " In Progress ".to_owned(),
        priority: Some(2),
        labels: vec!["bug".to_owned()],
        blocked_by: vec![(1, "Todo".to_owned())],
        created_at: at(2),
        updated_at: at(2),
    };
    assert_eq!((first.number, &second), (1, &expected));
    assert_eq!(store.issues(IssueFilter::default()).await.unwrap(), [first, second]);
}

pub async fn issues_are_found_by_state_and_number(store: &dyn ConductorStore) {
    for state in ["Todo", "ÉTÉ", "Done", "todo", " Waiting "] {
        add(store, "any", state).await;
    }
    let numbers = async |filter: IssueFilter| -> Vec<u64> {
        store.issues(filter).await.unwrap().iter().map(|issue| issue.number).collect()
    };
    let states = |states: &[&str]| {
        let states = Some(states.iter().map(ToString::to_string).collect());
        IssueFilter { states, ..IssueFilter::default() }
    };
    assert_eq!(numbers(states(&[" TODO "])).await, [1, 4]);
    assert_eq!(numbers(states(&["été", "done"])).await, [2, 3]);
    assert_eq!(numbers(states(&["waiting"])).await, [5]);
    assert_eq!(numbers(states(&[])).await, Vec::<u64>::new());
    let some = IssueFilter { numbers: Some(vec![4, 99, 2]), ..IssueFilter::default() };
    assert_eq!(numbers(some).await, [2, 4]);
    let two = IssueFilter { limit: Some(2), ..IssueFilter::default() };
    assert_eq!(numbers(two).await, [1, 2]);
}

pub async fn a_change_leaves_other_fields_alone(store: &dyn ConductorStore) {
    let first = add(store, "first", "Todo").await;
    let second = add(store, "second", "Todo").await;
    let change = IssueChange {
        state: Some("Done".to_owned()),
        add_labels: vec!["a".to_owned(), "b".to_owned(), "a".to_owned()],
        add_blockers: vec![first.number],
        ..IssueChange::default()
    };
    let changed = done(store.change_issue(2, change, at(3)).await.unwrap());
    let expected = StoredIssue {
        state: "Done".to_owned(),
        labels: vec!["a".to_owned(), "b".to_owned()],
        blocked_by: vec![(1, "Todo".to_owned())],
        updated_at: at(3),
        ..second
    };
    assert_eq!(changed, expected);
    let change = IssueChange {
        remove_labels: vec!["a".to_owned(), "z".to_owned()],
        remove_blockers: vec![first.number],
        ..IssueChange::default()
    };
    let changed = done(store.change_issue(2, change, at(4)).await.unwrap());
    let labels = vec!["b".to_owned()];
    assert_eq!(changed, StoredIssue { labels, blocked_by: vec![], updated_at: at(4), ..expected });
}

pub async fn an_unknown_issue_is_named_and_nothing_is_written(store: &dyn ConductorStore) {
    let new = NewIssue { blocked_by: vec![9], ..new_issue("one", "Todo") };
    assert_eq!(store.add_issue(new, at(1)).await.unwrap(), IssueOutcome::Unknown(9));
    assert_eq!(store.issues(IssueFilter::default()).await.unwrap(), []);
    let first = add(store, "one", "Todo").await;
    let change = IssueChange { state: Some("Done".to_owned()), ..IssueChange::default() };
    let outcome = store.change_issue(9, change.clone(), at(2)).await.unwrap();
    assert_eq!(outcome, IssueOutcome::Unknown(9));
    let change = IssueChange { add_blockers: vec![9], ..change };
    let outcome = store.change_issue(1, change, at(2)).await.unwrap();
    assert_eq!(outcome, IssueOutcome::Unknown(9));
    assert_eq!(store.issues(IssueFilter::default()).await.unwrap(), [first]);
    let comment = NewComment { author: "anna".to_owned(), body: "hello".to_owned() };
    assert_eq!(store.comment(9, comment, at(2)).await.unwrap(), None);
}

pub async fn the_newest_comments_are_returned_oldest_first(store: &dyn ConductorStore) {
    add(store, "one", "Todo").await;
    for number in 1..=3 {
        let comment = NewComment { author: "anna".to_owned(), body: number.to_string() };
        store.comment(1, comment, at(number)).await.unwrap().unwrap();
    }
    let comment = |number: i64| Comment {
        author: "anna".to_owned(),
        body: number.to_string(),
        created_at: at(number),
    };
    assert_eq!(store.comments(1, 2).await.unwrap(), [comment(2), comment(3)]);
    assert_eq!(store.comments(2, 2).await.unwrap(), []);
    let issue = store.issues(IssueFilter::default()).await.unwrap().remove(0);
    assert_eq!(issue.updated_at, at(3));
}

pub async fn concurrent_additions_get_distinct_numbers(store: &dyn ConductorStore) {
    let adding = (0..20).map(|_| add(store, "any", "Todo"));
    let mut numbers: Vec<u64> =
        join_all(adding).await.into_iter().map(|issue| issue.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
}

pub async fn concurrent_changes_of_one_issue_are_all_made(store: &dyn ConductorStore) {
    add(store, "one", "Todo").await;
    let label = |number: u32| IssueChange {
        add_labels: vec![format!("{number:02}")],
        ..IssueChange::default()
    };
    join_all((0..10).map(|number| store.change_issue(1, label(number), at(2)))).await;
    let mut labels = store.issues(IssueFilter::default()).await.unwrap().remove(0).labels;
    labels.sort();
    assert_eq!(labels, (0..10).map(|number| format!("{number:02}")).collect::<Vec<_>>());
}

pub async fn any_text_is_stored_with_nul_replaced_if_need_be(store: &dyn ConductorStore) {
    let odd = "a\u{1f680}'\"\\\u{7}";
    let here = here(store).await;
    store.append(&here, vec![save(odd, json!({ odd: "nul \0" }))], at(1)).await.unwrap();
    let entries = store.entries(HERE).await.unwrap();
    assert_eq!(entries, [(odd.to_owned(), json!({ odd: "nul \0" }))]);
    let new = NewIssue { labels: vec![odd.to_owned()], ..new_issue(odd, odd) };
    let made = done(store.add_issue(new, at(1)).await.unwrap());
    assert_eq!((made.title.as_str(), made.labels.as_slice()), (odd, &[odd.to_owned()][..]));
    add(store, "nul \0", "nul \0").await;
    let found = IssueFilter { states: Some(vec!["NUL \0".to_owned()]), ..IssueFilter::default() };
    assert_eq!(store.issues(found).await.unwrap().len(), 1);
}

pub async fn a_tracker_keeps_its_name(store: &dyn ConductorStore) {
    let name = store.tracker_name().await.unwrap();
    assert_eq!(name.len(), 32, "{name}");
    add(store, "one", "Todo").await;
    assert_eq!(store.tracker_name().await.unwrap(), name);
}

/// Passes the names of all tests to a macro, after its own arguments.
#[macro_export]
macro_rules! conductor_tests {
    ($with:ident $($first:tt)*) => {
        $crate::$with! { @each $($first)*;
            entries_are_kept_by_scope_and_issue,
            records_are_appended_in_order_and_all_or_none,
            the_ledger_is_the_last_one_appended,
            a_run_is_open_until_its_end_is_recorded_once,
            old_runs_are_deleted_but_not_the_last_nor_open_ones,
            issues_are_numbered_from_one_and_returned_unchanged,
            issues_are_found_by_state_and_number,
            a_change_leaves_other_fields_alone,
            an_unknown_issue_is_named_and_nothing_is_written,
            the_newest_comments_are_returned_oldest_first,
            concurrent_additions_get_distinct_numbers,
            concurrent_changes_of_one_issue_are_all_made,
            any_text_is_stored_with_nul_replaced_if_need_be,
            a_tracker_keeps_its_name,
        }
    };
}

/// Defines every test as a test of its own, as [`crate::store_suite!`] does.
#[macro_export]
macro_rules! conductor_suite {
    ($make:expr) => {
        $crate::conductor_tests! { conductor_suite $make }
    };
    (@each $make:expr; $($name:ident,)+) => {$(
        #[tokio::test]
        async fn $name() {
            let (store, _guard) = $make().await;
            $crate::conductor_store::$name(&store).await;
        }
    )+};
}

/// A test of any journal and tracker.
pub type Test = for<'a> fn(&'a dyn ConductorStore) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

#[doc(hidden)]
#[macro_export]
macro_rules! conductor_test_list {
    (@each ; $($name:ident,)+) => {
        &[$((stringify!($name), |store| Box::pin($crate::conductor_store::$name(store)))),+]
    };
}

/// Every test with its name.
pub const TESTS: &[(&str, Test)] = conductor_tests! { conductor_test_list };
