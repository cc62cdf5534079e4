//! What only one of the trackers does.

use std::time::Duration;

use carrel_tracker::{Blocker, TrackerErrorKind};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::asana::Asana;
use crate::fake::Reply;
use crate::github::Github;
use crate::gitlab::Gitlab;
use crate::jira::Jira;
use crate::linear::Linear;
use crate::records::{Provider, Stage, ids, stage, stage_with};

async fn first(stage: &Stage, named: &str) -> carrel_tracker::Issue {
    stage.tracker.by_states(&[named.to_owned()]).await.unwrap().remove(0)
}

#[tokio::test]
async fn item_131_linear_asks_for_55_ids_in_batches_of_50_and_5() {
    let stage = stage::<Linear>(60).await;
    let asked = ids::<Linear>((1..=55).rev());
    let found = stage.tracker.by_ids(&asked).await.unwrap();
    assert_eq!(found.iter().map(|issue| issue.id.clone()).collect::<Vec<_>>(), asked);
    let sizes: Vec<usize> = stage
        .fake
        .heard()
        .iter()
        .map(|asked| asked.body["variables"]["filter"]["id"]["in"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [50, 5]);
}

#[tokio::test]
async fn item_038_linear_issues_of_others_are_not_worked_on() {
    let stage = stage_with::<Linear>(2, &[("assignee", "user-1")]).await;
    stage.records_served().records[1]["assignee"] = json!({ "id": "user-2" });
    let found = stage.tracker.by_states(&["Todo".to_owned()]).await.unwrap();
    assert_eq!(found.iter().map(|issue| issue.dispatchable).collect::<Vec<_>>(), [true, false]);
}

#[tokio::test]
async fn linear_is_asked_once_who_me_is() {
    let stage = stage_with::<Linear>(2, &[("assignee", "me")]).await;
    stage.records_served().records[1]["assignee"] = Value::Null;
    for _ in 0..3 {
        let found = stage.tracker.by_states(&["Todo".to_owned()]).await.unwrap();
        assert_eq!(found.iter().map(|issue| issue.dispatchable).collect::<Vec<_>>(), [true, false]);
        stage.tracker.by_ids(&ids::<Linear>([1])).await.unwrap();
    }
    // The reference asks for it before each of the six reads.
    assert_eq!(stage.fake.count(), 1 + 6);
}

#[tokio::test]
async fn a_viewer_that_is_not_known_is_asked_for_again() {
    let stage = stage_with::<Linear>(1, &[("assignee", "me")]).await;
    stage.fake.answer(0, Reply::json(&json!({ "data": { "viewer": null } })));
    let fault = stage.tracker.by_states(&["Todo".to_owned()]).await.unwrap_err();
    assert_eq!(fault.kind, TrackerErrorKind::Response);
    assert!(first(&stage, "Todo").await.dispatchable);
}

#[tokio::test]
async fn item_038_linear_issues_wait_for_what_blocks_them() {
    let relation = |kind: &str, state: Value| json!({ "type": kind, "issue": { "id": "b", "identifier": "WEB-9", "state": state } });
    let named = |name: &str| json!({ "name": name });
    for (state, relations, dispatchable) in [
        ("Todo", vec![relation("blocks", named("In Progress"))], false),
        ("Todo", vec![relation("Blocks", json!(null))], false),
        ("Todo", vec![relation("blocks", named("done"))], true),
        ("Todo", vec![relation("related", named("In Progress"))], true),
        ("In Progress", vec![relation("blocks", named("In Progress"))], true),
        (
            " TODO ",
            vec![relation("blocks", named("Done")), relation("blocks", named("Todo"))],
            false,
        ),
    ] {
        let stage = stage::<Linear>(1).await;
        Linear::set_state(&mut stage.records_served().records[0], state);
        stage.records_served().records[0]["inverseRelations"]["nodes"] = json!(relations);
        let issue = stage.tracker.by_ids(&ids::<Linear>([1])).await.unwrap().remove(0);
        assert_eq!(issue.dispatchable, dispatchable, "{state} {relations:?}");
    }
}

#[tokio::test]
async fn linear_is_asked_for_the_labels_that_did_not_fit() {
    let stage = stage::<Linear>(1).await;
    let blocks = json!({ "type": "blocks", "issue": { "id": "b", "identifier": "WEB-9", "state": { "name": "Todo" } } });
    {
        let record = &mut stage.records_served().records[0];
        record["labels"]["pageInfo"]["hasNextPage"] = json!(true);
        record["rest"] = json!({
            "labels": { "nodes": [{ "name": "A" }, { "name": "B" }], "pageInfo": { "hasNextPage": false } },
            "inverseRelations": { "nodes": [blocks], "pageInfo": { "hasNextPage": false } },
        });
    }
    let issue = first(&stage, "Todo").await;
    assert_eq!(issue.labels, ["a", "b"]);
    let blocker = Blocker {
        id: Some("b".into()),
        identifier: Some("WEB-9".into()),
        state: Some("Todo".into()),
    };
    assert_eq!((issue.blocked_by, issue.dispatchable), (vec![blocker], false));
    assert_eq!(stage.fake.count(), 2);
}

#[tokio::test]
async fn linear_pages_are_sized_by_the_last_result() {
    let stage = stage::<Linear>(10).await;
    for _ in 0..2 {
        first(&stage, "Todo").await;
    }
    let sizes: Vec<Value> =
        stage.fake.heard().iter().map(|asked| asked.body["variables"]["first"].clone()).collect();
    assert_eq!(sizes, [json!(100), json!(30)]);
}

#[tokio::test]
async fn linear_says_it_is_limited_with_status_400() {
    let stage = stage::<Linear>(1).await;
    let error =
        json!({ "message": "Rate limit exceeded", "extensions": { "code": "RATELIMITED" } });
    let body = json!({ "errors": [error] });
    let reply = Reply::status(400, &body)
        .with("x-ratelimit-requests-remaining", "0")
        .with("x-ratelimit-requests-reset", "1000");
    stage.fake.answer(0, reply);
    let fault = stage.tracker.by_states(&["Todo".to_owned()]).await.unwrap_err();
    assert_eq!(fault.kind, TrackerErrorKind::RateLimited);
    assert_eq!(fault.retry_after, Some(Duration::from_secs(1000)));
}

#[tokio::test]
async fn answers_with_errors_in_them_are_no_answers() {
    let stage = stage::<Linear>(1).await;
    let list = json!({ "nodes": [], "pageInfo": { "hasNextPage": false } });
    for (error, kind) in [
        (json!({ "message": "boom" }), TrackerErrorKind::Response),
        (
            json!({ "message": "no", "extensions": { "code": "AUTHENTICATION_ERROR" } }),
            TrackerErrorKind::Secret,
        ),
    ] {
        let body = json!({ "data": { "issues": list }, "errors": [error] });
        stage.fake.answer(0, Reply::json(&body));
        let fault = stage.tracker.by_states(&["Todo".to_owned()]).await.unwrap_err();
        assert_eq!(fault.kind, kind, "{fault}");
    }
}

#[tokio::test]
async fn item_038_pull_requests_are_no_issues() {
    let stage = stage::<Github>(3).await;
    stage.records_served().records[1]["pull_request"] =
        json!({ "url": "https://api.github.com/…" });
    let found = stage.tracker.by_states(&["open".to_owned()]).await.unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(stage.tracker.by_ids(&ids::<Github>([1, 2, 3])).await.unwrap(), found);
}

#[tokio::test]
async fn github_answers_questions_with_limits_of_their_own() {
    let stage = stage::<Github>(1).await;
    let limited =
        json!({ "errors": [{ "type": "RATE_LIMITED", "message": "API rate limit exceeded" }] });
    stage.fake.answer(
        0,
        Reply::json(&limited).with("x-ratelimit-remaining", "0").with("x-ratelimit-reset", "30"),
    );
    let fault = stage.tracker.by_ids(&ids::<Github>([1])).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.retry_after),
        (TrackerErrorKind::RateLimited, Some(Duration::from_secs(30)))
    );
}

#[tokio::test]
async fn a_repository_that_cannot_be_seen_is_not_an_empty_one() {
    let stage = stage_with::<Github>(1, &[("repo", "acme/gone")]).await;
    let fault = stage.tracker.by_ids(&ids::<Github>([1])).await.unwrap_err();
    assert_eq!(fault.kind, TrackerErrorKind::Status(404), "{fault}");
    let fault = stage.tracker.by_states(&["open".to_owned()]).await.unwrap_err();
    assert_eq!(fault.kind, TrackerErrorKind::Status(404), "{fault}");
}

#[tokio::test]
async fn item_037_what_finds_an_issue_again_is_kept() {
    let stage1 = stage::<Github>(1).await;
    let expected = json!({ "node_id": "I_1", "number": 1, "repo": "acme/web" });
    assert_eq!(first(&stage1, "open").await.native_ref, Some(expected));
    let stage2 = stage::<Gitlab>(1).await;
    let references = json!({ "short": "#1", "full": "acme/web#1" });
    let expected = json!({ "id": 90_001, "iid": 1, "project_id": 77, "path": "acme/web", "references": references });
    assert_eq!(first(&stage2, "opened").await.native_ref, Some(expected));
    let stage3 = stage::<Asana>(1).await;
    let expected = json!({ "task_gid": "50001", "project_gid": "1200", "section_gid": "31" });
    assert_eq!(first(&stage3, "To do").await.native_ref, Some(expected));
}

#[tokio::test]
async fn item_038_jira_issues_wait_for_what_blocks_them() {
    let link = |kind: &str, side: &str, state: Value| json!({ "type": { "name": kind }, side: { "id": "7", "key": "OPS-7", "fields": { "status": state } } });
    let named = |name: &str| json!({ "name": name });
    for (category, links, dispatchable) in [
        ("new", vec![link("Blocks", "inwardIssue", named("In Progress"))], false),
        ("new", vec![link("Blocks", "inwardIssue", json!(null))], false),
        ("new", vec![link("Blocks", "inwardIssue", named("DONE"))], true),
        ("new", vec![link("Blocks", "outwardIssue", named("In Progress"))], true),
        ("new", vec![link("Relates", "inwardIssue", named("In Progress"))], true),
        ("indeterminate", vec![link("Blocks", "inwardIssue", named("In Progress"))], true),
    ] {
        let stage = stage::<Jira>(1).await;
        {
            let fields = &mut stage.records_served().records[0]["fields"];
            fields["status"]["statusCategory"]["key"] = json!(category);
            fields["issuelinks"] = json!(links);
        }
        assert_eq!(first(&stage, "To Do").await.dispatchable, dispatchable, "{category} {links:?}");
    }
}

#[tokio::test]
async fn jira_may_give_less_than_it_was_asked_for() {
    let stage = stage::<Jira>(1000).await;
    stage.records_served().cap = Some(100);
    assert_eq!(stage.tracker.by_states(&["To Do".to_owned()]).await.unwrap().len(), 1000);
    assert_eq!(stage.fake.count(), 10);
}

#[tokio::test]
async fn an_issue_that_jira_failed_to_return_does_not_count_as_removed() {
    let stage = stage::<Jira>(1).await;
    let error = json!({ "id": "10001", "errorMessage": "try again" });
    stage.fake.answer(0, Reply::json(&json!({ "issues": [], "issueErrors": [error] })));
    let fault = stage.tracker.by_ids(&ids::<Jira>([1])).await.unwrap_err();
    assert_eq!(fault.kind, TrackerErrorKind::Response);
}

#[tokio::test]
async fn an_issue_of_no_project_is_not_taken_for_ours() {
    let stage = stage::<Jira>(1).await;
    stage.records_served().records[0]["fields"]["project"] = Value::Null;
    let fault = stage.tracker.by_ids(&ids::<Jira>([1])).await.unwrap_err();
    assert_eq!(fault.kind, TrackerErrorKind::Response);
}

#[tokio::test]
async fn item_038_finished_tasks_and_sections_are_not_worked_on() {
    let stage = stage::<Asana>(3).await;
    stage.records_served().records[0]["completed"] = json!(true);
    stage.records_served().records[1]["resource_subtype"] = json!("section");
    let found = stage.tracker.by_ids(&ids::<Asana>([1, 2, 3])).await.unwrap();
    let dispatchable: Vec<bool> = found.iter().map(|issue| issue.dispatchable).collect();
    assert_eq!(dispatchable, [false, false, true]);
}

#[tokio::test]
async fn finished_tasks_cost_no_pages() {
    let stage = stage::<Asana>(1000).await;
    for record in &mut stage.records_served().records[50..] {
        record["completed"] = json!(true);
    }
    assert_eq!(stage.tracker.by_states(&["To do".to_owned()]).await.unwrap().len(), 50);
    // The reference reads all ten pages.
    assert_eq!(stage.fake.count(), 1);
    let all = vec!["To do".to_owned(), "Done".to_owned()];
    assert_eq!(stage.tracker.by_states(&all).await.unwrap().len(), 1000);
}

#[tokio::test]
async fn a_limit_inside_a_batch_is_a_limit() {
    for (status, kind, wait) in
        [(429, TrackerErrorKind::RateLimited, Some(5)), (500, TrackerErrorKind::Status(500), None)]
    {
        let stage = stage::<Asana>(1).await;
        let answer = json!({
            "status_code": status, "headers": { "Retry-After": 5 }, "body": { "errors": [{ "message": "no" }] },
        });
        stage.fake.answer(0, Reply::json(&json!({ "data": [answer] })));
        let fault = stage.tracker.by_ids(&ids::<Asana>([1])).await.unwrap_err();
        assert_eq!(
            (fault.kind, fault.retry_after),
            (kind, wait.map(Duration::from_secs)),
            "{fault}"
        );
    }
    let stage = stage::<Asana>(1).await;
    stage.fake.answer(0, Reply::json(&json!({ "data": [] })));
    let fault = stage.tracker.by_ids(&ids::<Asana>([1])).await.unwrap_err();
    assert_eq!(fault.kind, TrackerErrorKind::Response);
}
