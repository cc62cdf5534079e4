//! Tokens of an app's installations.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use carrel_domain::{Code, Coded as _};
use pretty_assertions::assert_eq;
use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::provider::{
    OTHER, PAGE, Provider, REPOSITORY, WORKSPACE, github, json, request, settings,
};

/// A private key, in both forms of PEM.
fn keys() -> &'static (String, String) {
    static KEYS: OnceLock<(String, String)> = OnceLock::new();
    KEYS.get_or_init(|| {
        let run = |words: &[&str], input: &str| {
            use std::io::Write as _;
            let mut child = Command::new("openssl")
                .args(words)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
        };
        let modern = run(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], "");
        let old = run(&["rsa", "-traditional"], &modern);
        assert!(modern.contains("BEGIN PRIVATE") && old.contains("BEGIN RSA PRIVATE"), "{old}");
        (modern, old)
    })
}

fn made(token: &str, expires_at: &str) -> String {
    json("201 Created", &json!({ "token": token, "expires_at": expires_at }).to_string())
}

async fn usual() -> Provider {
    Provider::start(vec![
        ("GET /orgs/acme/installation", json("200 OK", r#"{"id":42}"#)),
        ("GET /users/beta/installation", json("200 OK", r#"{"id":43}"#)),
        ("POST /app/installations/42/access_tokens", made("ghs_acme", "2099-01-01T00:00:00Z")),
        ("POST /app/installations/43/access_tokens", made("ghs_beta", "2099-01-01T00:00:00Z")),
        (
            "GET /installation/repositories",
            json("200 OK", &format!(r#"{{"total_count":1,"repositories":[{REPOSITORY}]}}"#)),
        ),
    ])
    .await
}

fn variables<'a>(provider: &'a Provider, allow: &'a str) -> Vec<(&'static str, &'a str)> {
    vec![
        ("GITHUB_APP_ID", "1234"),
        ("GITHUB_APP_PRIVATE_KEY", &keys().1),
        ("CARREL_GITHUB_API_URL", &provider.url),
        ("CARREL_GITHUB_ALLOW", allow),
    ]
}

#[tokio::test]
async fn an_app_says_who_it_is_and_gets_a_token_that_can_do_what_it_is_for() {
    let provider = usual().await;
    let allow = format!("{WORKSPACE}=acme");
    let github = github(&variables(&provider, &allow));
    let listed = github.list(&request(WORKSPACE, None, None), PAGE).await.unwrap();
    assert_eq!(
        serde_json::to_value(&listed).unwrap(),
        json!([{
            "name": "app", "full_name": "acme/app", "url": "https://github.com/acme/app.git",
            "description": null, "default_branch": "main", "private": true, "language": "Rust",
            "updated_at": "2026-11-15T12:00:00Z",
        }])
    );
    let token = github.token(&request(WORKSPACE, Some("Acme"), Some("app"))).await.unwrap();
    assert_eq!(token.expose(), "ghs_acme");
    let heard = provider.heard();
    let bodies: Vec<Value> =
        heard.iter().filter_map(|heard| serde_json::from_str(&heard.body).ok()).collect();
    assert_eq!(
        bodies,
        [
            json!({ "permissions": { "metadata": "read" } }),
            json!({ "repositories": ["app"], "permissions": { "contents": "read" } }),
        ]
    );
    assert_eq!(heard[2].line, "GET /installation/repositories?per_page=5&page=2");
    assert_eq!(heard[2].header("authorization"), Some("Bearer ghs_acme"));

    let signed = heard[0].header("authorization").unwrap().strip_prefix("Bearer ").unwrap();
    let (message, signature) = signed.rsplit_once('.').unwrap();
    let der = keys().1.lines().filter(|line| !line.starts_with("---")).collect::<String>();
    let der = base64::engine::general_purpose::STANDARD.decode(der).unwrap();
    let pair = RsaKeyPair::from_der(&der).unwrap();
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key())
        .verify(message.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
        .unwrap();
    let claims = URL_SAFE_NO_PAD.decode(message.split_once('.').unwrap().1).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    let time = claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap();
    assert_eq!((&claims["iss"], time <= 600), (&json!("1234"), true));
}

#[tokio::test]
async fn no_workspace_gets_the_token_of_an_owner_that_was_not_given_to_it() {
    let provider = usual().await;
    let allow = format!("{WORKSPACE}=acme,{OTHER}=beta");
    let github = github(&variables(&provider, &allow));
    assert!(github.token(&request(WORKSPACE, Some("acme"), Some("x"))).await.is_some());
    assert!(github.token(&request(OTHER, Some("beta"), Some("x"))).await.is_some());
    let before = provider.lines().len();
    for (workspace, owner) in
        [(OTHER, "acme"), (WORKSPACE, "beta"), (WORKSPACE, "acme/../beta"), (WORKSPACE, "")]
    {
        assert!(
            github.token(&request(workspace, Some(owner), Some("x"))).await.is_none(),
            "{owner}"
        );
    }
    let error = github.list(&request(OTHER, Some("acme"), None), PAGE).await.unwrap_err();
    assert_eq!(error.code(), Code::NotConnected);
    assert_eq!(provider.lines().len(), before, "nobody was asked");
}

#[tokio::test]
async fn a_token_is_kept_for_its_purpose_until_shortly_before_its_end() {
    let provider = usual().await;
    let github = github(&variables(&provider, "*=*"));
    let asked = |github: carrel_github::GitHub, repository| async move {
        github.token(&request(WORKSPACE, Some("acme"), Some(repository))).await.unwrap();
    };
    asked(github.clone(), "a").await;
    asked(github.clone(), "a").await;
    assert_eq!(provider.lines().len(), 2);
    asked(github.clone(), "b").await;
    assert_eq!(provider.lines().len(), 4);
    let soon = std::time::SystemTime::now() + std::time::Duration::from_mins(9);
    let soon = soon.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let soon = carrel_domain::Timestamp::from_millis(i64::try_from(soon).unwrap()).to_string();
    provider.answer(vec![
        ("GET /orgs/acme/installation", json("200 OK", r#"{"id":42}"#)),
        ("POST /app/installations/42/access_tokens", made("ghs_short", &soon)),
    ]);
    asked(github.clone(), "c").await;
    asked(github.clone(), "c").await;
    assert_eq!(provider.lines().len(), 8);
}

#[tokio::test]
async fn whose_repositories_is_asked_for_where_there_are_several() {
    let provider = usual().await;
    let allow = format!("{WORKSPACE}=acme,{WORKSPACE}=beta,{OTHER}=nobody");
    let github = github(&variables(&provider, &allow));
    let error = github.list(&request(WORKSPACE, None, None), PAGE).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidRequest);
    assert!(error.to_string().contains("acme, beta"), "{error}");
    assert!(github.list(&request(WORKSPACE, Some("beta"), None), PAGE).await.is_ok());
    // The app is not installed there.
    let error = github.list(&request(OTHER, None, None), PAGE).await.unwrap_err();
    assert_eq!(error.code(), Code::NotConnected);
}

#[test]
fn half_an_app_is_refused_at_the_start_and_no_message_repeats_a_key() {
    let (modern, old) = keys();
    let one_line = old.replace('\n', "\\n");
    for key in [modern, old, &one_line] {
        let pairs = [("GITHUB_APP_ID", "1"), ("GITHUB_APP_PRIVATE_KEY", key.as_str())];
        assert!(settings(&pairs).is_ok());
    }
    for pairs in [
        vec![("GITHUB_APP_ID", "1")],
        vec![("GITHUB_APP_PRIVATE_KEY", old.as_str())],
        vec![("GITHUB_APP_ID", "1"), ("GITHUB_APP_PRIVATE_KEY", "s3cret")],
        vec![("GITHUB_APP_ID", "1"), ("GITHUB_APP_PRIVATE_KEY_FILE", "/nowhere")],
        vec![("CARREL_GITHUB_ALLOW", "everybody")],
        vec![("CARREL_GITHUB_API_URL", "http://api.github.com")],
        vec![("CARREL_COMPOSIO_URL", "http://user:s3cret@composio.example")],
    ] {
        let error = carrel_domain::message_of(&settings(&pairs).unwrap_err());
        assert!(!error.contains("s3cret") && !error.contains("PRIVATE KEY---"), "{error}");
    }
    let shown =
        format!("{:?}", settings(&[("GITHUB_APP_ID", "1"), ("GITHUB_APP_PRIVATE_KEY", old)]));
    assert!(!shown.contains("MII"), "{shown}");
}
