use std::path::Path;

use carrel_config::{EffectiveSetting, Environment, Origin, ValidationScope, Workflow};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

fn effective(text: &str, variables: &[(&str, &str)]) -> Vec<EffectiveSetting> {
    let environment = Environment::from_pairs(variables.iter().copied());
    let path = Path::new("/w/WORKFLOW.md");
    let workflow =
        Workflow::parse(text.as_bytes(), path, &environment, ValidationScope::Everything)
            .expect("it is right");
    workflow.effective
}

fn of(listed: &[EffectiveSetting], key: &str) -> (Value, Origin) {
    let found = listed.iter().find(|setting| setting.key == key).expect(key);
    (found.value.clone(), found.origin.clone())
}

fn variable(name: &str) -> Origin {
    Origin::Variable { name: name.to_owned() }
}

#[test]
fn every_setting_says_where_it_comes_from() {
    let text = "---\ntracker:\n  kind: linear\n  provider:\n    api_key: $KEY\n    project_slug: p\nworkspace:\n  root: $ROOT\nhooks:\n  timeout_ms: 5\n---\nhello";
    let listed = effective(text, &[("KEY", "secret-key"), ("ROOT", "/ws"), ("HOME", "/h")]);
    for (key, value, origin) in [
        ("tracker.kind", json!("linear"), Origin::File { line: 3 }),
        ("tracker.provider.api_key", json!("***"), variable("KEY")),
        ("tracker.provider.project_slug", json!("p"), Origin::File { line: 6 }),
        ("tracker.provider.endpoint", json!("https://api.linear.app/graphql"), Origin::Default),
        ("tracker.provider.assignee", Value::Null, Origin::Default),
        ("tracker.active_states", json!(["Todo", "In Progress"]), Origin::Default),
        ("workspace.root", json!("/ws"), variable("ROOT")),
        ("workspace.quota_gb", json!("5.0 GiB"), Origin::Default),
        ("hooks.timeout_ms", json!(5), Origin::File { line: 10 }),
        ("hooks.after_create", Value::Null, Origin::Default),
        ("agent.max_turns", json!(20), Origin::Default),
    ] {
        assert_eq!(of(&listed, key), (value, origin), "{key}");
    }
}

#[test]
fn variables_of_the_tracker_are_named_and_no_secret_is_shown() {
    let text = "---\ntracker: {kind: linear, api_key: literal-secret, project_slug: flat}\nhooks:\n  before_run: echo literal-secret\nagent: {kind: command, command: c}\n---\n";
    let listed = effective(text, &[("LINEAR_ASSIGNEE", "me"), ("HOME", "/h")]);
    assert_eq!(
        of(&listed, "tracker.provider.assignee"),
        (json!("me"), variable("LINEAR_ASSIGNEE"))
    );
    assert_eq!(of(&listed, "tracker.provider.project_slug").0, json!("flat"));
    assert_eq!(of(&listed, "hooks.before_run").0, json!("echo ***"));
    let all = serde_json::to_string(&listed).unwrap();
    assert!(!all.contains("literal-secret"), "{all}");
}
