//! Jira Cloud.

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
use crate::issue_records::{IssueRecords, is_number, list, plausible, text};
use crate::pages::Cursor;
use crate::settings::Settings;
use crate::tool::{Tool, ToolRefusal, ToolReply};
use crate::{Tracker, rest_tool};

/// How many issues are asked for on a page. Jira gives as many of them as it likes.
const PAGE: usize = 250;

/// How many issues Jira gives by their ids at once.
const BATCH: usize = 100;

/// What is asked of each issue.
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

/// Issues of a project on Jira Cloud.
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
        let api = api.hiding(&pair).hiding(token);
        let project = settings.text("project_key")?.to_ascii_uppercase();
        if !project.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(TrackerError::setting(
                "project_key",
                "is no key of a project, such as ABC",
            ));
        }
        Ok(Self { api, project, terminal: settings.terminal() })
    }

    async fn use_tool(&self, issue: &Issue, arguments: Value) -> Result<ToolReply, ToolRefusal> {
        let judged = agent_tool::judge(arguments, &self.project, issue)?;
        self.look_up(&judged).await?;
        Ok(rest_tool::send(&self.api, &judged.call).await)
    }

    fn read(&self, told: &Value) -> Option<Issue> {
        issue_fields::read(told, &self.api.address(), &self.terminal)
    }

    async fn batch(&self, ids: &[&str]) -> Result<IssueRecords, TrackerError> {
        let body = json!({ "issueIdsOrKeys": ids, "fields": FIELDS });
        let told = self.api.json(ApiRequest::post("/rest/api/3/issue/bulkfetch", body)).await?;
        // Issues that cannot be seen are not listed here: these could be had another time.
        if let Some(error) = list(&told, "/issueErrors").first() {
            let why = text(error, "/errorMessage").unwrap_or_else(|| "no reason".to_owned());
            let message = format!("Jira did not give issue {}: {}", error["id"], line(&why));
            return Err(TrackerError::new(TrackerErrorKind::Response, self.api.mask(&message)));
        }
        if !told["issues"].is_array() {
            return Err(self.api.strange("a list of issues"));
        }
        let mut records = IssueRecords::default();
        for issue in list(&told, "/issues") {
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

/// Writes a text into JQL.
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
            let told = self.api.json(ApiRequest::post("/rest/api/3/search/jql", body)).await?;
            if !told["issues"].is_array() {
                return Err(self.api.strange("a list of issues"));
            }
            for issue in list(&told, "/issues") {
                records.add(self.read(issue));
            }
            let next = text(&told, "/nextPageToken");
            let more = told["isLast"].as_bool().map_or(next.is_some(), |last| !last);
            if !cursor.advance(&records, more, next, "nextPageToken")? {
                return Ok(records.forgiving("Jira"));
            }
        }
    }

    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
        let mut records = IssueRecords::default();
        for batch in plausible(ids, is_number).chunks(BATCH) {
            records.append(self.batch(batch).await?);
        }
        records.exacting("Jira", ids)
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
