//! The tool `github_api`: REST requests below the configured repository.

use serde_json::Value;

use super::Repository;
use crate::issue::Issue;
use crate::rest_tool::{self, ApiCall, RequestShape};
use crate::tool::{Tool, ToolRefusal};

pub(super) const NAME: &str = "github_api";

const SHAPE: RequestShape<'static> = RequestShape {
    methods: &["GET", "POST", "PATCH", "PUT", "DELETE"],
    query: "params",
    slashed: None,
};

/// Resources below a repository that agents may read.
const READABLE: &[&str] = &[
    "actions",
    "assignees",
    "branches",
    "check-runs",
    "check-suites",
    "comments",
    "commits",
    "compare",
    "contents",
    "contributors",
    "events",
    "git",
    "issues",
    "labels",
    "languages",
    "license",
    "merges",
    "milestones",
    "pulls",
    "readme",
    "releases",
    "stats",
    "statuses",
    "tags",
    "topics",
];

/// Resources below a repository that agents may change.
const WRITABLE: &[&str] = &[
    "check-runs",
    "comments",
    "commits",
    "contents",
    "git",
    "issues",
    "labels",
    "merges",
    "milestones",
    "pulls",
    "statuses",
];

/// Readable resources of Actions; others hold secrets.
const ACTIONS: &[&str] = &["artifacts", "jobs", "runs", "workflows"];

/// Resources of an issue or pull request that reach other repositories.
const OUT_OF_SCOPE: &[&str] = &["codespaces", "dependencies", "sub_issue", "sub_issues"];

pub(super) fn tool(repository: &Repository) -> Tool {
    let description = format!(
        "Sends a request to GitHub's REST API, confined to the repository {}. Paths begin with \
         /repos/{{owner}}/{{repo}}; {{owner}}, {{repo}} and {{issue_number}} are set for the current issue. \
         Readable: {}. Writable: {}.",
        repository.full_name(),
        READABLE.join(", "),
        WRITABLE.join(", ")
    );
    rest_tool::tool(NAME, description, &SHAPE)
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
    let rest = match call.segments().as_slice() {
        ["repos", owner, name, rest @ ..]
            if is(owner, &repository.owner) && is(name, &repository.name) =>
        {
            rest.iter().map(|part| part.to_ascii_lowercase()).collect::<Vec<_>>()
        }
        _ => {
            let own = repository.full_name();
            let message = format!("only what is below /repos/{own} can be reached");
            return Err(ToolRefusal::scope(message));
        }
    };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let allowed = if call.is_read() { READABLE } else { WRITABLE };
    match rest.as_slice() {
        ["issues" | "pulls", _, part, ..] if OUT_OF_SCOPE.contains(part) => {
            Err(ToolRefusal::scope(format!("`{part}` reaches other repositories")))
        }
        ["actions", part, ..] if !ACTIONS.contains(part) => {
            Err(ToolRefusal::scope(format!("of actions, only {} can be read", ACTIONS.join(", "))))
        }
        [] if call.is_read() => Ok(call),
        [first, ..] if allowed.contains(first) => Ok(call),
        _ => {
            let method = &call.method;
            let message =
                format!("{method} goes below the repository to one of {}", allowed.join(", "));
            Err(ToolRefusal::scope(message))
        }
    }
}
