//! Asana, over its REST API. The state of a task is the section that it is in.
//!
//! Tasks by id are requested in batches; each action of a batch has a status of its own, including 429.

mod agent_tool;
mod issue_fields;

use carrel_client::{HttpClient, percent_encode};
use carrel_config::TrackerConfig;
use carrel_domain::Secret;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::api::{Api, ApiRequest, ApiResponse};
use crate::error::TrackerError;
use crate::issue::{Issue, IssueId, normal};
use crate::issue_records::{IssueRecords, is_number, list, text, valid_ids};
use crate::pages::Cursor;
use crate::settings::Settings;
use crate::tool::{Tool, ToolRefusal, ToolReply};
use crate::{Tracker, rest_tool};

/// Tasks per page; Asana's maximum.
const PAGE: usize = 100;

/// Actions per batch; Asana's maximum.
const BATCH: usize = 10;

/// The requested fields of a task.
const FIELDS: &[&str] = &[
    "name",
    "notes",
    "completed",
    "resource_subtype",
    "assignee.gid",
    "memberships.project.gid",
    "memberships.section.gid",
    "memberships.section.name",
    "tags.name",
    "permalink_url",
    "created_at",
    "modified_at",
];

#[derive(Debug)]
pub(crate) struct Asana {
    api: Api,
    project: String,
    active: Vec<String>,
}

impl Asana {
    pub(crate) fn new(
        config: &TrackerConfig,
        connections: &HttpClient,
    ) -> Result<Self, TrackerError> {
        let settings = Settings(config);
        let token = settings.secret("api_key")?;
        let shown = Secret::new(format!("Bearer {}", token.expose()));
        let address = ("endpoint", settings.text("endpoint")?);
        let api =
            Api::new(connections, address, "Asana", (AUTHORIZATION, &shown), &[])?.redacting(token);
        let project = settings.text("project_gid")?.to_owned();
        if !is_number(&project) {
            return Err(TrackerError::invalid_setting(
                "project_gid",
                "is no gid, which is a number",
            ));
        }
        let active = config.active_states.iter().map(|state| normal(state)).collect();
        Ok(Self { api, project, active })
    }

    async fn batch(&self, gids: &[&str]) -> Result<IssueRecords, TrackerError> {
        let action = |gid: &&str| json!({ "method": "get", "relative_path": format!("/tasks/{gid}"), "options": { "fields": FIELDS } });
        let actions: Vec<Value> = gids.iter().map(action).collect();
        let json = self
            .api
            .json(ApiRequest::post("/batch", json!({ "data": { "actions": actions } })))
            .await?;
        let responses = list(&json, "/data");
        if responses.len() != gids.len() {
            return Err(self.api.malformed("an answer to each action"));
        }
        let mut records = IssueRecords::default();
        for response in responses {
            match response["status_code"].as_u64() {
                Some(200) => self.take(&mut records, &response["body"]["data"]),
                // Deleted, or no longer visible to this token.
                Some(403 | 404) => {}
                Some(status) => return Err(self.refused(status, response)),
                None => return Err(self.api.malformed("the status of an action")),
            }
        }
        Ok(records)
    }

    async fn use_tool(&self, issue: &Issue, arguments: Value) -> Result<ToolReply, ToolRefusal> {
        let checked = agent_tool::check(arguments, &self.project, issue)?;
        self.verify_scope(&checked).await?;
        Ok(rest_tool::send(&self.api, &checked.call).await)
    }

    fn take(&self, records: &mut IssueRecords, task: &Value) {
        if !issue_fields::is_elsewhere(task, &self.project) {
            records.add(issue_fields::read(task, &self.project));
        }
    }

    fn refused(&self, status: u64, json: &Value) -> TrackerError {
        let pair = |(name, value): (&String, &Value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Some((name, HeaderValue::from_str(&value).ok()?))
        };
        let headers: HeaderMap =
            json["headers"].as_object().into_iter().flatten().filter_map(pair).collect();
        let response = ApiResponse {
            status: u16::try_from(status).unwrap_or(500),
            headers,
            body: json["body"].to_string().into(),
        };
        self.api.refusal(&response, "an action of a batch")
    }

    /// Returns the query for tasks. Completed ones are not dispatchable, so a query for active states
    /// leaves them out.
    fn query(&self, states: &[String]) -> String {
        let only_active = states.iter().all(|state| self.active.contains(state));
        let since = if only_active { "&completed_since=now" } else { "" };
        format!("limit={PAGE}&opt_fields={}{since}", FIELDS.join(","))
    }
}

#[async_trait::async_trait]
impl Tracker for Asana {
    async fn by_states(&self, states: &[String]) -> Result<Vec<Issue>, TrackerError> {
        let states: Vec<String> =
            states.iter().map(|state| normal(state)).filter(|state| !state.is_empty()).collect();
        if states.is_empty() {
            return Ok(Vec::new());
        }
        let first = format!("/projects/{}/tasks?{}", self.project, self.query(&states));
        let mut records = IssueRecords::default();
        let mut cursor = Cursor::new("Asana");
        loop {
            let offset = cursor.at.as_ref().map(|at| format!("&offset={}", percent_encode(at)));
            let path = format!("{first}{}", offset.unwrap_or_default());
            let json = self.api.json(ApiRequest::get(path)).await?;
            if !json["data"].is_array() {
                return Err(self.api.malformed("a list of tasks"));
            }
            for task in list(&json, "/data") {
                let state = issue_fields::state(task, &self.project);
                if state.is_none_or(|state| states.contains(&normal(&state))) {
                    self.take(&mut records, task);
                }
            }
            let more = !json["next_page"].is_null();
            if !cursor.advance(&records, more, text(&json, "/next_page/offset"), "offset")? {
                return Ok(records.lenient("Asana"));
            }
        }
    }

    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
        let mut records = IssueRecords::default();
        for batch in valid_ids(ids, is_number).chunks(BATCH) {
            records.append(self.batch(batch).await?);
        }
        records.strict("Asana", ids)
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
