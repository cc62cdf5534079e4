//! The tool for agents.

use hyper::Method;
use serde_json::{Value, json};

use super::{Jira, jql};
use crate::api::ApiRequest;
use crate::issue::Issue;
use crate::issue_records::text;
use crate::rest_tool::{self, ApiCall, RequestShape};
use crate::tool::{Tool, ToolRefusal};

pub(super) const NAME: &str = "jira_rest";

const SHAPE: RequestShape<'static> =
    RequestShape { methods: &["GET", "POST", "PUT", "DELETE"], query: "query", slashed: None };

/// What of an issue an agent may reach.
const OF_AN_ISSUE: &[&str] = &[
    "assignee",
    "changelog",
    "comment",
    "editmeta",
    "properties",
    "remotelink",
    "transitions",
    "votes",
    "watchers",
    "worklog",
];

/// Lists that are the same for all projects, and that changes need.
const VOCABULARY: &[&str] = &["field", "issueLinkType", "issuetype", "priority", "resolution"];

/// Values that name an issue, and those that name a project.
const ISSUES: &[&str] = &["inwardIssue", "outwardIssue", "parent"];
const PROJECTS: &[&str] = &["project", "projectId", "projectKey"];

pub(super) fn tool(project: &str) -> Tool {
    let description = format!(
        "Sends a request to the REST interface of Jira, for the project {project} alone. Paths begin with \
         /rest/api/3/; {{issueIdOrKey}} and {{projectIdOrKey}} are filled in for the issue at hand. There are \
         issue/KEY (and {} below it), issue, issueLink, search/jql, project/{project} and, to read, {}. Issues \
         are named by their keys.",
        OF_AN_ISSUE.join(", "),
        VOCABULARY.join(", ")
    );
    rest_tool::tool(NAME, description, &SHAPE)
}

/// What an agent wants to send, and the keys of the issues that it names.
#[derive(Debug)]
pub(super) struct CheckedRequest {
    pub(super) call: ApiCall,
    keys: Vec<String>,
}

/// Reads what an agent wants to send, if it stays within the project as far as its keys tell.
pub(super) fn judge(
    arguments: Value,
    project: &str,
    issue: &Issue,
) -> Result<CheckedRequest, ToolRefusal> {
    let mut call = ApiCall::parse(arguments, &SHAPE, |part| match part {
        "{issueIdOrKey}" => Some(issue.identifier.clone()),
        "{projectIdOrKey}" => Some(project.to_owned()),
        _ => None,
    })?;
    let own_issue = |told: &str| told == issue.id.0 || is_key(told, project);
    let mut keys: Vec<String> = Vec::new();
    match call.pieces().as_slice() {
        ["rest", "api", "3", "issue"] if call.method == Method::POST => {
            let key = call.body.as_ref().and_then(|body| text(body, "/fields/project/key"));
            if key.is_none() {
                return Err(ToolRefusal::scope(format!(
                    "`body.fields.project.key` has to be {project:?}"
                )));
            }
        }
        ["rest", "api", "3", "issue", key, rest @ ..] if own_issue(key) => match rest.first() {
            Some(part) if !OF_AN_ISSUE.contains(part) => {
                let message = format!("of an issue, there are {}", OF_AN_ISSUE.join(", "));
                return Err(ToolRefusal::scope(message));
            }
            _ => keys.push((*key).to_owned()),
        },
        ["rest", "api", "3", "issueLink"] if call.method == Method::POST => {}
        ["rest", "api", "3", "search", "jql"]
            if matches!(call.method, Method::GET | Method::POST) =>
        {
            hold(&mut call, project)?;
        }
        ["rest", "api", "3", "project", key, ..]
            if call.is_read() && key.eq_ignore_ascii_case(project) => {}
        ["rest", "api", "3", list] if call.is_read() && VOCABULARY.contains(list) => {}
        _ => {
            let message =
                format!("only issues of {project} can be reached, by keys such as {project}-1");
            return Err(ToolRefusal::scope(message));
        }
    }
    keys.extend(named(&call, project)?);
    keys.retain(|key| *key != issue.id.0 && !key.eq_ignore_ascii_case(&issue.identifier));
    Ok(CheckedRequest { call, keys })
}

/// Holds a search to the project.
fn hold(call: &mut ApiCall, project: &str) -> Result<(), ToolRefusal> {
    if call.is_read() {
        let given = call.query.iter().find(|(name, _)| name == "jql").map(|(_, jql)| jql.clone());
        call.query.retain(|(name, _)| name != "jql");
        call.query.push(("jql".to_owned(), jql::scoped(&given.unwrap_or_default(), project)?));
        return Ok(());
    }
    let body = call.body.get_or_insert_with(|| json!({}));
    let given = text(body, "/jql").unwrap_or_default();
    let Some(fields) = body.as_object_mut() else {
        return Err(ToolRefusal::arguments("`body` is no object"));
    };
    fields.insert("jql".to_owned(), json!(jql::scoped(&given, project)?));
    Ok(())
}

/// Returns the issues that a body names, unless it names other projects.
fn named(call: &ApiCall, project: &str) -> Result<Vec<String>, ToolRefusal> {
    let is_own = |told: &Value| {
        let key = told.as_str().map(str::to_owned).or_else(|| text(told, "/key"));
        key.is_some_and(|key| key.eq_ignore_ascii_case(project)) && told.get("id").is_none()
    };
    if !call.given(PROJECTS).iter().all(is_own) {
        return Err(ToolRefusal::scope(format!(
            "what is sent names a project other than by the key {project}"
        )));
    }
    let mut keys = Vec::new();
    for told in call.given(ISSUES).iter().filter(|told| !told.is_null()) {
        let key = text(told, "/key").filter(|key| is_key(key, project) && told.get("id").is_none());
        let message = format!("issues are named by keys such as {project}-1");
        keys.push(key.ok_or_else(|| ToolRefusal::scope(message))?);
    }
    Ok(keys)
}

/// Tells whether a text is the key of an issue that is, or once was, in the project.
fn is_key(text: &str, project: &str) -> bool {
    let Some((key, number)) = text.rsplit_once('-') else { return false };
    key.eq_ignore_ascii_case(project) && crate::issue_records::is_number(number)
}

impl Jira {
    /// Refuses issues that are not of the project any more: Jira finds a moved one by its old key, too.
    pub(super) async fn look_up(&self, judged: &CheckedRequest) -> Result<(), ToolRefusal> {
        if judged.keys.len() > 10 {
            return Err(ToolRefusal::arguments("it names more than ten issues"));
        }
        for key in &judged.keys {
            let path =
                format!("/rest/api/3/issue/{}?fields=project", carrel_client::percent_encode(key));
            let told = self.api.json(ApiRequest::get(path)).await?;
            let project = text(&told, "/fields/project/key").unwrap_or_default();
            if !project.eq_ignore_ascii_case(&self.project) {
                return Err(ToolRefusal::scope(format!("{key} has left the project")));
            }
        }
        Ok(())
    }
}
