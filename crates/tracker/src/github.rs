//! GitHub: lists over REST, issues by number over GraphQL.
//!
//! The REST list supports conditional requests, so a poll of an unchanged repository costs nothing of the
//! rate limit. Issues by number are requested with aliases, up to 100 in one GraphQL query; numbers that do not
//! exist are `NOT_FOUND` errors next to the data of the others.

mod agent_tool;
mod issue_fields;

use carrel_client::{HttpClient, percent_encode};
use carrel_config::TrackerConfig;
use carrel_domain::Secret;
use hyper::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::api::{Api, ApiResponse};
use crate::error::{TrackerError, TrackerErrorKind};
use crate::issue::{Issue, IssueId, normal};
use crate::issue_records::{IssueRecords, is_number, list, valid_ids};
use crate::pages::{IssuePage, PageCache, next_page};
use crate::settings::Settings;
use crate::tool::{Tool, ToolReply};
use crate::{Tracker, graphql, rest_tool};

/// Issues per page and per query; GitHub's maximum.
const BATCH: usize = 100;

const HEADERS: &[(&str, &str)] = &[("x-github-api-version", "2022-11-28")];

#[derive(Debug)]
pub(crate) struct Github {
    api: Api,
    graphql: Api,
    repository: Repository,
    pages: PageCache,
}

#[derive(Clone, Debug)]
pub(crate) struct Repository {
    owner: String,
    name: String,
}

impl Repository {
    fn parse(text: &str) -> Result<Self, TrackerError> {
        let word = |word: &str| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            !word.is_empty() && word != "." && word != ".." && word.bytes().all(fits)
        };
        match text.split_once('/') {
            Some((owner, name)) if word(owner) && word(name) => {
                Ok(Self { owner: owner.to_owned(), name: name.to_owned() })
            }
            _ => Err(TrackerError::invalid_setting("repo", "is not of the form owner/name")),
        }
    }

    fn path(&self) -> String {
        format!("/repos/{}/{}", percent_encode(&self.owner), percent_encode(&self.name))
    }

    fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
}

impl Github {
    pub(crate) fn new(
        config: &TrackerConfig,
        connections: &HttpClient,
    ) -> Result<Self, TrackerError> {
        let settings = Settings(config);
        let token = settings.secret("token")?;
        let shown = Secret::new(format!("Bearer {}", token.expose()));
        let address = settings.text("api_url")?;
        let api = Api::new(
            connections,
            ("api_url", address),
            "GitHub",
            (AUTHORIZATION, &shown),
            HEADERS,
        )?;
        let api = api.redacting(token);
        let graphql = api.with_address(&graphql_address(&api.address()))?;
        let repository = Repository::parse(settings.text("repo")?)?;
        Ok(Self { api, graphql, repository, pages: PageCache::default() })
    }

    async fn batch(&self, numbers: &[&str]) -> Result<IssueRecords, TrackerError> {
        let query = issue_fields::query(numbers);
        let Repository { owner, name } = &self.repository;
        let variables = json!({ "owner": owner, "name": name });
        let reply = graphql::query_partial(&self.graphql, "", &query, variables).await?;
        match reply.errors.iter().find(|error| unseen(error) != Some(Unseen::Issue)) {
            Some(error) if unseen(error) == Some(Unseen::Repository) => return Err(self.unseen()),
            Some(error) => return Err(graphql::query_error(&self.graphql, error)),
            None => {}
        }
        let found = reply.data["repository"].as_object();
        let found = found.ok_or_else(|| self.graphql.malformed("a repository"))?;
        let mut records = IssueRecords::default();
        for node in found.values().filter(|node| !node.is_null()) {
            records.add(issue_fields::from_graphql(node, &self.repository));
        }
        Ok(records)
    }

    fn unseen(&self) -> TrackerError {
        let name = self.repository.full_name();
        let message = format!(
            "GitHub shows no repository {name}; check tracker.provider.repo and what the token allows"
        );
        TrackerError::new(TrackerErrorKind::Status(404), message)
    }

    fn page(&self, response: &ApiResponse) -> Result<IssuePage, TrackerError> {
        let json = response.json().filter(Value::is_array);
        let json = json.ok_or_else(|| self.api.malformed("a list of issues"))?;
        let mut records = IssueRecords::default();
        for entry in list(&json, "").iter().filter(|entry| !issue_fields::is_pull_request(entry)) {
            records.add(issue_fields::from_list(entry, &self.repository));
        }
        let next = response.header("link").and_then(next_page);
        Ok(IssuePage { records, next: next.map(|page| self.list_path(&page)) })
    }

    fn list_path(&self, query: &str) -> String {
        format!("{}/issues?{query}", self.repository.path())
    }
}

/// Returns the GraphQL endpoint: `/graphql` on github.com, `/api/graphql` on an Enterprise server.
fn graphql_address(api: &str) -> String {
    match api.strip_suffix("/api/v3") {
        Some(server) => format!("{server}/api/graphql"),
        None => format!("{api}/graphql"),
    }
}

/// The object of a `NOT_FOUND` error.
#[derive(PartialEq, Eq)]
enum Unseen {
    Repository,
    Issue,
}

fn unseen(error: &Value) -> Option<Unseen> {
    let depth = list(error, "/path").len();
    match error["type"].as_str() {
        Some("NOT_FOUND") if depth == 1 => Some(Unseen::Repository),
        Some("NOT_FOUND") if depth == 2 => Some(Unseen::Issue),
        _ => None,
    }
}

#[async_trait::async_trait]
impl Tracker for Github {
    async fn by_states(&self, states: &[String]) -> Result<Vec<Issue>, TrackerError> {
        let asked = |name: &str| states.iter().any(|state| normal(state) == name);
        let state = match (asked("open"), asked("closed")) {
            (false, false) => return Ok(Vec::new()),
            (true, false) => "open",
            (false, true) => "closed",
            (true, true) => "all",
        };
        let first = format!("state={state}&sort=created&direction=asc&per_page={BATCH}");
        let first = self.list_path(&first);
        let records = self.pages.read_all(&self.api, first, |response| self.page(response)).await?;
        Ok(records.lenient("GitHub"))
    }

    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
        let mut records = IssueRecords::default();
        for batch in valid_ids(ids, is_issue_number).chunks(BATCH) {
            records.append(self.batch(batch).await?);
        }
        records.strict("GitHub", ids)
    }

    fn tools(&self) -> Vec<Tool> {
        vec![agent_tool::tool(&self.repository)]
    }

    async fn call(&self, issue: &Issue, name: &str, arguments: Value) -> ToolReply {
        if name != agent_tool::NAME {
            return ToolReply::unknown(name, &self.tools());
        }
        match agent_tool::check(arguments, &self.repository, issue) {
            Ok(call) => rest_tool::send(&self.api, &call).await,
            Err(refusal) => refusal.into(),
        }
    }
}

/// Returns true for an issue number that fits GraphQL's `Int` of 31 bits.
fn is_issue_number(id: &str) -> bool {
    is_number(id) && id.parse::<i32>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn the_graphql_endpoint_follows_from_the_api_address() {
        assert_eq!(graphql_address("https://api.github.com"), "https://api.github.com/graphql");
        assert_eq!(
            graphql_address("https://git.example/api/v3"),
            "https://git.example/api/graphql"
        );
    }

    #[test]
    fn repository_names_are_validated() {
        for text in ["", "a", "a/", "/b", "a/b/c", "a/..", "a b/c", "a/b?x", "a%2f/b"] {
            assert!(Repository::parse(text).is_err(), "{text}");
        }
        assert_eq!(Repository::parse("acme/web.app").unwrap().path(), "/repos/acme/web.app");
    }
}
