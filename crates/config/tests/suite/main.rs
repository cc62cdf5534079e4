//! Whole workflow and policy files, as an operator writes, breaks and edits them.

/// Effective settings and their origins.
mod effective;
/// Files, scopes, codes and warnings.
mod files;
/// No input makes the loader panic.
mod hostile;
/// Items of the acceptance list that a workflow file alone can show.
mod items;
/// Policy files: values, rules and their messages.
mod policy;
/// Policy files on disk: trust checks and locations.
mod policy_files;
/// Live reload of real files.
mod reload;
/// Defaults, casts and rules of the settings.
mod settings;
/// Toolchains below a home directory.
mod toolchains;
/// Trackers, their secrets and their states.
mod trackers;

use std::path::Path;

use carrel_config::{ConductorConfig, Environment, ValidationScope, Workflow, WorkflowError};

/// The environment that most tests use.
fn environment() -> Environment {
    Environment::from_pairs([("HOME", "/home/anna"), ("TMPDIR", "/scratch")])
}

fn parse(text: &str, scope: ValidationScope) -> Result<Workflow, WorkflowError> {
    Workflow::parse(text.as_bytes(), Path::new("/w/WORKFLOW.md"), &environment(), scope)
}

/// Loads front matter for workspaces and hooks alone.
fn narrow(yaml: &str) -> Result<Workflow, WorkflowError> {
    parse(&format!("---\n{yaml}\n---\n"), ValidationScope::WorkspaceAndHooks)
}

/// Loads front matter for everything; `tracker.kind` is added.
fn full(yaml: &str) -> Result<Workflow, WorkflowError> {
    parse(&format!("---\n{yaml}\ntracker: {{kind: local}}\n---\n"), ValidationScope::Everything)
}

fn conductor(workflow: Workflow) -> ConductorConfig {
    workflow.config.conductor.expect("everything was asked for")
}

fn message<T>(result: Result<T, WorkflowError>) -> String {
    result.err().expect("the file is wrong").to_string()
}

fn warnings(workflow: &Workflow) -> Vec<String> {
    let file = Path::new("W.md");
    workflow.warnings.iter().map(|warning| warning.located(file)).collect()
}
