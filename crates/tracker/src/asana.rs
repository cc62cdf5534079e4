//! Asana.

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
use crate::issue_records::{IssueRecords, is_number, list, plausible, text};
use crate::pages::Cursor;
use crate::settings::Settings;
use crate::tool::{Tool, ToolRefusal, ToolReply};
use crate::{Tracker, rest_tool};

/// How many tasks are asked for on a page. Asana gives no more.
const PAGE: usize = 100;

/// How many actions Asana takes at once.
const BATCH: usize = 10;

/// What is asked of each task.
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

/// Tasks of a project in Asana. Their states are the sections that they stand in.
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
            Api::new(connections, address, "Asana", (AUTHORIZATION, &shown), &[])?.hiding(token);
        let project = settings.text("project_gid")?.to_owned();
        if !is_number(&project) {
            return Err(TrackerError::setting("project_gid", "is no gid, which is a number"));
        }
        let active = config.active_states.iter().map(|state| normal(state)).collect();
        Ok(Self { api, project, active })
    }

    /// Asks for tasks by their gids, all at once.
    async fn batch(&self, gids: &[&str]) -> Result<IssueRecords, TrackerError> {
        let action = |gid: &&str| json!({ "method": "get", "relative_path": format!("/tasks/{gid}"), "options": { "fields": FIELDS } });
        let actions: Vec<Value> = gids.iter().map(action).collect();
        let told = self
            .api
            .json(ApiRequest::post("/batch", json!({ "data": { "actions": actions } })))
            .await?;
        let answers = list(&told, "/data");
        if answers.len() != gids.len() {
            return Err(self.api.strange("an answer to each action"));
        }
        let mut records = IssueRecords::default();
        for answer in answers {
            match answer["status_code"].as_u64() {
                Some(200) => self.take(&mut records, &answer["body"]["data"]),
                // Gone, or not to be seen with this secret any more.
                Some(403 | 404) => {}
                Some(status) => return Err(self.refused(status, answer)),
                None => return Err(self.api.strange("the status of an action")),
            }
        }
        Ok(records)
    }

    async fn use_tool(&self, issue: &Issue, arguments: Value) -> Result<ToolReply, ToolRefusal> {
        let judged = agent_tool::judge(arguments, &self.project, issue)?;
        self.look_up(&judged).await?;
        Ok(rest_tool::send(&self.api, &judged.call).await)
    }

    fn take(&self, records: &mut IssueRecords, task: &Value) {
        if !issue_fields::is_elsewhere(task, &self.project) {
            records.add(issue_fields::read(task, &self.project));
        }
    }

    fn refused(&self, status: u64, told: &Value) -> TrackerError {
        let pair = |(name, value): (&String, &Value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Some((name, HeaderValue::from_str(&value).ok()?))
        };
        let headers: HeaderMap =
            told["headers"].as_object().into_iter().flatten().filter_map(pair).collect();
        let answer = ApiResponse {
            status: u16::try_from(status).unwrap_or(500),
            headers,
            body: told["body"].to_string().into(),
        };
        self.api.refusal(&answer, "an action of a batch")
    }

    /// Returns the query for tasks. Finished ones are never begun with, so where only that is wanted they
    /// are not asked for.
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
            let told = self.api.json(ApiRequest::get(path)).await?;
            if !told["data"].is_array() {
                return Err(self.api.strange("a list of tasks"));
            }
            for task in list(&told, "/data") {
                let state = issue_fields::state(task, &self.project);
                if state.is_none_or(|state| states.contains(&normal(&state))) {
                    self.take(&mut records, task);
                }
            }
            let more = !told["next_page"].is_null();
            if !cursor.advance(&records, more, text(&told, "/next_page/offset"), "offset")? {
                return Ok(records.forgiving("Asana"));
            }
        }
    }

    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
        let mut records = IssueRecords::default();
        for batch in plausible(ids, is_number).chunks(BATCH) {
            records.append(self.batch(batch).await?);
        }
        records.exacting("Asana", ids)
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
