//! Jira Cloud, over its REST API version 3. Lists are JQL searches; issues by id are bulk fetches.

mod agent_tool;
mod issue_fields;
mod jql;
mod rich_text;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use carrel_client::HttpClient;
use carrel_config::TrackerConfig;
use carrel_domain::Secret;
use hyper::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::api::{Api, ApiRequest, line};
use crate::error::{TrackerError, TrackerErrorKind};
use crate::issue::{Issue, IssueId};
use crate::issue_records::{IssueRecords, is_number, list, text, valid_ids};
use crate::pages::Cursor;
use crate::settings::Settings;
use crate::tool::{Tool, ToolRefusal, ToolReply};
use crate::{Tracker, rest_tool};

/// Issues per page of a search; Jira may return fewer.
const PAGE: usize = 250;

/// Issues per bulk fetch; Jira's maximum.
const BATCH: usize = 100;

/// The requested fields of an issue.
const FIELDS: &[&str] = &[
    "summary",
    "description",
    "status",
    "labels",
    "issuelinks",
    "assignee",
    "project",
    "created",
    "updated",
];

#[derive(Debug)]
pub(crate) struct Jira {
    api: Api,
    project: String,
    terminal: Vec<String>,
}

impl Jira {
    pub(crate) fn new(
        config: &TrackerConfig,
        connections: &HttpClient,
    ) -> Result<Self, TrackerError> {
        let settings = Settings(config);
        let (token, email) = (settings.secret("api_token")?, settings.text("email")?);
        let pair = Secret::new(STANDARD.encode(format!("{email}:{}", token.expose())));
        let shown = Secret::new(format!("Basic {}", pair.expose()));
        let address = ("base_url", settings.text("base_url")?);
        let api = Api::new(connections, address, "Jira", (AUTHORIZATION, &shown), &[])?;
        let api = api.redacting(&pair).redacting(token);
        let project = settings.text("project_key")?.to_ascii_uppercase();
        if !project.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(TrackerError::invalid_setting(
                "project_key",
                "is not a project key, such as ABC",
            ));
        }
        Ok(Self { api, project, terminal: settings.terminal() })
    }

    async fn use_tool(&self, issue: &Issue, arguments: Value) -> Result<ToolReply, ToolRefusal> {
        let checked = agent_tool::check(arguments, &self.project, issue)?;
        self.verify_scope(&checked).await?;
        Ok(rest_tool::send(&self.api, &checked.call).await)
    }

    fn read(&self, json: &Value) -> Option<Issue> {
        issue_fields::read(json, &self.api.address(), &self.terminal)
    }

    async fn batch(&self, ids: &[&str]) -> Result<IssueRecords, TrackerError> {
        let body = json!({ "issueIdsOrKeys": ids, "fields": FIELDS });
        let json = self.api.json(ApiRequest::post("/rest/api/3/issue/bulkfetch", body)).await?;
        // Invisible issues are not in this list; these are temporary failures.
        if let Some(error) = list(&json, "/issueErrors").first() {
            let why = text(error, "/errorMessage").unwrap_or_else(|| "no reason".to_owned());
            let message = format!("Jira did not return issue {}: {}", error["id"], line(&why));
            return Err(TrackerError::new(TrackerErrorKind::Response, self.api.redact(&message)));
        }
        if !json["issues"].is_array() {
            return Err(self.api.malformed("a list of issues"));
        }
        let mut records = IssueRecords::default();
        for issue in list(&json, "/issues") {
            match text(issue, "/fields/project/key") {
                Some(key) if key.eq_ignore_ascii_case(&self.project) => {
                    records.add(self.read(issue));
                }
                Some(_) => {}
                None => records.add(None),
            }
        }
        Ok(records)
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[async_trait::async_trait]
impl Tracker for Jira {
    async fn by_states(&self, states: &[String]) -> Result<Vec<Issue>, TrackerError> {
        let names: Vec<String> = states
            .iter()
            .map(|state| state.trim())
            .filter(|name| !name.is_empty())
            .map(quoted)
            .collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let project = quoted(&self.project);
        let jql = format!(
            "project = {project} AND status in ({}) ORDER BY created ASC",
            names.join(", ")
        );
        let mut records = IssueRecords::default();
        let mut cursor = Cursor::new("Jira");
        loop {
            let mut body = json!({ "jql": jql, "maxResults": PAGE, "fields": FIELDS });
            if let Some(token) = &cursor.at {
                body["nextPageToken"] = json!(token);
            }
            let json = self.api.json(ApiRequest::post("/rest/api/3/search/jql", body)).await?;
            if !json["issues"].is_array() {
                return Err(self.api.malformed("a list of issues"));
            }
            for issue in list(&json, "/issues") {
                records.add(self.read(issue));
            }
            let next = text(&json, "/nextPageToken");
            let more = json["isLast"].as_bool().map_or(next.is_some(), |last| !last);
            if !cursor.advance(&records, more, next, "nextPageToken")? {
                return Ok(records.lenient("Jira"));
            }
        }
    }

    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
        let mut records = IssueRecords::default();
        for batch in valid_ids(ids, is_number).chunks(BATCH) {
            records.append(self.batch(batch).await?);
        }
        records.strict("Jira", ids)
    }

    fn tools(&self) -> Vec<Tool> {
        vec![agent_tool::tool(&self.project)]
    }

    async fn call(&self, issue: &Issue, name: &str, arguments: Value) -> ToolReply {
        if name != agent_tool::NAME {
            return ToolReply::unknown(name, &self.tools());
        }
        self.use_tool(issue, arguments).await.unwrap_or_else(ToolReply::from)
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
