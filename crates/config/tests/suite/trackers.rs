use std::path::Path;

use carrel_config::{
    ConductorConfig, Environment, TrackerKind, ValidationScope, Workflow, WorkflowError,
};
use carrel_domain::Secret;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::{conductor, message, warnings};

type Variables<'a> = &'a [(&'a str, &'a str)];

fn load(tracker: &str, variables: Variables<'_>) -> Result<Workflow, WorkflowError> {
    let environment = Environment::from_pairs(variables.iter().copied());
    let text = format!("---\ntracker: {tracker}\n---\n");
    Workflow::parse(
        text.as_bytes(),
        Path::new("/w/W.md"),
        &environment,
        ValidationScope::Everything,
    )
}

fn tracker(tracker: &str, variables: Variables<'_>) -> ConductorConfig {
    conductor(load(tracker, variables).expect("the tracker is configured"))
}

#[test]
fn item_008_states_and_labels_have_defaults_where_a_tracker_has_names_for_them() {
    let linear = "{kind: linear, provider: {project_slug: p}}";
    for (yaml, endpoint) in
        [("{kind: local}", None), (linear, Some(json!("https://api.linear.app/graphql")))]
    {
        let tracker = tracker(yaml, &[("LINEAR_API_KEY", "k")]).tracker;
        assert_eq!(tracker.active_states, ["Todo", "In Progress"], "{yaml}");
        let terminal = ["Closed", "Cancelled", "Canceled", "Duplicate", "Done"];
        assert_eq!(tracker.terminal_states, terminal, "{yaml}");
        assert!(tracker.required_labels.is_empty(), "{yaml}");
        assert_eq!(tracker.provider.settings.get("endpoint"), endpoint.as_ref(), "{yaml}");
    }
}

#[test]
fn the_built_in_tracker_needs_nothing() {
    let tracker = tracker("{kind: local, required_labels: [' A ', a, '']}", &[]).tracker;
    assert_eq!(tracker.kind, TrackerKind::Local);
    assert_eq!(tracker.active_states, ["Todo", "In Progress"]);
    assert_eq!(tracker.terminal_states, ["Closed", "Cancelled", "Canceled", "Duplicate", "Done"]);
    assert_eq!(tracker.required_labels, ["a", ""]);
}

#[test]
fn item_011_and_095_a_secret_is_found_by_the_table() {
    let both = [("LINEAR_API_KEY", "own-key"), ("X", "x-key")];
    let empty = [("LINEAR_API_KEY", "own-key"), ("X", "")];
    let cases: [(&str, Variables<'_>, Option<&str>); 8] = [
        ("provider: {project_slug: p}", &both, Some("own-key")),
        ("provider: {project_slug: p, api_key: $X}", &both, Some("x-key")),
        ("provider: {project_slug: p, api_key: $UNSET}", &both, Some("own-key")),
        ("provider: {project_slug: p, api_key: $X}", &empty, None),
        ("provider: {project_slug: p, api_key: ' literal '}", &both, Some("literal")),
        ("provider: {project_slug: p}, api_key: flat", &both, Some("flat")),
        ("provider: {project_slug: p, api_key: deep}, api_key: flat", &both, Some("deep")),
        ("provider: {project_slug: p}", &[], None),
    ];
    for (yaml, variables, expected) in cases {
        let loaded = load(&format!("{{kind: linear, {yaml}}}"), variables);
        match expected {
            Some(key) => {
                let secrets = conductor(loaded.unwrap()).tracker.provider.secrets;
                assert_eq!(secrets, [("api_key".to_owned(), Secret::new(key))].into(), "{yaml}");
            }
            None => assert!(
                message(loaded).contains(
                    "tracker.provider.api_key is missing; write it as $NAME, or set LINEAR_API_KEY"
                ),
                "{yaml}"
            ),
        }
    }
}

#[test]
fn item_010_settings_of_a_tracker_are_resolved_and_others_kept() {
    let yaml = "{kind: github, active_states: [open], terminal_states: [closed], \
                provider: {token: $T, api_key: misplaced, own: {a: 1}}}";
    let variables = [("T", "token-value"), ("GITHUB_REPO", "team/app")];
    let provider = tracker(yaml, &variables).tracker.provider;
    assert_eq!(
        json!(provider.settings),
        json!({"api_url": "https://api.github.com", "repo": "team/app", "own": {"a": 1}})
    );
    assert_eq!(provider.secrets.keys().collect::<Vec<_>>(), ["api_key", "token"]);
    assert!(!format!("{provider:?}").contains("misplaced"));
}

#[test]
fn a_flat_key_is_ignored_with_a_warning_where_it_means_nothing() {
    let workflow = load("{kind: local, api_key: some-secret}", &[]).unwrap();
    assert_eq!(
        warnings(&workflow),
        ["W.md:2:33: tracker.api_key is ignored by local; use tracker.provider"]
    );
}

#[test]
fn item_009_trackers_are_refused_with_what_would_work() {
    for (yaml, complaint) in [
        (
            "{kind: memory}",
            "tracker.kind must be one of linear, github, gitlab, jira, asana, local, found \"memory\"; did you mean local?",
        ),
        ("{kind: Linear}", "found \"Linear\"; did you mean linear?"),
        (
            "{kind: asana, provider: {project_gid: '1', api_key: k}}",
            "tracker.active_states is missing; list the states as the tracker spells them",
        ),
        (
            "{kind: github, provider: {repo: a/b, token: t}}",
            "tracker.active_states is missing; for this tracker write [open]",
        ),
        (
            "{kind: gitlab, active_states: [opened, todo], terminal_states: [closed], provider: {project_path: a/b, api_key: k}}",
            "tracker.active_states lists \"todo\", but this tracker knows only [opened]",
        ),
        (
            "{kind: linear, active_states: Todo}",
            "tracker.active_states must be a list of texts, found \"Todo\"; put it in brackets",
        ),
        (
            "{kind: linear, provider: {api_key: 12345678, project_slug: p}}",
            "tracker.provider.api_key must be text, found a number; put it in quotes",
        ),
        ("{kind: linear, provider: some-secret}", "tracker.provider must be a map, found text"),
        ("{kind: jira}", "tracker.provider.email is missing; write it as $NAME, or set JIRA_EMAIL"),
    ] {
        let message = message(load(yaml, &[]));
        assert!(message.contains(complaint), "{yaml}: {message}");
        assert!(!message.contains("12345678") && !message.contains("some-secret"), "{message}");
    }
}

#[test]
fn secrets_are_known_in_the_narrow_scope_too() {
    let text = "---\ntracker: {kind: nonsense, provider: {token: $T, api_key: [x]}}\n---\n";
    let variables =
        [("T", "token-value"), ("WORKER_INTERNAL_TOKEN", "internal"), ("ASANA_PAT", "1")];
    let workflow = Workflow::parse(
        text.as_bytes(),
        Path::new("/w/W.md"),
        &Environment::from_pairs(variables),
        ValidationScope::WorkspaceAndHooks,
    );
    let secrets = workflow.unwrap().known_secrets();
    assert_eq!(secrets, [Secret::new("internal"), Secret::new("token-value")]);
}

#[test]
fn a_variable_that_holds_a_secret_of_the_tracker_is_kept_from_the_agent() {
    let linear = "{kind: linear, provider: {project_slug: p, api_key: $MY_KEY}}";
    let variables: Variables<'_> = &[("MY_KEY", "lin_secret")];
    assert_eq!(tracker(linear, variables).secret_variables, ["MY_KEY"]);
    let asked_for = format!("{linear}\nagent: {{env: [MY_KEY]}}");
    let message = message(load(&asked_for, variables));
    assert!(message.contains("agent.env lists \"MY_KEY\", which holds a secret"), "{message}");
}
