//! GitLab, over its REST API. Lists are requested conditionally, like those of GitHub.

mod agent_tool;

use carrel_client::{HttpClient, percent_encode};
use carrel_config::TrackerConfig;
use hyper::header::HeaderName;
use serde_json::{Value, json};

use crate::api::{Api, ApiRequest, ApiResponse};
use crate::error::TrackerError;
use crate::issue::{Issue, IssueId, normal};
use crate::issue_records::{
    IssueRecords, is_number, labels, link, list, text, time, valid_ids, word,
};
use crate::pages::{IssuePage, PageCache, next_page};
use crate::settings::Settings;
use crate::tool::{Tool, ToolReply};
use crate::{Tracker, rest_tool};

/// Issues per page; GitLab's maximum.
const BATCH: usize = 100;

#[derive(Debug)]
pub(crate) struct Gitlab {
    api: Api,
    /// The path, such as `group/project`.
    project: String,
    pages: PageCache,
}

impl Gitlab {
    pub(crate) fn new(
        config: &TrackerConfig,
        connections: &HttpClient,
    ) -> Result<Self, TrackerError> {
        let settings = Settings(config);
        let secret = (HeaderName::from_static("private-token"), settings.secret("api_key")?);
        let address = ("api_url", settings.text("api_url")?);
        let api = Api::new(connections, address, "GitLab", secret, &[])?;
        let project = settings.text("project_path")?.trim_matches('/').to_owned();
        let fits = |name: &str| !name.is_empty() && name != "." && name != "..";
        if !project.split('/').all(fits) {
            return Err(TrackerError::invalid_setting(
                "project_path",
                "is not of the form group/project",
            ));
        }
        Ok(Self { api, project, pages: PageCache::default() })
    }

    fn list_path(&self, query: &str) -> String {
        format!("/projects/{}/issues?{query}", percent_encode(&self.project))
    }

    fn records(&self, response: &ApiResponse) -> Result<IssueRecords, TrackerError> {
        let json = response.json().filter(Value::is_array);
        let json = json.ok_or_else(|| self.api.malformed("a list of issues"))?;
        let mut records = IssueRecords::default();
        for entry in list(&json, "") {
            records.add(read(entry, &self.project));
        }
        Ok(records)
    }

    fn page(&self, response: &ApiResponse, query: &str) -> Result<IssuePage, TrackerError> {
        let number = response.header("x-next-page").filter(|page| is_number(page));
        let numbered = number.map(|page| format!("{query}&page={page}"));
        let next = numbered.or_else(|| response.header("link").and_then(next_page));
        Ok(IssuePage {
            records: self.records(response)?,
            next: next.map(|next| self.list_path(&next)),
        })
    }
}

#[async_trait::async_trait]
impl Tracker for Gitlab {
    async fn by_states(&self, states: &[String]) -> Result<Vec<Issue>, TrackerError> {
        let asked = |name: &str| states.iter().any(|state| normal(state) == name);
        let state = match (asked("opened"), asked("closed")) {
            (false, false) => return Ok(Vec::new()),
            (true, false) => "opened",
            (false, true) => "closed",
            (true, true) => "all",
        };
        let query = format!("state={state}&order_by=created_at&sort=asc&per_page={BATCH}");
        let read = |response: &ApiResponse| self.page(response, &query);
        let records = self.pages.read_all(&self.api, self.list_path(&query), read).await?;
        Ok(records.lenient("GitLab"))
    }

    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
        let mut records = IssueRecords::default();
        for batch in valid_ids(ids, is_number).chunks(BATCH) {
            let asked = batch.join("&iids%5B%5D=");
            let path = self.list_path(&format!("per_page={BATCH}&iids%5B%5D={asked}"));
            records.append(self.records(&self.api.request(ApiRequest::get(path)).await?)?);
        }
        records.strict("GitLab", ids)
    }

    fn tools(&self) -> Vec<Tool> {
        vec![agent_tool::tool(&self.project)]
    }

    async fn call(&self, issue: &Issue, name: &str, arguments: Value) -> ToolReply {
        if name != agent_tool::NAME {
            return ToolReply::unknown(name, &self.tools());
        }
        match agent_tool::check(arguments, &self.project, issue) {
            Ok(call) => rest_tool::send(&self.api, &call).await,
            Err(refusal) => refusal.into(),
        }
    }
}

fn read(entry: &Value, project: &str) -> Option<Issue> {
    let iid = word(entry, "/iid").filter(|iid| is_number(iid))?;
    let names = list(entry, "/labels").iter().filter_map(Value::as_str);
    Some(Issue {
        native_ref: Some(json!({
            "id": entry["id"],
            "iid": entry["iid"],
            "project_id": entry["project_id"],
            "path": project,
            "references": entry["references"],
        })),
        identifier: format!("GL-{iid}"),
        id: IssueId(iid),
        title: text(entry, "/title")?,
        description: text(entry, "/description").map(|text| text.trim().to_owned()),
        priority: None,
        state: text(entry, "/state")?,
        branch_name: None,
        url: link(entry, "/web_url"),
        assignee_id: word(entry, "/assignees/0/id").or_else(|| word(entry, "/assignee/id")),
        labels: labels(names),
        blocked_by: Vec::new(),
        dispatchable: true,
        created_at: time(entry, "/created_at"),
        updated_at: time(entry, "/updated_at"),
    })
}
