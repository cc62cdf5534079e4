//! Linear, over its GraphQL API.
//!
//! Linear limits requests and *complexity*, which is counted for the page size that is requested rather
//! than for the issues that exist. So the page of a poll is sized by the last result plus [`PAGE_MARGIN`].
//! Labels and relations beyond the page's own limits are requested per issue. A rate limit arrives as status 400 with
//! the error code `RATELIMITED`, or as 429 (`rate_limit.rs`).

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
use crate::issue_records::{IssueRecords, list, text, valid_ids};
use crate::pages::Cursor;
use crate::settings::Settings;
use crate::tool::{Tool, ToolReply};
use crate::{Tracker, graphql};
use issue_fields::DispatchRules;

/// Ids per request, which keeps the complexity of a read below the limit too.
const BATCH: usize = 50;

/// Issues per page: the most that keeps a query below Linear's limit of 10,000 complexity points, with
/// the labels and relations of each issue.
const LARGEST_PAGE: usize = 100;

/// Issues that a page has room for beyond the last result.
const PAGE_MARGIN: usize = 20;

#[derive(Debug)]
pub(crate) struct Linear {
    api: Api,
    project: String,
    assignee: Option<Assignee>,
    terminal: Vec<String>,
    last_count: AtomicUsize,
    project_id: OnceCell<String>,
}

#[derive(Debug)]
enum Assignee {
    ReferencedIds(String),
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
        let last_count = AtomicUsize::new(LARGEST_PAGE);
        let terminal = settings.terminal();
        Ok(Self { api, project, assignee, terminal, last_count, project_id: OnceCell::new() })
    }

    async fn query(&self, query: &str, variables: Value) -> Result<Value, TrackerError> {
        graphql::query(&self.api, "", query, variables).await
    }

    /// Returns the rules for `dispatchable`.
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
        let json = self.query(queries::VIEWER, json!({})).await?;
        let message =
            "Linear does not return the owner of the secret; configure the assignee by id";
        text(&json, "/viewer/id")
            .ok_or_else(|| TrackerError::new(TrackerErrorKind::Response, message))
    }

    /// Reads all pages of the issues that match a filter, `size` issues per page.
    async fn read(&self, filter: &Value, size: usize) -> Result<IssueRecords, TrackerError> {
        let rules = self.rules().await?;
        let mut records = IssueRecords::default();
        let mut cursor = Cursor::new("Linear");
        loop {
            let variables = json!({ "filter": filter, "first": size, "after": cursor.at });
            let mut json = self.query(queries::ISSUES, variables).await?;
            let page = json.get_mut("issues").map(Value::take).unwrap_or_default();
            if !page["nodes"].is_array() {
                return Err(self.api.malformed("a list of issues"));
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

    /// Reads an issue, and requests the labels and relations that did not fit on the page.
    async fn issue(
        &self,
        node: &Value,
        rules: &DispatchRules<'_>,
    ) -> Result<Option<Issue>, TrackerError> {
        if !issue_fields::is_truncated(node) {
            return Ok(issue_fields::read(node, rules));
        }
        let mut node = node.clone();
        let rest = self.query(queries::REMAINING, json!({ "id": node["id"] })).await?;
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
        let size = (self.last_count.load(Ordering::Relaxed) + PAGE_MARGIN).min(LARGEST_PAGE);
        let records = self.read(&filter, size).await?;
        self.last_count.store(records.len(), Ordering::Relaxed);
        Ok(records.lenient("Linear"))
    }

    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
        let mut records = IssueRecords::default();
        for batch in valid_ids(ids, issue_fields::is_id).chunks(BATCH) {
            let filter = json!({
                "project": { "slugId": { "eq": self.project } },
                "id": { "in": batch },
            });
            records.append(self.read(&filter, batch.len()).await?);
        }
        records.strict("Linear", ids)
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
