//! Issues on GitHub.

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
use crate::issue_records::{IssueRecords, is_number, list, plausible};
use crate::pages::{IssuePage, PageCache, next_page};
use crate::settings::Settings;
use crate::tool::{Tool, ToolReply};
use crate::{Tracker, graphql, rest_tool};

/// How many issues are asked for at once. GitHub gives no more on a page.
const BATCH: usize = 100;

const HEADERS: &[(&str, &str)] = &[("x-github-api-version", "2022-11-28")];

/// Issues of a repository on GitHub.
#[derive(Debug)]
pub(crate) struct Github {
    api: Api,
    /// Where questions in GraphQL go.
    questions: Api,
    repository: Repository,
    remembered: PageCache,
}

/// A repository.
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
            _ => Err(TrackerError::setting("repo", "is not of the form owner/name")),
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
        let api = api.hiding(token);
        let questions = api.elsewhere(&question_address(&api.address()))?;
        let repository = Repository::parse(settings.text("repo")?)?;
        Ok(Self { api, questions, repository, remembered: PageCache::default() })
    }

    /// Asks for issues by their numbers, all in one question.
    async fn batch(&self, numbers: &[&str]) -> Result<IssueRecords, TrackerError> {
        let question = issue_fields::question(numbers);
        let Repository { owner, name } = &self.repository;
        let variables = json!({ "owner": owner, "name": name });
        let reply = graphql::ask(&self.questions, "", &question, variables).await?;
        match reply.errors.iter().find(|error| unseen(error) != Some(Unseen::Issue)) {
            Some(error) if unseen(error) == Some(Unseen::Repository) => return Err(self.unseen()),
            Some(error) => return Err(graphql::refused(&self.questions, error)),
            None => {}
        }
        let found = reply.data["repository"].as_object();
        let found = found.ok_or_else(|| self.questions.strange("a repository"))?;
        let mut records = IssueRecords::default();
        for node in found.values().filter(|node| !node.is_null()) {
            records.add(issue_fields::from_question(node, &self.repository));
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

    fn page(&self, answer: &ApiResponse) -> Result<IssuePage, TrackerError> {
        let told = answer.json().filter(Value::is_array);
        let told = told.ok_or_else(|| self.api.strange("a list of issues"))?;
        let mut records = IssueRecords::default();
        for entry in list(&told, "").iter().filter(|entry| !issue_fields::is_pull_request(entry)) {
            records.add(issue_fields::from_list(entry, &self.repository));
        }
        let next = answer.header("link").and_then(next_page);
        Ok(IssuePage { records, next: next.map(|page| self.list_path(&page)) })
    }

    fn list_path(&self, query: &str) -> String {
        format!("{}/issues?{query}", self.repository.path())
    }
}

/// GitHub answers questions next to its interface, and a server of one's own next to `/api/v3`.
fn question_address(api: &str) -> String {
    match api.strip_suffix("/api/v3") {
        Some(server) => format!("{server}/api/graphql"),
        None => format!("{api}/graphql"),
    }
}

/// What a complaint says is not there to be seen.
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
        let records =
            self.remembered.read_all(&self.api, first, |answer| self.page(answer)).await?;
        Ok(records.forgiving("GitHub"))
    }

    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
        let mut records = IssueRecords::default();
        for batch in plausible(ids, is_issue_number).chunks(BATCH) {
            records.append(self.batch(batch).await?);
        }
        records.exacting("GitHub", ids)
    }

    fn tools(&self) -> Vec<Tool> {
        vec![agent_tool::tool(&self.repository)]
    }

    async fn call(&self, issue: &Issue, name: &str, arguments: Value) -> ToolReply {
        if name != agent_tool::NAME {
            return ToolReply::unknown(name, &self.tools());
        }
        match agent_tool::judge(arguments, &self.repository, issue) {
            Ok(call) => rest_tool::send(&self.api, &call).await,
            Err(refusal) => refusal.into(),
        }
    }
}

/// Numbers in GraphQL have 31 bits.
fn is_issue_number(id: &str) -> bool {
    is_number(id) && id.parse::<i32>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn questions_go_where_the_server_takes_them() {
        assert_eq!(question_address("https://api.github.com"), "https://api.github.com/graphql");
        assert_eq!(
            question_address("https://git.example/api/v3"),
            "https://git.example/api/graphql"
        );
    }

    #[test]
    fn repositories_are_read_by_the_table() {
        for text in ["", "a", "a/", "/b", "a/b/c", "a/..", "a b/c", "a/b?x", "a%2f/b"] {
            assert!(Repository::parse(text).is_err(), "{text}");
        }
        assert_eq!(Repository::parse("acme/web.app").unwrap().path(), "/repos/acme/web.app");
    }
}
