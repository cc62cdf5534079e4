//! Items of the acceptance list that a workflow file alone can show, by number (`docs/conformance.md`).

use std::path::Path;
use std::time::Duration;

use carrel_config::{Environment, TrackerKind, ValidationScope, Workflow};
use carrel_domain::{Code, Coded as _};
use pretty_assertions::assert_eq;

use crate::{conductor, environment, full, parse, warnings};

fn code(text: &str) -> Code {
    parse(text, ValidationScope::Everything).expect_err(text).code()
}

#[test]
fn item_005_a_missing_file_has_an_error_of_its_own() {
    let missing = Path::new("/nowhere/WORKFLOW.md");
    let error = Workflow::load(missing, &environment(), ValidationScope::Everything).unwrap_err();
    assert_eq!(
        (error.code(), error.code().kind()),
        (Code::WorkflowMissing, "missing_workflow_file")
    );
    assert_eq!(error.detail()["file"], "/nowhere/WORKFLOW.md");
}

#[test]
fn item_006_broken_yaml_has_an_error_of_its_own() {
    for text in ["---\na: [\n---\n", "---\na: 1\na: 2\n---\n", "---\na: 'x\n---\n"] {
        assert_eq!(code(text), Code::WorkflowParse, "{text}");
    }
}

#[test]
fn item_007_front_matter_that_is_no_map_has_an_error_of_its_own() {
    for text in ["---\n- a\n---\n", "---\njust text\n---\n", "---\n7\n---\n"] {
        assert_eq!(code(text), Code::WorkflowNotAMap, "{text}");
    }
}

#[test]
fn item_009_a_tracker_is_one_that_there_is() {
    for kind in ["trello", "Linear", "5", "[linear]"] {
        let text = format!("---\ntracker: {{kind: {kind}}}\n---\n");
        assert_eq!(code(&text), Code::TrackerUnsupported, "{kind}");
    }
    for text in ["", "---\n---\n", "---\ntracker: {}\n---\n", "---\ntracker: {kind: }\n---\n"] {
        assert_eq!(code(text), Code::TrackerMissing, "{text}");
    }
    for kind in TrackerKind::NAMES {
        let text = format!("---\ntracker: {{kind: {kind}}}\n---\n");
        // All but the built-in one need more, which is another error.
        let refused = parse(&text, ValidationScope::Everything).err().map(|error| error.code());
        assert_ne!(refused, Some(Code::TrackerUnsupported), "{kind}");
        assert_eq!(refused.is_none(), *kind == "local", "{kind}");
    }
}

#[test]
fn item_013_the_command_of_codex_stays_text_for_a_shell() {
    for command in ["A=1 codex  app-server --x \"$HOME\" | tee ~/log; :", "$CODEX", "~/bin/codex"] {
        let text = format!(
            "---\ntracker: {{kind: local}}\ncodex:\n  command: {}\n---\n",
            serde_json::json!(command)
        );
        let variables = Environment::from_pairs([("HOME", "/home/anna"), ("CODEX", "replaced")]);
        let path = Path::new("/w/WORKFLOW.md");
        let workflow =
            Workflow::parse(text.as_bytes(), path, &variables, ValidationScope::Everything);
        assert_eq!(conductor(workflow.unwrap()).codex.command, command);
    }
}

#[test]
fn item_014_limits_by_state_forgive_spelling_and_leave_bad_entries_out() {
    let workflow = full(
        "agent:\n  max_concurrent_agents_by_state: {' In Progress ': 2, TODO: '1', a: 0, b: -3, c: many, d: 1.5, e: }",
    )
    .unwrap();
    let ignored = |warning: &String| warning.contains(" is ignored: it must be a whole number");
    let warnings = warnings(&workflow);
    assert_eq!(warnings.iter().filter(|told| ignored(told)).count(), 5, "{warnings:?}");
    assert_eq!(warnings.len(), 5, "{warnings:?}");
    let limits = conductor(workflow).agent.max_concurrent_agents_by_state;
    assert_eq!(limits, [("in progress".to_owned(), 2), ("todo".to_owned(), 1)].into());
}

#[test]
fn item_101_hooks_have_a_minute_if_nothing_is_said() {
    let timeout = |yaml: &str| full(yaml).unwrap().config.hooks.timeout;
    assert_eq!(timeout(""), Duration::from_mins(1));
    assert_eq!(timeout("hooks: {timeout_ms: 1500}"), Duration::from_millis(1500));
}

#[test]
fn item_103_codex_is_started_as_its_app_server_if_nothing_is_said() {
    assert_eq!(conductor(full("").unwrap()).codex.command, "codex app-server");
}

#[test]
fn item_106_the_longest_wait_is_five_minutes_if_nothing_is_said() {
    let longest = |yaml: &str| conductor(full(yaml).unwrap()).agent.max_retry_backoff;
    assert_eq!(longest(""), Duration::from_mins(5));
    assert_eq!(longest("agent: {max_retry_backoff_ms: 20000}"), Duration::from_secs(20));
}

#[test]
fn item_114_the_file_says_what_the_terminal_shows() {
    let shown = conductor(
        full("observability: {dashboard_enabled: false, refresh_ms: 250, render_interval_ms: 40}")
            .unwrap(),
    )
    .observability;
    assert!(!shown.dashboard_enabled);
    assert_eq!(shown.refresh, Duration::from_millis(250));
    assert_eq!(shown.render_interval, Duration::from_millis(40));
}

#[test]
fn item_119_front_matter_without_an_end_has_an_empty_prompt() {
    let workflow =
        parse("---\ntracker: {kind: local}\nhooks: {timeout_ms: 5}\n", ValidationScope::Everything)
            .unwrap();
    assert_eq!(workflow.config.hooks.timeout, Duration::from_millis(5));
    assert!(workflow.prompt.is_built_in());
    assert!(warnings(&workflow)[0].contains("has no closing `---`"));
}
