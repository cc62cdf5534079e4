//! Requests to GitHub.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{all_refused, bench, get, post};
use crate::github::Github;
use crate::records::SECRET;

#[tokio::test]
async fn item_072_and_073_github_requests_go_out_in_our_name_for_the_issue_at_hand() {
    let bench = bench::<Github>().await;
    let path = "/repos/{owner}/{repo}/issues/{issue_number}/comments";
    let sent = bench.sent(post(path, json!({ "body": "Done." }))).await;
    assert_eq!(
        (sent.method.as_str(), sent.path.as_str()),
        ("POST", "/repos/acme/web/issues/7/comments")
    );
    assert_eq!(sent.headers["authorization"], format!("Bearer {SECRET}"));
    assert_eq!(sent.body, json!({ "body": "Done." }));
    let listing = json!({ "method": "get", "path": "/repos/ACME/Web/issues", "params": { "state": "all", "page": 2 } });
    let sent = bench.sent(listing).await;
    assert_eq!(
        sent.query,
        [("state".to_owned(), "all".to_owned()), ("page".to_owned(), "2".to_owned())]
    );
    for arguments in [
        get("/repos/acme/web"),
        get("/repos/acme/web/contents/src/variables/secrets.rs"),
        get("/repos/acme/web/actions/runs/9/jobs"),
        json!({ "method": "PATCH", "path": "/repos/acme/web/issues/9", "body": { "state": "closed" } }),
        json!({ "method": "PUT", "path": "/repos/acme/web/pulls/9/merge" }),
        json!({ "method": "DELETE", "path": "/repos/acme/web/issues/9/labels/bug%20fix" }),
    ] {
        bench.sent(arguments).await;
    }
}

#[tokio::test]
async fn github_requests_stay_in_the_repository() {
    let bench = bench::<Github>().await;
    let method = |method: &str, path: &str| json!({ "method": method, "path": path });
    all_refused(
        &bench,
        vec![
            get("/user"),
            get("/repos/acme/other/issues"),
            get("/repos/acme/web/../other/issues"),
            get("/repos/acme/web%2f..%2fother/issues"),
            get("/repos/acme/web/%2e%2e/other"),
            get("//repos/acme/web"),
            get("/repos/acme/web/actions/secrets"),
            get("/repos/acme/web/hooks"),
            get("/repos/acme/web/keys"),
            get("/graphql"),
            get("https://evil.example/repos/acme/web"),
            post("/graphql", json!({ "query": "{ viewer { login } }" })),
            post("/repos/acme/web/forks", json!({})),
            post("/repos/acme/web/transfer", json!({ "new_owner": "eve" })),
            post("/repos/acme/web/generate", json!({})),
            post("/repos/acme/web/actions/workflows/1/dispatches", json!({})),
            post("/repos/acme/web/issues/1/sub_issues", json!({ "sub_issue_id": 1 })),
            method("DELETE", "/repos/acme/web"),
            method("PATCH", "/repos/acme/web"),
            method("PUT", "/repos/acme/web/collaborators/eve"),
            method("OPTIONS", "/repos/acme/web"),
        ],
    )
    .await;
}
