//! Linear.

mod agent_tool;
mod issue_fields;
mod queries;
mod schema;
mod scope;

use std::sync::atomic::{AtomicUsize, Ordering};

use carrel_client::HttpClient;
use carrel_config::TrackerConfig;
use carrel_domain::Secret;
use hyper::header::AUTHORIZATION;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::api::Api;
use crate::error::{TrackerError, TrackerErrorKind};
use crate::issue::{Issue, IssueId, normal};
use crate::issue_records::{IssueRecords, list, plausible, text};
use crate::pages::Cursor;
use crate::settings::Settings;
use crate::tool::{Tool, ToolReply};
use crate::{Tracker, graphql};
use issue_fields::DispatchRules;

/// How many ids are asked for at once.
const BATCH: usize = 50;

/// How many issues a page may have: the most that keeps a question below the 10,000 points that Linear
/// allows, with the labels and relations that each issue brings.
const LARGEST_PAGE: usize = 100;

/// Points are counted for what is asked for, not for what is there. So a page is asked for that has room
/// for what there was the last time, and for this many more.
const ROOM: usize = 20;

/// Linear.
#[derive(Debug)]
pub(crate) struct Linear {
    api: Api,
    project: String,
    assignee: Option<Assignee>,
    terminal: Vec<String>,
    /// How many issues the last list had.
    last: AtomicUsize,
    /// What Linear knows the project by, once that was asked.
    project_id: OnceCell<String>,
}

/// Whose issues are worked on.
#[derive(Debug)]
enum Assignee {
    ReferencedIds(String),
    /// Whoever the secret belongs to, once that is known.
    Me(OnceCell<String>),
}

impl Linear {
    pub(crate) fn new(
        config: &TrackerConfig,
        connections: &HttpClient,
    ) -> Result<Self, TrackerError> {
        let settings = Settings(config);
        let key: &Secret = settings.secret("api_key")?;
        let endpoint = ("endpoint", settings.text("endpoint")?);
        let api = Api::new(connections, endpoint, "Linear", (AUTHORIZATION, key), &[])?;
        let assignee = settings.find("assignee").map(|name| match normal(name).as_str() {
            "me" => Assignee::Me(OnceCell::new()),
            _ => Assignee::ReferencedIds(name.to_owned()),
        });
        let project = settings.text("project_slug")?.to_owned();
        let last = AtomicUsize::new(LARGEST_PAGE);
        let terminal = settings.terminal();
        Ok(Self { api, project, assignee, terminal, last, project_id: OnceCell::new() })
    }

    async fn ask(&self, question: &str, variables: Value) -> Result<Value, TrackerError> {
        graphql::ask_whole(&self.api, "", question, variables).await
    }

    /// Returns what decides whether an issue is worked on.
    async fn rules(&self) -> Result<DispatchRules<'_>, TrackerError> {
        let assignee = match &self.assignee {
            None => None,
            Some(Assignee::ReferencedIds(id)) => Some(id.as_str()),
            Some(Assignee::Me(known)) => {
                Some(known.get_or_try_init(|| self.viewer()).await?.as_str())
            }
        };
        Ok(DispatchRules { assignee, terminal: &self.terminal })
    }

    async fn viewer(&self) -> Result<String, TrackerError> {
        let told = self.ask(queries::VIEWER, json!({})).await?;
        let message = "Linear does not say whose the secret is; name the assignee by id";
        text(&told, "/viewer/id")
            .ok_or_else(|| TrackerError::new(TrackerErrorKind::Response, message))
    }

    /// Reads every page of what a filter lets through.
    async fn read(&self, filter: &Value, size: usize) -> Result<IssueRecords, TrackerError> {
        let rules = self.rules().await?;
        let mut records = IssueRecords::default();
        let mut cursor = Cursor::new("Linear");
        loop {
            let variables = json!({ "filter": filter, "first": size, "after": cursor.at });
            let mut told = self.ask(queries::ISSUES, variables).await?;
            let page = told.get_mut("issues").map(Value::take).unwrap_or_default();
            if !page["nodes"].is_array() {
                return Err(self.api.strange("a list of issues"));
            }
            for node in list(&page, "/nodes") {
                records.add(self.issue(node, &rules).await?);
            }
            let more = page["pageInfo"]["hasNextPage"] == Value::Bool(true);
            if !cursor.advance(&records, more, text(&page, "/pageInfo/endCursor"), "endCursor")? {
                return Ok(records);
            }
        }
    }

    /// Reads an issue, and asks for what of it did not fit on the page.
    async fn issue(
        &self,
        node: &Value,
        rules: &DispatchRules<'_>,
    ) -> Result<Option<Issue>, TrackerError> {
        if !issue_fields::is_cut(node) {
            return Ok(issue_fields::read(node, rules));
        }
        let mut node = node.clone();
        let rest = self.ask(queries::REST, json!({ "id": node["id"] })).await?;
        for part in ["labels", "inverseRelations"] {
            node[part] = rest["issue"][part].clone();
        }
        Ok(issue_fields::read(&node, rules))
    }
}

#[async_trait::async_trait]
impl Tracker for Linear {
    async fn by_states(&self, states: &[String]) -> Result<Vec<Issue>, TrackerError> {
        let named = |state: &String| json!({ "name": { "eqIgnoreCase": state.trim() } });
        let states: Vec<Value> =
            states.iter().filter(|state| !state.trim().is_empty()).map(named).collect();
        if states.is_empty() {
            return Ok(Vec::new());
        }
        let filter = json!({
            "project": { "slugId": { "eq": self.project } },
            "state": { "or": states },
        });
        let size = (self.last.load(Ordering::Relaxed) + ROOM).min(LARGEST_PAGE);
        let records = self.read(&filter, size).await?;
        self.last.store(records.len(), Ordering::Relaxed);
        Ok(records.forgiving("Linear"))
    }

    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
        let mut records = IssueRecords::default();
        for batch in plausible(ids, issue_fields::is_id).chunks(BATCH) {
            let filter = json!({
                "project": { "slugId": { "eq": self.project } },
                "id": { "in": batch },
            });
            records.append(self.read(&filter, batch.len()).await?);
        }
        records.exacting("Linear", ids)
    }

    fn tools(&self) -> Vec<Tool> {
        vec![agent_tool::tool()]
    }

    async fn call(&self, issue: &Issue, name: &str, arguments: Value) -> ToolReply {
        if name != agent_tool::NAME {
            return ToolReply::unknown(name, &self.tools());
        }
        self.use_tool(issue, arguments).await.unwrap_or_else(ToolReply::from)
    }
}
