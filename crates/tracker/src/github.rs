//! GitHub: lists over REST, issues by number over GraphQL.
//!
//! The REST list supports conditional requests, so a poll of an unchanged repository costs nothing of the
//! rate limit. Issues by number are requested with aliases, up to 100 in one GraphQL query; numbers that do not
//! exist are `NOT_FOUND` errors next to the data of the others.

mod agent_tool;
mod issue_fields;

use carrel_client::percent_encode;
use serde_json::{Value, json};

use crate::api::{Api, ApiResponse};
use crate::error::{Result, TrackerError, TrackerErrorKind};
use crate::issue::Issue;
use crate::issue_records::{IssueRecords, is_number, list};
use crate::pages::{IssuePage, PageCache, next_page};
use crate::provider::{IssueProvider, Settings, queried_state};
use crate::tool::{Tool, ToolRefusal, ToolReply};
use crate::{graphql, rest_tool};

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
    fn parse(text: &str) -> Result<Self> {
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
    fn unseen(&self) -> TrackerError {
        let name = self.repository.full_name();
        let message = format!(
            "GitHub shows no repository {name}; check tracker.provider.repo and what the token allows"
        );
        TrackerError::new(TrackerErrorKind::Status(404), message)
    }

    fn page(&self, response: &ApiResponse) -> Result<IssuePage> {
        let json = response.json().filter(Value::is_array);
        let json = json.ok_or_else(|| self.api.malformed("a list of issues"))?;
        let issues = list(&json, "").iter().filter(|entry| !issue_fields::is_pull_request(entry));
        let read = |entry| issue_fields::from_list(entry, &self.repository);
        let next = response.header("link").and_then(next_page);
        let next = next.map(|page| self.list_path(&page));
        Ok(IssuePage { records: IssueRecords::read(issues, read), next })
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

/// Returns the depth of the object that a `NOT_FOUND` error names: 1 for the repository, 2 for an issue.
fn unseen_depth(error: &Value) -> Option<usize> {
    (error["type"] == "NOT_FOUND").then(|| list(error, "/path").len())
}

#[async_trait::async_trait]
impl IssueProvider for Github {
    const NAME: &'static str = "GitHub";

    /// Issues per page and per query; GitHub's maximum.
    const BATCH: usize = 100;

    fn new(settings: Settings<'_>) -> Result<Self> {
        let token = settings.secret("token")?;
        let api = Api::with_token(settings, "api_url", Self::NAME, token)?.with_headers(HEADERS);
        let graphql = api.with_address(&graphql_address(&api.server.to_string()))?;
        let repository = Repository::parse(settings.text("repo")?)?;
        Ok(Self { api, graphql, repository, pages: PageCache::default() })
    }

    /// Returns true for an issue number that fits GraphQL's `Int` of 31 bits.
    fn is_id(id: &str) -> bool {
        is_number(id) && id.parse::<i32>().is_ok()
    }

    async fn list(&self, states: &[String]) -> Result<IssueRecords> {
        let Some(state) = queried_state(states, "open") else { return Ok(IssueRecords::default()) };
        let batch = Self::BATCH;
        let first = format!("state={state}&sort=created&direction=asc&per_page={batch}");
        let first = self.list_path(&first);
        self.pages.read_all(&self.api, first, |response| self.page(response)).await
    }

    async fn batch(&self, numbers: &[&str]) -> Result<IssueRecords> {
        let Repository { owner, name } = &self.repository;
        let variables = json!({ "owner": owner, "name": name });
        let query = issue_fields::query(numbers);
        let (data, errors) = graphql::query_partial(&self.graphql, &query, variables).await?;
        if let Some(error) = errors.iter().find(|error| unseen_depth(error) != Some(2)) {
            return Err(match unseen_depth(error) {
                Some(1) => self.unseen(),
                _ => graphql::query_error(&self.graphql, error),
            });
        }
        let found = data["repository"].as_object();
        let found = found.ok_or_else(|| self.graphql.malformed("a repository"))?;
        let nodes = found.values().filter(|node| !node.is_null());
        Ok(IssueRecords::read(nodes, |node| issue_fields::from_graphql(node, &self.repository)))
    }

    fn tool(&self) -> Tool {
        agent_tool::tool(&self.repository)
    }

    async fn call_tool(&self, issue: &Issue, arguments: Value) -> Result<ToolReply, ToolRefusal> {
        let call = agent_tool::check(arguments, &self.repository, issue)?;
        Ok(rest_tool::send(&self.api, &call).await)
    }
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
