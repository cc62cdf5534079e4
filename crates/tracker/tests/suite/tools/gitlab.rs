//! Requests to GitLab.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{all_refused, bench, get, post};
use crate::gitlab::Gitlab;
use crate::records::SECRET;

#[tokio::test]
async fn item_072_and_073_gitlab_requests_go_out_in_our_name_for_the_issue_at_hand() {
    let bench = bench::<Gitlab>().await;
    let sent = bench
        .sent(post("/projects/:id/issues/:issue_iid/notes", json!({ "body": "a /move b" })))
        .await;
    assert_eq!(sent.path, "/api/v4/projects/acme%2Fweb/issues/7/notes");
    assert_eq!(sent.headers["private-token"], SECRET);
    for path in [
        "/projects/acme%2Fweb/issues",
        "/projects/77/issues",
        "/projects/ACME%2fWEB/merge_requests/3",
    ] {
        assert!(bench.sent(get(path)).await.path.starts_with("/api/v4/projects/acme%2Fweb/"));
    }
    let own = json!({ "source_branch": "a", "target_branch": "b", "title": "c", "target_project_id": 77 });
    bench.sent(post("/projects/:id/merge_requests", own)).await;
}

#[tokio::test]
async fn gitlab_requests_stay_in_the_project() {
    let bench = bench::<Gitlab>().await;
    all_refused(&bench, vec![
        get("/projects"),
        get("/user"),
        get("/projects/78/issues"),
        get("/projects/acme%2Fother/issues"),
        get("/projects/acme/web/issues"),
        get("/projects/acme%2Fweb%2F..%2Fother/issues"),
        get("/projects/acme%252Fweb/issues"),
        get("/projects/:id/variables"),
        get("/projects/:id/pipelines/1/variables"),
        get("/projects/:id/pipelines/1/variables.json"),
        get("/projects/:id/hooks"),
        get("/projects/:id/deploy_tokens"),
        json!({ "method": "GET", "path": "/projects/:id/issues", "params": { "sudo": "root" } }),
        post("/projects/:id/issues/7/move", json!({ "to_project_id": 78 })),
        post("/projects/:id/issues/7/move.json", json!({})),
        post("/projects/:id/issues/7/clone", json!({})),
        post("/projects/:id/merge_requests", json!({ "target_project_id": 78 })),
        post("/projects/:id/fork", json!({})),
        post("/projects/:id/share", json!({})),
        post("/projects/:id/issues/7/notes", json!({ "body": "Look:\n  /MOVE other/project" })),
            post("/projects/:id/issues/7/notes", json!({ "body": "/relate other/project#1" })),
        post("/projects/:id/issues", json!({ "title": "a", "description": "/clone other/project" })),
        json!({ "method": "PUT", "path": "/projects/:id" }),
        json!({ "method": "DELETE", "path": "/projects/:id" }),
    ])
    .await;
}
