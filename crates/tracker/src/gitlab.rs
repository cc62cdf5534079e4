//! GitLab, over its REST API. Lists are requested conditionally, like those of GitHub.

mod agent_tool;

use carrel_client::percent_encode;
use hyper::header::HeaderName;
use serde_json::{Value, json};

use crate::api::{Api, ApiRequest, ApiResponse};
use crate::error::{Result, TrackerError};
use crate::issue::{Issue, IssueId};
use crate::issue_records::{IssueRecords, is_number, labels, link, list, text, time, word};
use crate::pages::{IssuePage, PageCache, next_page};
use crate::provider::{IssueProvider, Settings, queried_state};
use crate::rest_tool;
use crate::tool::{Tool, ToolRefusal, ToolReply};

#[derive(Debug)]
pub(crate) struct Gitlab {
    api: Api,
    /// The path, such as `group/project`.
    project: String,
    pages: PageCache,
}

impl Gitlab {
    fn list_path(&self, query: &str) -> String {
        format!("/projects/{}/issues?{query}", percent_encode(&self.project))
    }

    fn records(&self, response: &ApiResponse) -> Result<IssueRecords> {
        let json = response.json().filter(Value::is_array);
        let json = json.ok_or_else(|| self.api.malformed("a list of issues"))?;
        Ok(IssueRecords::read(list(&json, ""), |entry| read(entry, &self.project)))
    }

    fn page(&self, response: &ApiResponse, query: &str) -> Result<IssuePage> {
        let number = response.header("x-next-page").filter(|page| is_number(page));
        let numbered = number.map(|page| format!("{query}&page={page}"));
        let next = numbered.or_else(|| response.header("link").and_then(next_page));
        let next = next.map(|next| self.list_path(&next));
        Ok(IssuePage { records: self.records(response)?, next })
    }
}

#[async_trait::async_trait]
impl IssueProvider for Gitlab {
    const NAME: &'static str = "GitLab";

    /// Issues per page; GitLab's maximum.
    const BATCH: usize = 100;

    fn new(settings: Settings<'_>) -> Result<Self> {
        let secret = (HeaderName::from_static("private-token"), settings.secret("api_key")?);
        let api = Api::new(settings, "api_url", Self::NAME, secret)?;
        let project = settings.text("project_path")?.trim_matches('/').to_owned();
        let fits = |name: &str| !name.is_empty() && name != "." && name != "..";
        if !project.split('/').all(fits) {
            let rule = "is not of the form group/project";
            return Err(TrackerError::invalid_setting("project_path", rule));
        }
        Ok(Self { api, project, pages: PageCache::default() })
    }

    async fn list(&self, states: &[String]) -> Result<IssueRecords> {
        let Some(state) = queried_state(states, "opened") else {
            return Ok(IssueRecords::default());
        };
        let batch = Self::BATCH;
        let query = format!("state={state}&order_by=created_at&sort=asc&per_page={batch}");
        let read = |response: &ApiResponse| self.page(response, &query);
        self.pages.read_all(&self.api, self.list_path(&query), read).await
    }

    async fn batch(&self, iids: &[&str]) -> Result<IssueRecords> {
        let (most, asked) = (Self::BATCH, iids.join("&iids%5B%5D="));
        let path = self.list_path(&format!("per_page={most}&iids%5B%5D={asked}"));
        self.records(&self.api.request(ApiRequest::get(path)).await?)
    }

    fn tool(&self) -> Tool {
        agent_tool::tool(&self.project)
    }

    async fn call_tool(&self, issue: &Issue, arguments: Value) -> Result<ToolReply, ToolRefusal> {
        let call = agent_tool::check(arguments, &self.project, issue)?;
        Ok(rest_tool::send(&self.api, &call).await)
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
        state: text(entry, "/state")?,
        url: link(entry, "/web_url"),
        assignee_id: word(entry, "/assignees/0/id").or_else(|| word(entry, "/assignee/id")),
        labels: labels(names),
        dispatchable: true,
        created_at: time(entry, "/created_at"),
        updated_at: time(entry, "/updated_at"),
        ..Issue::default()
    })
}
