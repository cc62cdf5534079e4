//! Requests to Jira.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Bench, all_refused, bench_with, get, post};
use crate::fake::Reply;
use crate::jira::Jira;

/// Jira, where `WEB-8` has moved to another project.
async fn jira() -> Bench {
    bench_with::<Jira>(|asked| {
        let key = if asked.path.ends_with("/WEB-8") { "OPS" } else { "WEB" };
        let lookup = asked.parameter("fields") == Some("project");
        lookup.then(|| Reply::json(&json!({ "fields": { "project": { "key": key } } })))
    })
    .await
}

#[tokio::test]
async fn item_072_and_073_jira_requests_go_out_in_our_name_for_the_issue_at_hand() {
    let bench = jira().await;
    let sent =
        bench.sent(post("/rest/api/3/issue/{issueIdOrKey}/comment", json!({ "body": {} }))).await;
    assert_eq!(sent.path, "/rest/api/3/issue/WEB-7/comment");
    assert!(sent.headers["authorization"].starts_with("Basic "));
    assert_eq!(bench.fake.count(), 1, "the issue at hand is not looked up");
    bench.sent(get("/rest/api/3/issue/10007/transitions")).await;
    bench.sent(get("/rest/api/3/issue/web-9")).await;
    let search = json!({ "method": "GET", "path": "/rest/api/3/search/jql", "query": { "jql": "a = 1 OR b = 2" } });
    let sent = bench.sent(search).await;
    assert_eq!(sent.parameter("jql"), Some("project = \"WEB\" AND (a = 1 OR b = 2)"));
    let sent = bench.sent(post("/rest/api/3/search/jql", json!({ "maxResults": 5 }))).await;
    assert_eq!(sent.body, json!({ "maxResults": 5, "jql": "project = \"WEB\"" }));
    let fields =
        json!({ "project": { "key": "WEB" }, "summary": "a", "parent": { "key": "WEB-9" } });
    bench.sent(post("/rest/api/3/issue", json!({ "fields": fields }))).await;
    let link = json!({ "type": { "name": "Blocks" }, "inwardIssue": { "key": "WEB-7" }, "outwardIssue": { "key": "WEB-9" } });
    bench.sent(post("/rest/api/3/issueLink", link)).await;
    bench.sent(get("/rest/api/3/project/{projectIdOrKey}/statuses")).await;
    bench.sent(get("/rest/api/3/priority")).await;
}

#[tokio::test]
async fn jira_requests_stay_in_the_project() {
    let bench = jira().await;
    let fields =
        |project: Value| post("/rest/api/3/issue", json!({ "fields": { "project": project } }));
    all_refused(
        &bench,
        vec![
            get("/rest/api/3/issue/OPS-1"),
            get("/rest/api/3/issue/WEBX-1"),
            get("/rest/api/3/issue/10001"),
            get("/rest/api/3/../../secret"),
            get("/rest/api/3/issue/WEB-7/../OPS-1"),
            get("/rest/api/2/issue/WEB-7"),
            get("/rest/api/3/project/OPS"),
            get("/rest/api/3/users/search"),
            get("/rest/api/3/myself"),
            post("/rest/api/3/issue/WEB-7/notify", json!({})),
            post("/rest/api/3/issue/bulkfetch", json!({ "issueIdsOrKeys": ["OPS-1"] })),
            fields(json!({ "key": "OPS" })),
            fields(json!({ "id": "10001" })),
            fields(json!({ "key": "WEB", "id": "10001" })),
            post("/rest/api/3/issue", json!({ "fields": {} })),
            post(
                "/rest/api/3/issue",
                json!({ "fields": { "project": { "key": "WEB" }, "parent": { "id": "3" } } }),
            ),
            post(
                "/rest/api/3/issueLink",
                json!({ "inwardIssue": { "key": "WEB-7" }, "outwardIssue": { "key": "OPS-1" } }),
            ),
            post("/rest/api/3/search/jql", json!({ "jql": "a = 1) OR (project = OPS" })),
            json!({ "method": "PUT", "path": "/rest/api/3/project/WEB", "body": {} }),
        ],
    )
    .await;
    assert_eq!(bench.refused(get("/rest/api/3/issue/WEB-8")).await, "out_of_scope");
    assert_eq!(bench.fake.count(), 1, "it is looked up, and not asked for");
}
