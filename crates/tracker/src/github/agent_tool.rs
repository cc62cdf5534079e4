//! The tool `github_api`: REST requests below the configured repository.

use serde_json::Value;

use super::Repository;
use crate::error::Result;
use crate::issue::Issue;
use crate::rest_tool::{self, ApiCall, RequestShape};
use crate::tool::{Tool, ToolRefusal, is_listed};

const SHAPE: RequestShape<'static> = RequestShape {
    methods: &["GET", "POST", "PATCH", "PUT", "DELETE"],
    query: "params",
    slashed: None,
};

/// Resources below a repository that agents may read.
const READABLE: &str = "actions, assignees, branches, check-runs, check-suites, comments, commits, \
    compare, contents, contributors, events, git, issues, labels, languages, license, merges, \
    milestones, pulls, readme, releases, stats, statuses, tags, topics";

/// Resources below a repository that agents may change.
const WRITABLE: &str = "check-runs, comments, commits, contents, git, issues, labels, merges, \
    milestones, pulls, statuses";

/// Readable resources of Actions; others hold secrets.
const ACTIONS: &str = "artifacts, jobs, runs, workflows";

/// Resources of an issue or pull request that reach other repositories.
const OUT_OF_SCOPE: &str = "codespaces, dependencies, sub_issue, sub_issues";

pub(super) fn tool(repository: &Repository) -> Tool {
    let description = format!(
        "Sends a request to GitHub's REST API, confined to the repository {}. Paths begin with \
         /repos/{{owner}}/{{repo}}; {{owner}}, {{repo}} and {{issue_number}} are set for the current issue. \
         Readable: {READABLE}. Writable: {WRITABLE}.",
        repository.full_name(),
    );
    rest_tool::tool("github_api", description, &SHAPE)
}

/// Parses a request and checks that it stays within the repository.
pub(super) fn check(
    arguments: Value,
    repository: &Repository,
    issue: &Issue,
) -> Result<ApiCall, ToolRefusal> {
    let call = ApiCall::parse(arguments, &SHAPE, |part| match part {
        "{owner}" => Some(repository.owner.clone()),
        "{repo}" => Some(repository.name.clone()),
        "{issue_number}" => Some(issue.id.0.clone()),
        _ => None,
    })?;
    let is = |name: &str, own: &str| name.eq_ignore_ascii_case(own);
    let rest: Vec<String> = match call.segments().as_slice() {
        ["repos", owner, name, rest @ ..]
            if is(owner, &repository.owner) && is(name, &repository.name) =>
        {
            rest.iter().map(|part| part.to_ascii_lowercase()).collect()
        }
        _ => {
            let own = repository.full_name();
            return ToolRefusal::scope(format!("only what is below /repos/{own} can be reached"));
        }
    };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    match rest.as_slice() {
        ["issues" | "pulls", _, part, ..] if is_listed(part, OUT_OF_SCOPE) => {
            ToolRefusal::scope(format!("`{part}` reaches other repositories"))
        }
        ["actions", part, ..] if !is_listed(part, ACTIONS) => {
            ToolRefusal::scope(format!("of actions, only {ACTIONS} can be read"))
        }
        _ => call.within("repository", rest.first(), READABLE, WRITABLE),
    }
}
