//! HttpClient at Composio, and the operator's own token.

use std::time::Duration;

use carrel_domain::{Code, Coded as _, Secret};
use carrel_github::GitHubError;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::provider::{OTHER, PAGE, Provider, REPOSITORY, WORKSPACE, github, json, request};

fn accounts(user: &str, token: &str) -> String {
    let items = json!([{ "user_id": user, "status": "ACTIVE", "state": { "val": { "access_token": token } } }]);
    json("200 OK", &json!({ "items": items }).to_string())
}

#[tokio::test]
async fn a_workspace_that_is_connected_at_composio_lists_and_fetches() {
    let wrapped = format!(
        r#"{{"successful":true,"error":null,"data":{{"response_data":{{"data":[{REPOSITORY}]}}}}}}"#
    );
    let composio = Provider::start(vec![
        ("GET /api/v3/connected_accounts", accounts(WORKSPACE, "gho_theirs")),
        ("POST /api/v3/tools/execute/GITHUB_LIST", json("200 OK", &wrapped)),
    ])
    .await;
    let github = github(&[("COMPOSIO_API_KEY", "ak_key"), ("CARREL_COMPOSIO_URL", &composio.url)]);
    let listed = github.list(&request(WORKSPACE, None, None), PAGE).await.unwrap();
    assert_eq!((listed.len(), listed[0].name.as_str()), (1, "app"));
    let heard = composio.heard();
    assert!(heard[0].line.contains(&format!("user_ids={WORKSPACE}&toolkit_slugs=github")));
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&heard[1].body).unwrap(),
        json!({ "user_id": WORKSPACE, "arguments": { "page": 2, "per_page": 5 } })
    );
    assert!(heard.iter().all(|heard| heard.header("x-api-key") == Some("ak_key")));
    assert!(heard.iter().all(|heard| !heard.line.contains("ak_key")));
    let token = github.token(&request(WORKSPACE, Some("acme"), Some("app"))).await.unwrap();
    assert_eq!(token.expose(), "gho_theirs");
    // The answer is about another workspace than was asked for.
    assert!(github.token(&request(OTHER, Some("acme"), Some("app"))).await.is_none());
    let error = github.list(&request(OTHER, None, None), PAGE).await.unwrap_err();
    assert_eq!(error.code(), Code::NotConnected);
    composio.answer(vec![("GET /api/v3/connected_accounts", accounts(WORKSPACE, "gho_...abcd"))]);
    assert!(github.token(&request(WORKSPACE, Some("acme"), Some("app"))).await.is_none());
}

#[tokio::test]
async fn the_operators_token_is_for_those_who_may_see_everything() {
    let api =
        Provider::start(vec![("GET /user/repos", json("200 OK", &format!("[{REPOSITORY}]")))])
            .await;
    let variables = |allow: &'static str| {
        let url: &str = &api.url;
        github(&[
            ("GITHUB_TOKEN", "ghp_own"),
            ("CARREL_GITHUB_API_URL", url),
            ("CARREL_GITHUB_ALLOW", allow),
        ])
    };
    let asked = request(WORKSPACE, Some("acme"), Some("app"));
    let closed = variables("");
    assert!(closed.token(&asked).await.is_none());
    let error = closed.list(&asked, PAGE).await.unwrap_err();
    assert_eq!(error.code(), Code::NotConfigured);
    assert!(variables("*=acme").token(&asked).await.is_none(), "it can see more than acme");
    let open = variables("0198c0de-7a11-7000-8000-000000000001=*");
    assert_eq!(open.token(&asked).await.unwrap().expose(), "ghp_own");
    assert!(open.token(&request(OTHER, Some("acme"), Some("app"))).await.is_none());
    assert_eq!(open.list(&asked, PAGE).await.unwrap().len(), 1);
    assert_eq!(api.lines(), ["GET /user/repos?sort=updated&per_page=5&page=2"]);
}

#[tokio::test]
async fn what_a_provider_refuses_has_a_code_and_repeats_no_token() {
    let api = Provider::start(vec![]).await;
    let github = github(&[("CARREL_GITHUB_API_URL", api.url.as_str())]);
    let token = Secret::new("ghp_theirs");
    let reset =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 120;
    let used_up =
        format!("403 Forbidden\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset: {reset}");
    for (status, body, code, text) in [
        (
            "401 Unauthorized",
            r#"{"message":"Bad credentials ghp_theirs\u001b[31m"}"#,
            Code::UpstreamFailed,
            "401: Bad credentials ***",
        ),
        ("500 Oops", "<html>", Code::UpstreamFailed, "500"),
        ("302 Found\r\nlocation: http://127.0.0.1:1/", "", Code::UpstreamFailed, "302"),
        (
            "403 Forbidden",
            r#"{"message":"Resource not accessible"}"#,
            Code::UpstreamFailed,
            "not accessible",
        ),
        (used_up.as_str(), "{}", Code::UpstreamLimited, "rate limit"),
        ("403 Forbidden\r\nretry-after: 7", "{}", Code::UpstreamLimited, "rate limit"),
        ("429 Too Many Requests", "{}", Code::UpstreamLimited, "rate limit"),
        ("200 OK", "{}", Code::UpstreamFailed, "a list of repositories"),
        ("200 OK", "nonsense", Code::UpstreamFailed, "JSON"),
    ] {
        api.answer(vec![("GET /user/repos", json(status, body))]);
        let error = github.list_with(&token, PAGE).await.unwrap_err();
        let said = error.to_string();
        assert_eq!(error.code(), code, "{status}: {said}");
        assert!(said.starts_with("GitHub API error: ") && said.contains(text), "{said}");
        assert!(!said.contains("ghp_theirs") && !said.contains('\u{1b}'), "{said}");
        if let GitHubError::RateLimited { retry_after } = error {
            let seconds = retry_after.as_secs();
            let right = match status {
                _ if status.contains("retry-after") => seconds == 7,
                _ if status.contains("reset") => (100..=120).contains(&seconds),
                _ => retry_after == Duration::from_mins(1),
            };
            assert!(right, "{status}: {seconds}");
        }
    }
    drop(api);
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_no_reason_not_to_try_without_a_token() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let github = github(&[("COMPOSIO_API_KEY", "k"), ("CARREL_COMPOSIO_URL", url.as_str())]);
    let asked = request(WORKSPACE, Some("acme"), Some("app"));
    assert!(github.token(&asked).await.is_none());
    let error = github.list(&asked, PAGE).await.unwrap_err();
    assert_eq!(error.code(), Code::UpstreamFailed);
    assert!(error.to_string().contains("Composio does not answer"), "{error}");
}
