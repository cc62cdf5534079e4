//! Trackers as workflow files name them.

use std::path::Path;

use carrel_client::HttpClient;
use carrel_config::{
    Environment, TrackerConfig, TrackerKind, ValidationScope, Workflow, environment,
};
use carrel_domain::Secret;
use carrel_tracker::{
    ASANA_SECRET, ASANA_SIGNATURE, GITHUB_SIGNATURE, GITLAB_TOKEN, JIRA_SIGNATURE,
    LINEAR_SIGNATURE, TrackerErrorKind, from_config,
};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::asana::Asana;
use crate::fake::{Fake, Reply};
use crate::github::Github;
use crate::gitlab::Gitlab;
use crate::jira::Jira;
use crate::linear::Linear;
use crate::records::{Provider, config, open, stage};

fn read(text: &str, variables: &[(&str, &str)]) -> TrackerConfig {
    let environment = Environment::from_pairs(variables.iter().copied());
    let file = format!("---\n{text}\n---\nWork.\n");
    let workflow = Workflow::parse(
        file.as_bytes(),
        Path::new("/w/WORKFLOW.md"),
        &environment,
        ValidationScope::Everything,
    );
    workflow.unwrap().config.conductor.unwrap().tracker
}

#[test]
fn item_010_what_a_file_says_is_what_its_tracker_needs() {
    for (text, variables) in [
        ("tracker: {kind: linear, provider: {project_slug: web}}", &[("LINEAR_API_KEY", "k")][..]),
        ("tracker: {kind: linear, api_key: $KEY, project_slug: web}", &[("KEY", "k")]),
        (
            "tracker: {kind: github, active_states: [open], terminal_states: [closed]}",
            &[("GITHUB_TOKEN", "k"), ("GITHUB_REPO", "acme/web")],
        ),
        (
            "tracker: {kind: gitlab, active_states: [opened], terminal_states: [closed]}",
            &[("GITLAB_PAT", "k"), ("GITLAB_PROJECT_PATH", "acme/sub/web")],
        ),
        (
            "tracker: {kind: jira, provider: {project_key: WEB}, active_states: [To Do], terminal_states: [Done]}",
            &[
                ("JIRA_API_TOKEN", "k"),
                ("JIRA_EMAIL", "a@b.c"),
                ("JIRA_BASE_URL", "https://acme.atlassian.net"),
            ],
        ),
        (
            "tracker: {kind: asana, provider: {project_gid: \"1200\"}, active_states: [To do], terminal_states: [Done]}",
            &[("ASANA_PAT", "k")],
        ),
    ] {
        let tracker = from_config(&read(text, variables), &HttpClient::new(), None);
        assert_eq!(tracker.map(|_| ()), Ok(()), "{text}");
    }
}

#[tokio::test]
async fn the_embedded_tracker_is_the_caller_s() {
    let config = read("tracker: {kind: local}", &[]);
    let fault = from_config(&config, &HttpClient::new(), None).unwrap_err();
    assert_eq!(fault.kind, TrackerErrorKind::Config);
    let own = stage::<Github>(1).await.tracker;
    let given = from_config(&config, &HttpClient::new(), Some(own.clone())).unwrap();
    assert!(std::sync::Arc::ptr_eq(&own, &given));
}

/// An agent that has its tools keeps them as they were when it began, whatever the file says by then.
#[tokio::test]
async fn item_133_tools_keep_the_secret_that_they_began_with() {
    let fake = Fake::start(|_| Reply::json(&json!({}))).await;
    let issue = {
        let stage = stage::<Github>(1).await;
        stage.tracker.by_states(&["open".to_owned()]).await.unwrap().remove(0)
    };
    let mut settings = config::<Github>(&fake.address);
    let before = open(&settings).unwrap();
    settings.provider.secrets.insert("token".to_owned(), Secret::new("the-new-one"));
    let after = open(&settings).unwrap();
    for (tracker, secret) in [(&after, "the-new-one"), (&before, crate::records::SECRET)] {
        let arguments = json!({ "method": "GET", "path": "/repos/{owner}/{repo}" });
        assert!(tracker.call(&issue, "github_api", arguments).await.success);
        let sent = fake.heard().pop().unwrap();
        assert_eq!(sent.headers["authorization"], format!("Bearer {secret}"));
    }
}

/// The variables that stand in for settings.
const VARIABLES: [&str; 10] = [
    environment::LINEAR_API_KEY,
    environment::LINEAR_ASSIGNEE,
    environment::GITHUB_TOKEN,
    environment::GITHUB_REPO,
    environment::GITLAB_PAT,
    environment::GITLAB_PROJECT_PATH,
    environment::JIRA_BASE_URL,
    environment::JIRA_EMAIL,
    environment::JIRA_API_TOKEN,
    environment::ASANA_PAT,
];

fn settings<P: Provider>() -> impl Iterator<Item = &'static str> {
    let names = P::settings("").into_iter().map(|(name, _)| name);
    names.chain([P::secret_name()])
}

/// The guide has every tracker, setting, variable, tool, header and kind of failure, and says what becomes
/// of every part of an issue.
#[test]
fn item_039_the_guide_has_everything() {
    const GUIDE: &str = include_str!("../../../../docs/trackers.md");
    let faults = [
        TrackerErrorKind::Config,
        TrackerErrorKind::Secret,
        TrackerErrorKind::Request,
        TrackerErrorKind::Status(500),
        TrackerErrorKind::Response,
        TrackerErrorKind::Pagination,
        TrackerErrorKind::RateLimited,
    ];
    let tools = ["linear_graphql", "github_api", "gitlab_api", "jira_rest", "asana_api"];
    let names =
        TrackerKind::NAMES.iter().copied().chain(faults.map(TrackerErrorKind::name)).chain(tools);
    for name in names {
        assert!(
            GUIDE.contains(&format!("`{name}`")) || GUIDE.contains(&format!("`kind: {name}`")),
            "{name}"
        );
    }
    for heading in [
        "Configuration",
        "What is read",
        "What goes wrong",
        "Tools for agents",
        "Webhooks",
        "Trying it with a real tracker",
    ] {
        assert!(GUIDE.contains(&format!("\n## {heading}\n")), "{heading}");
    }
    let (_, configuration) = GUIDE.split_once("## Configuration").unwrap();
    let (configuration, rest) = configuration.split_once("## What is read").unwrap();
    for name in settings::<Linear>()
        .chain(settings::<Github>())
        .chain(settings::<Gitlab>())
        .chain(settings::<Jira>().chain(settings::<Asana>()).chain(VARIABLES))
    {
        assert!(configuration.contains(&format!("`{name}`")), "{name}");
    }
    let (read, _) = rest.split_once("## Requests").unwrap();
    for row in [
        "by states",
        "by ids",
        "left out",
        "id",
        "identifier",
        "`native_ref`",
        "description",
        "priority",
        "branch",
        "assignee",
        "labels",
        "blockers",
        "worked on",
    ] {
        assert!(read.contains(&format!("\n| {row} |")), "{row}");
    }
    let headers = [
        GITHUB_SIGNATURE,
        LINEAR_SIGNATURE,
        GITLAB_TOKEN,
        JIRA_SIGNATURE,
        ASANA_SIGNATURE,
        ASANA_SECRET,
    ];
    let lower = GUIDE.to_lowercase();
    for header in headers {
        assert!(lower.contains(&format!("`{header}`")), "{header}");
    }
}
