use std::path::PathBuf;
use std::time::Duration;

use carrel_config::{
    AgentKind, Budget, Budgets, Environment, RootOrigin, ValidationScope, Workflow,
};
use carrel_domain::{ByteSize, Network};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::{conductor, full, message, narrow, warnings};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn item_008_an_empty_file_means_the_defaults() {
    let workflow = full("").unwrap();
    let config = workflow.config.clone();
    assert_eq!(config.workspace.root.path, PathBuf::from("/scratch/carrel_workspaces"));
    assert_eq!(config.workspace.root.origin, RootOrigin::Default);
    assert_eq!(config.workspace.quota, ByteSize::gib(5));
    assert_eq!(config.workspace.quota_files, 1_000_000);
    assert_eq!(config.workspace.keep_unsaved, Duration::from_hours(14 * 24));
    assert_eq!((&config.hooks.after_create, &config.hooks.before_run), (&None, &None));
    assert_eq!((&config.hooks.after_run, &config.hooks.before_remove), (&None, &None));
    assert_eq!(config.hooks.env, Vec::<String>::new());
    assert_eq!((config.hooks.timeout, config.hooks.sandbox), (ms(60_000), false));
    assert!(workflow.prompt.is_built_in());
    let rest = conductor(workflow);
    assert_eq!(rest.poll_interval, ms(30_000));
    assert_eq!((rest.agent.kind, rest.agent.network), (AgentKind::Codex, Network::Full));
    assert_eq!((rest.agent.max_concurrent_agents, rest.agent.max_turns), (10, 20));
    assert_eq!(rest.agent.max_retry_backoff, ms(300_000));
    assert!(rest.agent.max_concurrent_agents_by_state.is_empty());
    assert!(rest.agent.env.is_empty() && rest.agent.command.is_none());
    assert!(rest.agent.readable.is_empty() && rest.agent.writable.is_empty());
    assert_eq!(rest.codex.command, "codex app-server");
    assert_eq!(rest.codex.thread_sandbox, "workspace-write");
    assert_eq!(
        rest.codex.approval_policy,
        json!({"reject": {"sandbox_approval": true, "rules": true, "mcp_elicitations": true}})
    );
    assert_eq!(rest.codex.turn_sandbox_policy, None);
    assert_eq!((rest.codex.turn_timeout, rest.codex.read_timeout), (ms(3_600_000), ms(5_000)));
    assert_eq!(rest.codex.stall_timeout, Some(ms(300_000)));
    let of_issue = Budget {
        turns: Some(100),
        tokens: Some(10_000_000),
        minutes: Some(480),
        attempts: Some(20),
    };
    assert_eq!(rest.budgets, Budgets { issue: of_issue, ..Budgets::default() });
    assert_eq!(rest.agent.max_turns_without_progress, Some(3));
    assert!(rest.observability.dashboard_enabled);
    assert_eq!(
        (rest.observability.refresh, rest.observability.render_interval),
        (ms(1000), ms(16))
    );
    assert_eq!((rest.server.port, rest.server.host.as_str()), (None, "127.0.0.1"));
}

#[test]
fn item_095_values_are_read_and_cast() {
    let yaml = "
agent:
  kind: command
  command: ./agent
  network: loopback
  env: [OPENAI_API_KEY]
  max_turns: '3'
  sandbox: {readable: [~/.config/agent, /opt], writable: [cache]}
  max_concurrent_agents_by_state: {' In Progress ': 2, todo: '1'}
codex: {approval_policy: never, turn_sandbox_policy: {type: x, n: null}, stall_timeout_ms: -1}
budgets: {run: {tokens: 5}, day: {minutes: 60}}
server: {port: 0}
observability: {dashboard_enabled: 'false'}
workspace: {quota_gb: 0.5, quota_files: null}";
    let workflow = full(yaml).unwrap();
    assert_eq!(workflow.config.workspace.quota, ByteSize::mib(512));
    assert_eq!(warnings(&workflow), Vec::<String>::new());
    let rest = conductor(workflow);
    assert_eq!(rest.agent.command.as_deref(), Some("./agent"));
    assert_eq!((rest.agent.network, rest.agent.max_turns), (Network::Loopback, 3));
    assert_eq!(rest.agent.env, ["OPENAI_API_KEY"]);
    assert_eq!(
        rest.agent.readable,
        [PathBuf::from("/home/anna/.config/agent"), PathBuf::from("/opt")]
    );
    assert_eq!(rest.agent.writable, [PathBuf::from("/w/cache")]);
    let limits = rest.agent.max_concurrent_agents_by_state;
    assert_eq!(limits, [("in progress".to_owned(), 2), ("todo".to_owned(), 1)].into());
    assert_eq!(rest.codex.approval_policy, json!("never"));
    assert_eq!(rest.codex.turn_sandbox_policy, Some(json!({"type": "x"})));
    assert_eq!(rest.codex.stall_timeout, None);
    assert_eq!(rest.budgets.run, Budget { tokens: Some(5), ..Budget::default() });
    assert_eq!(rest.budgets.day, Budget { minutes: Some(60), ..Budget::default() });
    assert_eq!(rest.server.port, Some(0));
    assert!(!rest.observability.dashboard_enabled);
}

#[test]
fn limits_that_have_a_default_are_turned_off_by_zero_alone() {
    let off = "
agent: {max_turns_without_progress: 0}
budgets: {issue: {turns: 0, tokens: 0, minutes: 0, attempts: 0}}
workspace: {keep_unsaved: 0}";
    let workflow = full(off).unwrap();
    assert_eq!(workflow.config.workspace.keep_unsaved, Duration::ZERO);
    let rest = conductor(workflow);
    assert_eq!(
        (rest.budgets.issue, rest.agent.max_turns_without_progress),
        (Budget::default(), None)
    );
    let unset = "
agent: {max_turns_without_progress: null}
budgets: {issue: {turns: null, tokens: 5}}
workspace: {keep_unsaved: null}";
    let workflow = full(unset).unwrap();
    assert_eq!(workflow.config.workspace.keep_unsaved, Duration::from_hours(14 * 24));
    let rest = conductor(workflow);
    assert_eq!((rest.budgets.issue.turns, rest.budgets.issue.tokens), (Some(100), Some(5)));
    assert_eq!(rest.agent.max_turns_without_progress, Some(3));
    let hours = full("workspace: {keep_unsaved: 36h}").unwrap();
    assert_eq!(hours.config.workspace.keep_unsaved, Duration::from_hours(36));
}

#[test]
fn wrong_values_are_explained() {
    for (yaml, complaint) in [
        (
            "hooks: {timeout_ms: 1.5}",
            "hooks.timeout_ms must be a whole number greater than 0, found 1.5",
        ),
        (
            "hooks: {after_create: 5}",
            "hooks.after_create must be text, found 5; put it in quotes: \"5\"",
        ),
        ("hooks: {env: [A-B]}", "hooks.env lists \"A-B\", which is not the name of a variable"),
        (
            "hooks: {env: [CARREL_HOOK]}",
            "hooks.env lists \"CARREL_HOOK\", which Carrel sets itself",
        ),
        ("hooks: {env: [GITHUB_TOKEN]}", "hooks.env lists \"GITHUB_TOKEN\", which holds a secret"),
        ("hooks: {after_run: \"a\\0b\"}", "hooks.after_run contains a NUL byte"),
        (
            "workspace: {root: $HOME/ws}",
            "workspace.root cannot be used: \"$HOME/ws\" is not expanded; write ~/ws",
        ),
        ("workspace: {root: 5}", "workspace.root must be text, found 5; put it in quotes: \"5\""),
        ("workspace: {quota_gb: 0}", "workspace.quota_gb must be a number greater than 0, found 0"),
        (
            "workspace: {quota_files: -1}",
            "workspace.quota_files must be a whole number greater than 0",
        ),
        (
            "agent: {kind: claude}",
            "agent.kind must be one of codex, acp, command, found \"claude\"",
        ),
        ("agent: {kind: acp}", "agent.command is missing; the agent kind acp needs it"),
        ("agent: {command: ' ', kind: acp}", "agent.command must be text that is not blank"),
        ("agent: {env: [GITHUB_TOKEN]}", "agent.env lists \"GITHUB_TOKEN\", which holds a secret"),
        ("agent: {network: some}", "agent.network must be one of none, loopback, full"),
        (
            "agent: {sandbox: {readable: [$NOPE]}}",
            "agent.sandbox.readable lists \"$NOPE\": the variable NOPE is not set",
        ),
        (
            "agent: {max_concurrent_agents_by_state: 5}",
            "agent.max_concurrent_agents_by_state must be a map, found a number",
        ),
        (
            "workspace: {keep_unsaved: 14}",
            "workspace.keep_unsaved must be 0 or a time up to 3650d, found 14; write it as 36h, 14d or 0",
        ),
        (
            "agent: {max_turns_without_progress: -1}",
            "agent.max_turns_without_progress must be a whole number, 0 or greater, found -1",
        ),
        (
            "budgets: {run: {tokens: 0}}",
            "budgets.run.tokens must be a whole number greater than 0, found 0",
        ),
        ("server: {port: 70000}", "server.port must be at most 65535, found 70000"),
        ("codex: {command: ''}", "codex.command must be text that is not blank, found \"\""),
    ] {
        let error = full(yaml).unwrap_err();
        let [problem] = error.problems() else { panic!("{yaml}: {error}") };
        assert!(problem.diagnostic.message.starts_with(complaint), "{yaml}: {error}");
    }
}

#[test]
fn doubtful_values_give_a_warning() {
    for (yaml, warning) in [
        ("workspace: {root: ws}", "W.md:2:19: workspace.root \"ws\" is relative and means /w/ws"),
        (
            "hooks: {before_run: 'echo {{ issue }}'}",
            "W.md:2:21: hooks.before_run is a script, not a template",
        ),
        (
            "hooks: {time_ms: 5}",
            "W.md:2:9: hooks.time_ms is not a setting and is ignored; did you mean hooks.timeout_ms?",
        ),
        ("agent: {command: x}", "W.md:2:18: agent.command is not used by the agent kind codex"),
        (
            "agent: {max_concurrent_agents_by_state: {todo: 0}}",
            "W.md:2:42: agent.max_concurrent_agents_by_state.todo is ignored: it must be a whole number greater than 0, found 0",
        ),
    ] {
        let warnings = warnings(&full(yaml).unwrap());
        assert_eq!(warnings.len(), 1, "{yaml}: {warnings:?}");
        assert!(warnings[0].starts_with(warning), "{yaml}: {warnings:?}");
    }
}

#[test]
fn a_hook_fits_into_one_argument() {
    let hook = |length: usize| narrow(&format!("hooks: {{before_run: {}}}", "x".repeat(length)));
    assert!(hook(carrel_config::MAX_SCRIPT_BYTES).is_ok());
    assert!(
        message(hook(carrel_config::MAX_SCRIPT_BYTES + 1)).contains("put the script into a file")
    );
}

#[test]
fn a_blank_hook_is_no_hook() {
    let workflow = narrow("hooks: {after_create: '', before_run: '  ', after_run: }").unwrap();
    let hooks = workflow.config.hooks;
    assert_eq!((hooks.after_create, hooks.before_run, hooks.after_run), (None, None, None));
}

#[test]
fn the_quota_falls_back_to_the_environment() {
    let quota = |value: &str, yaml: &str| {
        let environment = Environment::from_pairs([("WORKSPACE_DEFAULT_QUOTA_GB", value)]);
        let text = format!("---\n{yaml}\n---\n");
        let path = std::path::Path::new("/w/W.md");
        Workflow::parse(text.as_bytes(), path, &environment, ValidationScope::WorkspaceAndHooks)
            .map(|workflow| workflow.config.workspace.quota)
    };
    assert_eq!(quota("2", "").unwrap(), ByteSize::gib(2));
    assert_eq!(quota("2", "workspace: {quota_gb: 3}").unwrap(), ByteSize::gib(3));
    assert_eq!(quota("x", "workspace: {quota_gb: 3}").unwrap(), ByteSize::gib(3));
    assert_eq!(
        message(quota("x", "")),
        "/w/W.md: the variable WORKSPACE_DEFAULT_QUOTA_GB must be a number greater than 0, found \"x\""
    );
}
