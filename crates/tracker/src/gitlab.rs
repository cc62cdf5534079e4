//! Issues on GitLab.

mod agent_tool;

use carrel_client::{HttpClient, percent_encode};
use carrel_config::TrackerConfig;
use hyper::header::HeaderName;
use serde_json::{Value, json};

use crate::api::{Api, ApiRequest, ApiResponse};
use crate::error::TrackerError;
use crate::issue::{Issue, IssueId, normal};
use crate::issue_records::{
    IssueRecords, is_number, labels, link, list, plausible, text, time, word,
};
use crate::pages::{IssuePage, PageCache, next_page};
use crate::settings::Settings;
use crate::tool::{Tool, ToolReply};
use crate::{Tracker, rest_tool};

/// How many issues are asked for at once. GitLab gives no more on a page.
const BATCH: usize = 100;

/// Issues of a project on GitLab.
#[derive(Debug)]
pub(crate) struct Gitlab {
    api: Api,
    /// Such as `group/project`.
    project: String,
    remembered: PageCache,
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
            return Err(TrackerError::setting("project_path", "is not of the form group/project"));
        }
        Ok(Self { api, project, remembered: PageCache::default() })
    }

    fn list_path(&self, query: &str) -> String {
        format!("/projects/{}/issues?{query}", percent_encode(&self.project))
    }

    fn records(&self, answer: &ApiResponse) -> Result<IssueRecords, TrackerError> {
        let told = answer.json().filter(Value::is_array);
        let told = told.ok_or_else(|| self.api.strange("a list of issues"))?;
        let mut records = IssueRecords::default();
        for entry in list(&told, "") {
            records.add(read(entry, &self.project));
        }
        Ok(records)
    }

    fn page(&self, answer: &ApiResponse, query: &str) -> Result<IssuePage, TrackerError> {
        let number = answer.header("x-next-page").filter(|page| is_number(page));
        let numbered = number.map(|page| format!("{query}&page={page}"));
        let next = numbered.or_else(|| answer.header("link").and_then(next_page));
        Ok(IssuePage {
            records: self.records(answer)?,
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
        let read = |answer: &ApiResponse| self.page(answer, &query);
        let records = self.remembered.read_all(&self.api, self.list_path(&query), read).await?;
        Ok(records.forgiving("GitLab"))
    }

    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
        let mut records = IssueRecords::default();
        for batch in plausible(ids, is_number).chunks(BATCH) {
            let asked = batch.join("&iids%5B%5D=");
            let path = self.list_path(&format!("per_page={BATCH}&iids%5B%5D={asked}"));
            records.append(self.records(&self.api.ask(ApiRequest::get(path)).await?)?);
        }
        records.exacting("GitLab", ids)
    }

    fn tools(&self) -> Vec<Tool> {
        vec![agent_tool::tool(&self.project)]
    }

    async fn call(&self, issue: &Issue, name: &str, arguments: Value) -> ToolReply {
        if name != agent_tool::NAME {
            return ToolReply::unknown(name, &self.tools());
        }
        match agent_tool::judge(arguments, &self.project, issue) {
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
        description: text(entry, "/description").map(|told| told.trim().to_owned()),
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
