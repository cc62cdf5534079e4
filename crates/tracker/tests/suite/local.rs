use std::sync::Arc;

use carrel_domain::{Code, Coded as _, FixedClock, Timestamp};
use carrel_store::{IssueChange, NewIssue, Sqlite, SqliteOptions};
use carrel_tracker::{Blocker, Issue, IssueId, LocalTracker, Tracker as _, TrackerErrorKind};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tempfile::TempDir;

const NOW: i64 = 1_700_000_000_000;

fn tracker() -> (LocalTracker, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&SqliteOptions { path: directory.path().join("carrel.db") }).unwrap();
    let clock = Arc::new(FixedClock(Timestamp::from_millis(NOW)));
    (LocalTracker::new(Arc::new(store), clock, &["Done".to_owned()]), directory)
}

fn new(title: &str, state: &str) -> NewIssue {
    NewIssue { title: title.to_owned(), state: state.to_owned(), ..NewIssue::default() }
}

fn to(state: &str) -> IssueChange {
    IssueChange { state: Some(state.to_owned()), ..IssueChange::default() }
}

fn names(issues: &[Issue]) -> Vec<&str> {
    issues.iter().map(|issue| issue.identifier.as_str()).collect()
}

#[tokio::test]
async fn item_033_every_tracker_returns_the_same_fields() {
    let (tracker, _directory) = tracker();
    tracker.add(new("first", "Todo")).await.unwrap();
    let labels = vec![" Bug ".to_owned(), "bug".to_owned(), "UI".to_owned()];
    let issue = NewIssue {
        description: Some("why\nand how".to_owned()),
        priority: Some(1),
        labels,
        blocked_by: vec![1],
        ..new(" second ", "Todo")
    };
    let issue = tracker.add(issue).await.unwrap();
    let first = Some("CAR-1".to_owned());
    let expected = Issue {
        id: IssueId("CAR-2".to_owned()),
        native_ref: None,
        identifier: "CAR-2".to_owned(),
        title: "second".to_owned(),
        description: Some("why\nand how".to_owned()),
        priority: Some(1),
        state: "Todo".to_owned(),
        branch_name: Some("car-2".to_owned()),
        url: None,
        assignee_id: None,
        labels: vec!["bug".to_owned(), "ui".to_owned()],
        blocked_by: vec![Blocker {
            id: first.clone(),
            identifier: first,
            state: Some("Todo".to_owned()),
        }],
        dispatchable: false,
        created_at: Some(Timestamp::from_millis(NOW)),
        updated_at: Some(Timestamp::from_millis(NOW)),
    };
    assert_eq!(issue, expected);
}

#[tokio::test]
async fn item_038_an_issue_waits_for_its_blockers_until_they_are_finished() {
    let (tracker, _directory) = tracker();
    tracker.add(new("first", "Todo")).await.unwrap();
    let blocked = NewIssue { blocked_by: vec![1], ..new("second", "Todo") };
    tracker.add(blocked).await.unwrap();
    for (state, free) in [("Elsewhere", false), (" DONE ", true), ("Todo", false)] {
        tracker.change("CAR-1", to(state)).await.unwrap();
        let found = tracker.by_ids(&[IssueId("CAR-2".to_owned())]).await.unwrap();
        assert_eq!(found[0].dispatchable, free, "{state}");
    }
}

#[tokio::test]
async fn item_029_to_031_issues_are_read_by_state_and_by_id_in_the_order_of_the_ids() {
    let (tracker, _directory) = tracker();
    for state in ["Todo", "Done", "todo"] {
        tracker.add(new("any", state)).await.unwrap();
    }
    let found = tracker.by_states(&["TODO".to_owned()]).await.unwrap();
    assert_eq!(names(&found), ["CAR-1", "CAR-3"]);
    let ids = ["CAR-3", "CAR-9", "elsewhere", "CAR-1"].map(|id| IssueId(id.to_owned()));
    assert_eq!(names(&tracker.by_ids(&ids).await.unwrap()), ["CAR-3", "CAR-1"]);
    assert_eq!(tracker.by_states(&[]).await.unwrap(), []);
    assert_eq!(tracker.by_ids(&[]).await.unwrap(), []);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_the_rule() {
    let (tracker, _directory) = tracker();
    let long = "x".repeat(301);
    for (issue, said) in [
        (new(" ", "Todo"), "the title is empty"),
        (new("two\nlines", "Todo"), "one plain line"),
        (new(&long, "Todo"), "300 characters"),
        (new("one", ""), "the state is empty"),
        (NewIssue { priority: Some(5), ..new("one", "Todo") }, "the priority is 5"),
        (NewIssue { labels: vec![" ".to_owned()], ..new("one", "Todo") }, "a label is empty"),
        (
            NewIssue { description: Some(String::new()), ..new("one", "Todo") },
            "the description is empty",
        ),
        (NewIssue { description: Some("a\0".to_owned()), ..new("one", "Todo") }, "NUL"),
    ] {
        let error = tracker.add(issue).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArguments);
        assert!(error.to_string().contains(said), "{error}");
    }
    let error = tracker.add(NewIssue { blocked_by: vec![7], ..new("one", "Todo") }).await;
    assert_eq!(error.unwrap_err().code(), Code::IssueNotFound);
    tracker.add(new("one", "Todo")).await.unwrap();
    let own = IssueChange { add_blockers: vec![1], ..IssueChange::default() };
    let error = tracker.change("CAR-1", own).await.unwrap_err();
    assert!(error.to_string().contains("itself"), "{error}");
    let error = tracker.change("CAR-2", to("Done")).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no issue CAR-2");
}

#[tokio::test]
async fn an_agent_shows_comments_on_and_moves_its_own_issue_and_no_other() {
    let (tracker, _directory) = tracker();
    let own = tracker.add(new("own", "Todo")).await.unwrap();
    tracker.add(new("other", "Todo")).await.unwrap();
    let call = async |tool: &str, arguments: Value| {
        let reply = tracker.call(&own, tool, arguments).await;
        (reply.success, serde_json::from_str::<Value>(&reply.output).unwrap())
    };
    let (worked, _) = call("issue_comment", json!({ "body": "half done" })).await;
    assert!(worked);
    let (worked, moved) = call("issue_move", json!({ "state": "Done" })).await;
    assert_eq!((worked, &moved["issue"]["state"]), (true, &json!("Done")));
    let (worked, shown) = call("issue_show", Value::Null).await;
    let comment = &shown["comments"][0];
    let found = (worked, &shown["issue"]["state"], &comment["author"], &comment["body"]);
    assert_eq!(found, (true, &json!("Done"), &json!("agent"), &json!("half done")));
    for (tool, arguments, said) in [
        ("issue_move", json!({ "state": "Done", "issue": "CAR-2" }), "unknown field `issue`"),
        ("issue_move", json!({}), "missing field `state`"),
        ("issue_move", json!({ "state": " " }), "the state is empty"),
        ("issue_comment", json!("text"), "invalid arguments"),
        ("issue_delete", json!({}), "there is no tool"),
    ] {
        let (worked, reply) = call(tool, arguments).await;
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(!worked && message.contains(said), "{tool}: {message}");
    }
    assert_eq!(tracker.find("CAR-2").await.unwrap().0.state, "Todo");
    let named: Vec<_> = tracker.tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(named, ["issue_show", "issue_comment", "issue_move"]);
}

#[tokio::test]
async fn a_move_to_the_same_state_and_a_look_change_nothing() {
    let (tracker, _directory) = tracker();
    let own = tracker.add(new("own", "Todo")).await.unwrap();
    for (tool, arguments, changed) in [
        ("issue_show", Value::Null, false),
        ("issue_move", json!({ "state": " todo " }), false),
        ("issue_move", json!({ "state": "In Progress" }), true),
        ("issue_comment", json!({ "body": "half done" }), true),
        ("issue_comment", json!({}), false),
    ] {
        let before = tracker.find("CAR-1").await.unwrap().0;
        let reply = tracker.call(&own, tool, arguments.clone()).await;
        assert_eq!(reply.changed, changed, "{tool} {arguments}");
        let after = tracker.find("CAR-1").await.unwrap().0;
        assert!(changed || before == after, "{tool} {arguments}");
    }
}

#[tokio::test]
async fn an_unreachable_database_is_a_tracker_error() {
    let (tracker, directory) = tracker();
    directory.close().unwrap();
    let fault = tracker.by_states(&["Todo".to_owned()]).await.unwrap_err();
    assert_eq!(fault.kind, TrackerErrorKind::Request);
}
