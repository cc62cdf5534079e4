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

use hyper::header::AUTHORIZATION;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::api::Api;
use crate::error::{Result, TrackerError, TrackerErrorKind};
use crate::graphql;
use crate::issue::{Issue, normal};
use crate::issue_records::{IssueRecords, list, text};
use crate::pages::Cursor;
use crate::provider::{IssueProvider, Settings};
use crate::tool::{Tool, ToolRefusal, ToolReply};
use issue_fields::DispatchRules;

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
    Id(String),
    Me(OnceCell<String>),
}

impl Linear {
    async fn query(&self, query: &str, variables: Value) -> Result<Value> {
        graphql::query(&self.api, query, variables).await
    }

    /// Returns the rules for `dispatchable`.
    async fn rules(&self) -> Result<DispatchRules<'_>> {
        let assignee = match &self.assignee {
            None => None,
            Some(Assignee::Id(id)) => Some(id),
            Some(Assignee::Me(known)) => Some(known.get_or_try_init(|| self.viewer()).await?),
        };
        let assignee = assignee.map(String::as_str);
        Ok(DispatchRules { assignee, terminal: &self.terminal })
    }

    async fn viewer(&self) -> Result<String> {
        let json = self.query(queries::VIEWER, json!({})).await?;
        let message =
            "Linear does not return the owner of the secret; configure the assignee by id";
        text(&json, "/viewer/id")
            .ok_or_else(|| TrackerError::new(TrackerErrorKind::Response, message))
    }

    /// Reads all pages of the issues that match a filter, `size` issues per page.
    async fn read(&self, filter: &Value, size: usize) -> Result<IssueRecords> {
        let rules = self.rules().await?;
        let mut records = IssueRecords::default();
        let mut cursor = Cursor::new(Self::NAME);
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
    async fn issue(&self, node: &Value, rules: &DispatchRules<'_>) -> Result<Option<Issue>> {
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
impl IssueProvider for Linear {
    const NAME: &'static str = "Linear";

    /// Keeps the complexity of a read below the limit too.
    const BATCH: usize = 50;

    fn new(settings: Settings<'_>) -> Result<Self> {
        let secret = (AUTHORIZATION, settings.secret("api_key")?);
        let api = Api::new(settings, "endpoint", Self::NAME, secret)?;
        let assignee = settings.find("assignee").map(|name| match normal(name).as_str() {
            "me" => Assignee::Me(OnceCell::new()),
            _ => Assignee::Id(name.to_owned()),
        });
        let project = settings.text("project_slug")?.to_owned();
        let last_count = AtomicUsize::new(LARGEST_PAGE);
        let terminal = settings.terminal();
        Ok(Self { api, project, assignee, terminal, last_count, project_id: OnceCell::new() })
    }

    fn is_id(id: &str) -> bool {
        issue_fields::is_id(id)
    }

    async fn list(&self, states: &[String]) -> Result<IssueRecords> {
        let named = |state: &String| json!({ "name": { "eqIgnoreCase": state.trim() } });
        let states: Vec<Value> =
            states.iter().filter(|state| !state.trim().is_empty()).map(named).collect();
        if states.is_empty() {
            return Ok(IssueRecords::default());
        }
        let project = json!({ "slugId": { "eq": self.project } });
        let filter = json!({ "project": project, "state": { "or": states } });
        let size = (self.last_count.load(Ordering::Relaxed) + PAGE_MARGIN).min(LARGEST_PAGE);
        let records = self.read(&filter, size).await?;
        self.last_count.store(records.issues.len(), Ordering::Relaxed);
        Ok(records)
    }

    async fn batch(&self, ids: &[&str]) -> Result<IssueRecords> {
        let project = json!({ "slugId": { "eq": self.project } });
        self.read(&json!({ "project": project, "id": { "in": ids } }), ids.len()).await
    }

    fn tool(&self) -> Tool {
        agent_tool::tool()
    }

    async fn call_tool(&self, issue: &Issue, arguments: Value) -> Result<ToolReply, ToolRefusal> {
        self.use_tool(issue, arguments).await
    }
}
