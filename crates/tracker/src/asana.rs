//! Asana, over its REST API. The state of a task is the section that it is in.
//!
//! Tasks by id are requested in batches; each action of a batch has a status of its own, including 429.

mod agent_tool;

use carrel_client::percent_encode;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::api::{Api, ApiRequest, ApiResponse};
use crate::error::{Result, TrackerError};
use crate::issue::{Issue, IssueId, normal};
use crate::issue_records::{IssueRecords, is_number, labels, link, list, text, time, word};
use crate::pages::Cursor;
use crate::provider::{IssueProvider, Settings};
use crate::rest_tool;
use crate::tool::{Tool, ToolRefusal, ToolReply};

/// Tasks per page; Asana's maximum.
const PAGE: usize = 100;

/// The requested fields of a task.
const FIELDS: &str = "name,notes,completed,resource_subtype,assignee.gid,memberships.project.gid,\
    memberships.section.gid,memberships.section.name,tags.name,permalink_url,created_at,modified_at";

#[derive(Debug)]
pub(crate) struct Asana {
    api: Api,
    project: String,
    active: Vec<String>,
}

impl Asana {
    fn take(&self, records: &mut IssueRecords, task: &Value) {
        let elsewhere = task["memberships"].is_array() && self.membership(task).is_none();
        if !elsewhere {
            records.add(self.read(task));
        }
    }

    /// Returns the membership of a task in the project.
    fn membership<'a>(&self, task: &'a Value) -> Option<&'a Value> {
        let is_own = |json: &&Value| json["project"]["gid"] == self.project.as_str();
        list(task, "/memberships").iter().find(is_own)
    }

    /// Reads a task; `None` if a required member is missing.
    fn read(&self, task: &Value) -> Option<Issue> {
        let gid = word(task, "/gid")?;
        let section = self.membership(task)?;
        let names = list(task, "/tags").iter().filter_map(|tag| tag["name"].as_str());
        let is_section = task["resource_subtype"] == "section";
        Some(Issue {
            native_ref: Some(json!({
                "task_gid": gid,
                "project_gid": self.project,
                "section_gid": word(section, "/section/gid"),
            })),
            identifier: format!("ASANA-{gid}"),
            id: IssueId(gid),
            title: text(task, "/name")?,
            description: text(task, "/notes"),
            state: text(section, "/section/name")?,
            url: link(task, "/permalink_url"),
            assignee_id: word(task, "/assignee/gid"),
            labels: labels(names),
            dispatchable: task["completed"] == Value::Bool(false) && !is_section,
            created_at: time(task, "/created_at"),
            updated_at: time(task, "/modified_at"),
            ..Issue::default()
        })
    }

    fn refused(&self, status: u64, json: &Value) -> TrackerError {
        let pair = |(name, value): (&String, &Value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Some((name, HeaderValue::from_str(&value).ok()?))
        };
        let headers: HeaderMap =
            json["headers"].as_object().into_iter().flatten().filter_map(pair).collect();
        let (status, body) = (u16::try_from(status).unwrap_or(500), json["body"].to_string());
        let response = ApiResponse { status, headers, body: body.into() };
        self.api.refusal(&response, "an action of a batch")
    }

    /// Returns the query for tasks. Completed ones are not dispatchable, so a query for active states
    /// leaves them out.
    fn query(&self, states: &[String]) -> String {
        let only_active = states.iter().all(|state| self.active.contains(state));
        let since = if only_active { "&completed_since=now" } else { "" };
        format!("limit={PAGE}&opt_fields={FIELDS}{since}")
    }
}

#[async_trait::async_trait]
impl IssueProvider for Asana {
    const NAME: &'static str = "Asana";

    /// Actions per batch; Asana's maximum.
    const BATCH: usize = 10;

    fn new(settings: Settings<'_>) -> Result<Self> {
        let token = settings.secret("api_key")?;
        let api = Api::with_token(settings, "endpoint", Self::NAME, token)?;
        let project = settings.text("project_gid")?.to_owned();
        if !is_number(&project) {
            let rule = "is no gid, which is a number";
            return Err(TrackerError::invalid_setting("project_gid", rule));
        }
        let active = settings.config.active_states.iter().map(|state| normal(state)).collect();
        Ok(Self { api, project, active })
    }

    async fn list(&self, states: &[String]) -> Result<IssueRecords> {
        let states = states.iter().map(|state| normal(state));
        let states: Vec<String> = states.filter(|state| !state.is_empty()).collect();
        let mut records = IssueRecords::default();
        if states.is_empty() {
            return Ok(records);
        }
        let first = format!("/projects/{}/tasks?{}", self.project, self.query(&states));
        let mut cursor = Cursor::new(Self::NAME);
        loop {
            let offset = cursor.at.as_ref().map(|at| format!("&offset={}", percent_encode(at)));
            let path = format!("{first}{}", offset.unwrap_or_default());
            let json = self.api.json(ApiRequest::get(path)).await?;
            if !json["data"].is_array() {
                return Err(self.api.malformed("a list of tasks"));
            }
            for task in list(&json, "/data") {
                let state = self.membership(task).and_then(|own| text(own, "/section/name"));
                if state.is_none_or(|state| states.contains(&normal(&state))) {
                    self.take(&mut records, task);
                }
            }
            let more = !json["next_page"].is_null();
            if !cursor.advance(&records, more, text(&json, "/next_page/offset"), "offset")? {
                return Ok(records);
            }
        }
    }

    async fn batch(&self, gids: &[&str]) -> Result<IssueRecords> {
        let options = json!({ "fields": FIELDS.split(',').collect::<Vec<_>>() });
        let action = |gid: &&str| json!({ "method": "get", "relative_path": format!("/tasks/{gid}"), "options": options });
        let actions: Vec<Value> = gids.iter().map(action).collect();
        let body = json!({ "data": { "actions": actions } });
        let json = self.api.json(ApiRequest::post("/batch", body)).await?;
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

    fn tool(&self) -> Tool {
        agent_tool::tool(&self.project)
    }

    async fn call_tool(&self, issue: &Issue, arguments: Value) -> Result<ToolReply, ToolRefusal> {
        let checked = agent_tool::check(arguments, &self.project, issue)?;
        self.verify_scope(&checked).await?;
        Ok(rest_tool::send(&self.api, &checked.call).await)
    }
}
