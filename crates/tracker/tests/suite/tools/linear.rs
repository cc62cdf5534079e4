//! Questions to Linear.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Bench, all_refused, bench_with};
use crate::fake::{Asked, Reply};
use crate::linear::Linear;
use crate::records::SECRET;

const HERE: &str = "11111111-0000-4000-8000-000000000001";
const ELSEWHERE: &str = "22222222-0000-4000-8000-000000000002";
const PROJECT: &str = "33333333-0000-4000-8000-000000000003";

/// Linear, with an issue and a comment of the project, and others of another.
async fn linear() -> Bench {
    bench_with::<Linear>(|asked| {
        let query = asked.body["query"].as_str()?;
        if query.contains("CarrelProject") {
            return Some(Reply::json(
                &json!({ "data": { "projects": { "nodes": [{ "id": PROJECT }] } } }),
            ));
        }
        let what = ["issues", "comments"]
            .into_iter()
            .find(|what| query.contains(&format!("{what}(filter")))?;
        if !query.contains("CarrelHere") {
            return None;
        }
        let filter = &asked.body["variables"]["filter"];
        let project =
            if what == "issues" { &filter["project"] } else { &filter["issue"]["project"] };
        assert_eq!(project["slugId"]["eq"], "web-1a2b3c");
        let wanted = filter["id"]["in"].as_array().unwrap();
        let found: Vec<Value> =
            wanted.iter().filter(|id| **id == HERE).map(|id| json!({ "id": id })).collect();
        Some(Reply::json(&json!({ "data": { what: { "nodes": found } } })))
    })
    .await
}

fn ask(query: &str, variables: Value) -> Value {
    let mut told = json!({ "query": query });
    told["variables"] = variables;
    told
}

#[tokio::test]
async fn item_072_and_073_linear_questions_go_out_in_our_name_for_the_issue_at_hand() {
    let bench = linear().await;
    let sent =
        bench.sent(json!("query($issueId: String!) { issue(id: $issueId) { title } }")).await;
    assert_eq!(
        sent.body,
        json!({
            "query": "query($issueId: String!) { issue(id: $issueId) { title } }",
            "variables": { "issueId": "00000000-0000-4000-8000-000000000007" },
        })
    );
    assert_eq!(sent.headers["authorization"], SECRET);
    assert_eq!(bench.fake.count(), 1, "the issue at hand is not looked up");
    for (query, variables) in [
        (
            "{ issue(id: \"WEB-7\") { team { states { nodes { id name } } } comments { edges { node { body user { name } } } } } }",
            json!({}),
        ),
        (
            "query($projectId: String!) { project(id: $projectId) { issues(first: 5) { nodes { ...I } } } } fragment I on Issue { id state { name } }",
            json!({}),
        ),
        ("{ project(id: \"web-1a2b3c\") { teams { nodes { key } } } viewer { id } }", json!({})),
        (
            "mutation($id: String!, $input: IssueUpdateInput!) { issueUpdate(id: $id, input: $input) { success issue { state { name } } } }",
            json!({ "id": HERE, "input": { "stateId": "s" } }),
        ),
        (
            "mutation($input: CommentCreateInput!) { commentCreate(input: $input) { success comment { id } } }",
            json!({ "input": { "issueId": "WEB-7", "body": "Done." } }),
        ),
        (
            "mutation { issueCreate(input: {projectId: \"33333333-0000-4000-8000-000000000003\", teamId: \"t\", title: \"a\"}) { success } }",
            json!({}),
        ),
        (
            "mutation { attachmentLinkURL(issueId: \"WEB-7\", url: \"https://x\") { success } }",
            json!(null),
        ),
    ] {
        bench.sent(ask(query, variables)).await;
    }
    bench.sent(ask("query($id: String = \"WEB-7\") { issue(id: $id) { title } }", json!({}))).await;
    let deleted = format!("mutation {{ commentDelete(id: \"{HERE}\") {{ success }} }}");
    bench.sent(ask(&deleted, json!({}))).await;
}

#[tokio::test]
async fn linear_questions_stay_in_the_project() {
    let bench = linear().await;
    let plain = |query: &str| ask(query, json!({}));
    all_refused(&bench, vec![
        json!(null),
        json!({ "variables": {} }),
        json!({ "query": 3 }),
        ask("{ viewer { id } }", json!([])),
        json!({ "query": "{ viewer { id } }", "operationName": "x" }),
        plain("not a question"),
        plain("subscription { issue(id: \"WEB-7\") { id } }"),
        plain("query A { viewer { id } } query B { viewer { id } }"),
        plain("{ issues { nodes { id } } }"),
        plain("{ users { nodes { id } } }"),
        plain("{ organization { name } }"),
        plain("{ issue { title } }"),
        plain("{ issue(id: 7) { title } }"),
        plain("{ issue(id: \"OPS-1\") { title } }"),
        plain("{ issue(id: \"WEB-7\") { team { issues { nodes { id } } } } }"),
        plain("{ issue(id: \"WEB-7\") { assignee { assignedIssues { nodes { id } } } } }"),
        plain("{ issue(id: \"WEB-7\") { parent { parent { id } } } }"),
        plain("{ viewer { assignedIssues { nodes { id } } } }"),
            plain("{ viewer { a: calendarHash } }"),
            plain(
                "mutation($team: String = \"t\") { issueUpdate(id: \"WEB-7\", input: {teamId: $team}) { success } }",
            ),
            plain(
                "mutation($input: IssueUpdateInput = {teamId: \"t\"}) { issueUpdate(id: \"WEB-7\", input: $input) { success } }",
            ),
            plain("{ issue(id: \"WEB-7\") { team { inviteHash } } }"),
        plain("{ issue(id: \"WEB-7\") { ... on Issue { ...F } } } fragment F on Issue { team { organization { id } } }"),
        plain("{ issue(id: \"WEB-7\") { ...F } } fragment F on Issue { ...F }"),
        plain("{ issue(id: \"WEB-7\") { ...G } }"),
        plain("mutation { issueDelete(id: \"WEB-7\") { success } }"),
        plain("mutation { userUpdate(id: \"me\", input: {}) { success } }"),
        plain("mutation { issueUpdate(id: \"WEB-7\", input: {teamId: \"t\"}) { success } }"),
        plain("mutation { issueCreate(input: {teamId: \"t\", title: \"a\"}) { success } }"),
        plain("mutation { commentCreate(input: {body: \"a\"}) { success } }"),
        plain("mutation { commentCreate(input: {issueId: \"WEB-7\", projectUpdateId: \"x\", body: \"a\"}) { success } }"),
        plain("mutation { issueUpdate(id: \"WEB-7\", input: {title: \"a\"}) { issue { team { issues { nodes { id } } } } } }"),
        plain("mutation($id: String = \"OPS-1\") { issueUpdate(id: $id, input: {title: \"a\"}) { success } }"),
        plain("mutation($id: String) { issueUpdate(id: $id, input: {title: \"a\"}) { success } }"),
    ])
    .await;
    let elsewhere = json!({ "id": ELSEWHERE, "input": { "title": "a" } });
    for (query, variables) in [
        ("query($id: String!) { issue(id: $id) { title } }", elsewhere.clone()),
        (
            "mutation($id: String!, $input: IssueUpdateInput!) { a: issueAddLabel(id: \"WEB-7\", labelId: \"l\") { success } b: issueUpdate(id: $id, input: $input) { success } }",
            elsewhere.clone(),
        ),
        (
            "mutation($id: String!) { commentUpdate(id: $id, input: {body: \"a\"}) { success } }",
            elsewhere.clone(),
        ),
        ("query($id: String!) { project(id: $id) { name } }", elsewhere.clone()),
        (
            "mutation($id: String!) { issueUpdate(id: \"WEB-7\", input: {projectId: $id}) { success } }",
            elsewhere.clone(),
        ),
        (
            "mutation($id: String!) { issueUpdate(id: \"WEB-7\", input: {parentId: $id}) { success } }",
            elsewhere.clone(),
        ),
        (
            "mutation($id: String!) { issueRelationCreate(input: {issueId: \"WEB-7\", relatedIssueId: $id, type: blocks}) { success } }",
            elsewhere,
        ),
    ] {
        bench.fake.reset();
        assert_eq!(bench.refused(ask(query, variables)).await, "out_of_scope", "{query}");
        let own = |asked: &Asked| asked.body["query"].as_str().unwrap().contains("query Carrel");
        assert!(bench.fake.heard().iter().all(own), "nothing but look-ups is sent");
    }
}

#[tokio::test]
async fn linear_replies_with_errors_are_failures_and_are_returned_whole() {
    let bench = linear().await;
    let body = json!({ "data": { "viewer": null }, "errors": [{ "message": "boom" }] });
    bench.fake.answer(0, Reply::json(&body));
    let reply = bench.call(ask("{ viewer { id } }", json!({}))).await;
    let told: Value = serde_json::from_str(&reply.output).unwrap();
    assert_eq!((reply.success, told), (false, json!({ "status": 200, "body": body })));
}
