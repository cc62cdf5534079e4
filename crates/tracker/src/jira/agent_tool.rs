//! The tool `jira_rest`: REST requests about issues of the configured project.

use carrel_client::percent_encode;
use hyper::Method;
use serde_json::{Value, json};

use super::{Jira, jql};
use crate::api::ApiRequest;
use crate::error::Result;
use crate::issue::Issue;
use crate::issue_records::{is_number, text};
use crate::rest_tool::{self, ApiCall, RequestShape};
use crate::tool::{Tool, ToolRefusal, is_listed};

const SHAPE: RequestShape<'static> =
    RequestShape { methods: &["GET", "POST", "PUT", "DELETE"], query: "query", slashed: None };

/// Resources of an issue that agents may use.
const ISSUE_PARTS: &str = "assignee, changelog, comment, editmeta, properties, remotelink, \
    transitions, votes, watchers, worklog";

/// Site-wide lists that changes refer to.
const VOCABULARY: &str = "field, issueLinkType, issuetype, priority, resolution";

/// Members that name issues, and members that name projects.
const ISSUES: &[&str] = &["inwardIssue", "outwardIssue", "parent"];
const PROJECTS: &[&str] = &["project", "projectId", "projectKey"];

pub(super) fn tool(project: &str) -> Tool {
    let description = format!(
        "Sends a request to Jira's REST API, confined to the project {project}. Paths begin with \
         /rest/api/3/; {{issueIdOrKey}} and {{projectIdOrKey}} are set for the current issue. Available are \
         issue/KEY (with {ISSUE_PARTS} below it), issue, issueLink, search/jql, project/{project} and, to read, \
         {VOCABULARY}. Issues are named by their keys."
    );
    rest_tool::tool("jira_rest", description, &SHAPE)
}

/// A request whose path is confined to the project, and the keys of further issues that it names.
#[derive(Debug)]
pub(super) struct CheckedRequest {
    pub(super) call: ApiCall,
    keys: Vec<String>,
}

/// Parses a request and checks that its keys belong to the project.
pub(super) fn check(
    arguments: Value,
    project: &str,
    issue: &Issue,
) -> Result<CheckedRequest, ToolRefusal> {
    let mut call = ApiCall::parse(arguments, &SHAPE, |part| match part {
        "{issueIdOrKey}" => Some(issue.identifier.clone()),
        "{projectIdOrKey}" => Some(project.to_owned()),
        _ => None,
    })?;
    let own_issue = |name: &str| name == issue.id.0 || is_key(name, project);
    let mut keys: Vec<String> = Vec::new();
    match call.segments().as_slice() {
        ["rest", "api", "3", "issue"] if call.method == Method::POST => {
            let key = call.body.as_ref().and_then(|body| text(body, "/fields/project/key"));
            if key.is_none() {
                let message = format!("`body.fields.project.key` has to be {project:?}");
                return ToolRefusal::scope(message);
            }
        }
        ["rest", "api", "3", "issue", key, rest @ ..] if own_issue(key) => {
            if rest.first().is_some_and(|part| !is_listed(part, ISSUE_PARTS)) {
                return ToolRefusal::scope(format!("of an issue, there are {ISSUE_PARTS}"));
            }
            keys.push((*key).to_owned());
        }
        ["rest", "api", "3", "issueLink"] if call.method == Method::POST => {}
        ["rest", "api", "3", "search", "jql"]
            if matches!(call.method, Method::GET | Method::POST) =>
        {
            confine_search(&mut call, project)?;
        }
        ["rest", "api", "3", "project", key, ..]
            if call.is_read() && key.eq_ignore_ascii_case(project) => {}
        ["rest", "api", "3", list] if call.is_read() && is_listed(list, VOCABULARY) => {}
        _ => {
            let message =
                format!("only issues of {project} can be reached, by keys such as {project}-1");
            return ToolRefusal::scope(message);
        }
    }
    keys.extend(named(&call, project)?);
    keys.retain(|key| *key != issue.id.0 && !key.eq_ignore_ascii_case(&issue.identifier));
    Ok(CheckedRequest { call, keys })
}

/// Restricts the search of a request to the project, in the query or in the body.
fn confine_search(call: &mut ApiCall, project: &str) -> Result<(), ToolRefusal> {
    if call.is_read() {
        let given = call.query.iter().find(|(name, _)| name == "jql").map(|(_, jql)| jql.clone());
        call.query.retain(|(name, _)| name != "jql");
        call.query.push(("jql".to_owned(), jql::scoped(&given.unwrap_or_default(), project)?));
        return Ok(());
    }
    let body = call.body.get_or_insert_with(|| json!({}));
    let given = text(body, "/jql").unwrap_or_default();
    let Some(fields) = body.as_object_mut() else {
        return ToolRefusal::arguments("`body` is not an object");
    };
    fields.insert("jql".to_owned(), json!(jql::scoped(&given, project)?));
    Ok(())
}

/// Returns the issues that a request names, and refuses other projects.
fn named(call: &ApiCall, project: &str) -> Result<Vec<String>, ToolRefusal> {
    let is_own = |json: &Value| {
        let key = json.as_str().map(str::to_owned).or_else(|| text(json, "/key"));
        key.is_some_and(|key| key.eq_ignore_ascii_case(project)) && json.get("id").is_none()
    };
    if !call.values_of(PROJECTS).iter().all(is_own) {
        let message = format!("the request names a project other than by the key {project}");
        return ToolRefusal::scope(message);
    }
    let mut keys = Vec::new();
    for json in call.values_of(ISSUES).iter().filter(|json| !json.is_null()) {
        let key = text(json, "/key").filter(|key| is_key(key, project) && json.get("id").is_none());
        let message = format!("issues are named by keys such as {project}-1");
        keys.push(key.ok_or(ToolRefusal::Scope(message))?);
    }
    Ok(keys)
}

/// Returns true for the key of an issue that is or was in the project.
fn is_key(text: &str, project: &str) -> bool {
    let Some((key, number)) = text.rsplit_once('-') else { return false };
    key.eq_ignore_ascii_case(project) && is_number(number)
}

impl Jira {
    /// Refuses issues that have left the project: Jira finds a moved issue by its old key too.
    pub(super) async fn verify_scope(&self, checked: &CheckedRequest) -> Result<(), ToolRefusal> {
        if checked.keys.len() > 10 {
            return ToolRefusal::arguments("it names more than ten issues");
        }
        for key in &checked.keys {
            let path = format!("/rest/api/3/issue/{}?fields=project", percent_encode(key));
            let json = self.api.json(ApiRequest::get(path)).await?;
            let project = text(&json, "/fields/project/key").unwrap_or_default();
            if !project.eq_ignore_ascii_case(&self.project) {
                return ToolRefusal::scope(format!("{key} has left the project"));
            }
        }
        Ok(())
    }
}
