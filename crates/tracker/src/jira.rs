//! Jira Cloud, over its REST API version 3. Lists are JQL searches; issues by id are bulk fetches.

mod agent_tool;
mod jql;
mod rich_text;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use carrel_domain::Secret;
use hyper::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::api::{Api, ApiRequest, line};
use crate::error::{Result, TrackerError, TrackerErrorKind};
use crate::issue::{Blocker, Issue, IssueId, normal};
use crate::issue_records::{IssueRecords, labels, list, text, time, word};
use crate::pages::Cursor;
use crate::provider::{IssueProvider, Settings};
use crate::rest_tool;
use crate::tool::{Tool, ToolRefusal, ToolReply};

/// Issues per page of a search; Jira may return fewer.
const PAGE: usize = 250;

/// The requested fields of an issue.
const FIELDS: &str =
    "summary,description,status,labels,issuelinks,assignee,project,created,updated";

#[derive(Debug)]
pub(crate) struct Jira {
    api: Api,
    project: String,
    terminal: Vec<String>,
}

impl Jira {
    /// Posts a request for issues, whose reply lists them in `issues`.
    async fn request(&self, path: &str, mut body: Value) -> Result<Value> {
        body["fields"] = FIELDS.split(',').collect();
        self.api.json(ApiRequest::post(path, body)).await
    }

    fn issues<'a>(&self, json: &'a Value) -> Result<&'a [Value]> {
        let issues = json["issues"].as_array().map(Vec::as_slice);
        issues.ok_or_else(|| self.api.malformed("a list of issues"))
    }

    /// Reads an issue; `None` if a required member is missing. A new issue is dispatchable once its blockers
    /// are resolved.
    fn read(&self, json: &Value) -> Option<Issue> {
        let key = text(json, "/key")?;
        let names = list(json, "/fields/labels").iter().filter_map(Value::as_str);
        let description = rich_text::plain(&json["fields"]["description"]);
        let links = list(json, "/fields/issuelinks");
        let mut issue = Issue {
            id: IssueId(word(json, "/id")?),
            url: Some(format!("{}/browse/{key}", self.api.server)),
            identifier: key,
            title: text(json, "/fields/summary")?,
            description: (!description.is_empty()).then_some(description),
            state: text(json, "/fields/status/name")?,
            assignee_id: text(json, "/fields/assignee/accountId"),
            labels: labels(names),
            blocked_by: links.iter().filter_map(blocker).collect(),
            created_at: time(json, "/fields/created"),
            updated_at: time(json, "/fields/updated"),
            ..Issue::default()
        };
        issue.dispatchable = !is_new(json, &issue)
            || issue.blocked_by.iter().all(|blocker| blocker.is_resolved(&self.terminal));
        Some(issue)
    }
}

/// Returns true for an issue in the status category `new`.
fn is_new(json: &Value, issue: &Issue) -> bool {
    match text(json, "/fields/status/statusCategory/key") {
        Some(category) => normal(&category) == "new",
        None => matches!(issue.normal_state().as_str(), "todo" | "to do"),
    }
}

fn blocker(link: &Value) -> Option<Blocker> {
    let blocks = normal(link.pointer("/type/name")?.as_str()?) == "blocks";
    let inward = link.get("inwardIssue").filter(|issue| issue.is_object())?;
    blocks.then(|| Blocker {
        id: word(inward, "/id"),
        identifier: text(inward, "/key"),
        state: text(inward, "/fields/status/name"),
    })
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[async_trait::async_trait]
impl IssueProvider for Jira {
    const NAME: &'static str = "Jira";

    /// Issues per bulk fetch; Jira's maximum.
    const BATCH: usize = 100;

    fn new(settings: Settings<'_>) -> Result<Self> {
        let (token, email) = (settings.secret("api_token")?, settings.text("email")?);
        let pair = Secret::new(STANDARD.encode(format!("{email}:{}", token.expose())));
        let shown = Secret::new(format!("Basic {}", pair.expose()));
        let api = Api::new(settings, "base_url", Self::NAME, (AUTHORIZATION, &shown))?;
        let api = api.redacting(&pair).redacting(token);
        let project = settings.text("project_key")?.to_ascii_uppercase();
        if !project.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            let rule = "is not a project key, such as ABC";
            return Err(TrackerError::invalid_setting("project_key", rule));
        }
        Ok(Self { api, project, terminal: settings.terminal() })
    }

    async fn list(&self, states: &[String]) -> Result<IssueRecords> {
        let names = states.iter().map(|state| state.trim()).filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(quoted).collect();
        let mut records = IssueRecords::default();
        if names.is_empty() {
            return Ok(records);
        }
        let (project, names) = (quoted(&self.project), names.join(", "));
        let jql = format!("project = {project} AND status in ({names}) ORDER BY created ASC");
        let mut cursor = Cursor::new(Self::NAME);
        loop {
            let mut body = json!({ "jql": jql, "maxResults": PAGE });
            if let Some(token) = &cursor.at {
                body["nextPageToken"] = json!(token);
            }
            let json = self.request("/rest/api/3/search/jql", body).await?;
            records.append(IssueRecords::read(self.issues(&json)?, |issue| self.read(issue)));
            let next = text(&json, "/nextPageToken");
            let more = json["isLast"].as_bool().map_or(next.is_some(), |last| !last);
            if !cursor.advance(&records, more, next, "nextPageToken")? {
                return Ok(records);
            }
        }
    }

    async fn batch(&self, ids: &[&str]) -> Result<IssueRecords> {
        let body = json!({ "issueIdsOrKeys": ids });
        let json = self.request("/rest/api/3/issue/bulkfetch", body).await?;
        // Invisible issues are not in this list; these are temporary failures.
        if let Some(error) = list(&json, "/issueErrors").first() {
            let why = text(error, "/errorMessage").unwrap_or_else(|| "no reason".to_owned());
            let message = format!("Jira did not return issue {}: {}", error["id"], line(&why));
            return Err(TrackerError::new(TrackerErrorKind::Response, self.api.redact(&message)));
        }
        let key = |issue: &Value| text(issue, "/fields/project/key");
        let is_own = |key: String| key.eq_ignore_ascii_case(&self.project);
        let issues = self.issues(&json)?.iter();
        let here = issues.filter(|issue| key(issue).is_none_or(is_own));
        Ok(IssueRecords::read(here, |issue| key(issue).and_then(|_| self.read(issue))))
    }

    fn tool(&self) -> Tool {
        agent_tool::tool(&self.project)
    }

    async fn call_tool(&self, issue: &Issue, arguments: Value) -> Result<ToolReply, ToolRefusal> {
        let checked = agent_tool::check(arguments, &self.project, issue)?;
        self.verify_scope(&checked).await?;
        let reply = rest_tool::send(&self.api, &checked.call).await;
        // A search may be a POST, and only reads.
        let searches = checked.call.segments().ends_with(&["search", "jql"]);
        Ok(ToolReply { changed: reply.changed && !searches, ..reply })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_state_cannot_leave_its_quotes() {
        assert_eq!(quoted(r#"a" OR "b\"#), r#""a\" OR \"b\\""#);
    }
}
