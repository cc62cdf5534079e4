//! The tool `gitlab_api`: REST requests below the configured project.
//!
//! Besides the path, members and query values that name another project are refused, and so are texts with
//! quick actions (`/move`, `/relate` …), which GitLab would execute with the tracker's credential.

use serde_json::Value;

use crate::error::Result;
use crate::issue::Issue;
use crate::issue_records::word;
use crate::rest_tool::{self, ApiCall, RequestShape};
use crate::tool::{Tool, ToolRefusal, is_listed};

/// Resources below a project that agents may read.
const READABLE: &str = "boards, events, issues, issues_statistics, jobs, labels, languages, \
    merge_requests, milestones, pipelines, releases, repository, statuses, wikis";

/// Resources below a project that agents may change.
const WRITABLE: &str = "issues, labels, merge_requests, milestones, repository, statuses";

/// Resources of an entry that reach beyond the project or show secrets.
const OUT_OF_SCOPE: &str = "clone, links, move, promote, variables";

/// Members that name another project.
const OTHER_PROJECTS: &[&str] = &["target_project_id", "to_project_id", "move_to_project_id"];

/// Quick actions that reach beyond the project.
const QUICK_ACTIONS: &str = "/add_child, /blocked_by, /blocks, /clone, /copy_metadata, /epic, \
    /link, /move, /parent_epic, /promote, /relate, /set_parent";

fn shape(project: &str) -> RequestShape<'_> {
    RequestShape {
        methods: &["GET", "POST", "PUT", "DELETE"],
        query: "params",
        slashed: Some(project),
    }
}

pub(super) fn tool(project: &str) -> Tool {
    let description = format!(
        "Sends a request to GitLab's REST API, confined to the project {project}. Paths begin with \
         /projects/:id; :id and :issue_iid are set for the current issue. Readable: {READABLE}. Writable: \
         {WRITABLE}."
    );
    rest_tool::tool("gitlab_api", description, &shape(project))
}

/// Parses a request and checks that it stays within the project.
pub(super) fn check(
    arguments: Value,
    project: &str,
    issue: &Issue,
) -> Result<ApiCall, ToolRefusal> {
    let mut call = ApiCall::parse(arguments, &shape(project), |part| match part {
        ":id" => Some(project.to_owned()),
        ":issue_iid" => Some(issue.id.0.clone()),
        _ => None,
    })?;
    let number = issue.native_ref.as_ref().and_then(|json| word(json, "/project_id"));
    let own = |name: &str| name.eq_ignore_ascii_case(project) || number.as_deref() == Some(name);
    let rest: Vec<String> = match call.segments().as_slice() {
        ["projects", name, rest @ ..] if own(name) => {
            rest.iter().map(|part| part.to_ascii_lowercase()).collect()
        }
        _ => {
            let message =
                format!("only what is below /projects/:id, which is {project}, can be reached");
            return ToolRefusal::scope(message);
        }
    };
    project.clone_into(&mut call.path[1]);
    check_targets(&call, own)?;
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    match rest.as_slice() {
        [first, _, part, ..] if *first != "repository" && is_listed(action(part), OUT_OF_SCOPE) => {
            ToolRefusal::scope(format!("`{part}` reaches beyond the project's issues and code"))
        }
        _ => call.within("project", rest.first(), READABLE, WRITABLE),
    }
}

/// Returns the name in a segment: GitLab treats `move.json` like `move`.
fn action(part: &str) -> &str {
    part.split('.').next().unwrap_or_default()
}

/// Refuses members that name another project, and texts with quick actions.
fn check_targets(call: &ApiCall, own: impl Fn(&str) -> bool) -> Result<(), ToolRefusal> {
    let other = |value: &Value| !word(value, "").is_some_and(|name| own(&name));
    if call.values_of(OTHER_PROJECTS).iter().any(other) {
        return ToolRefusal::scope("the request names another project");
    }
    let mut texts: Vec<&str> = call.query.iter().map(|(_, value)| value.as_str()).collect();
    if let Some(body) = &call.body {
        texts_in(body, &mut texts);
    }
    let commands = |line: &str| {
        let line = line.trim_start().to_lowercase();
        QUICK_ACTIONS.split(", ").find(|command| line.starts_with(command))
    };
    match texts.iter().flat_map(|text| text.lines()).find_map(commands) {
        Some(command) => {
            ToolRefusal::scope(format!("GitLab would execute the quick action {command}"))
        }
        None => Ok(()),
    }
}

fn texts_in<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(values) => values.iter().for_each(|value| texts_in(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| texts_in(value, texts)),
        _ => {}
    }
}
