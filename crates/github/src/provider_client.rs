//! Requests to GitHub, and to whoever speaks for it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carrel_client::{HttpClient, ServerUrl, empty_body, full_body, read_all};
use carrel_domain::{ByteSize, Secret};
use carrel_wire::Repository;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, Method, Request};
use serde_json::Value;

use crate::error::GitHubError;
use crate::repository::{GitHubRepository, Listing, PageRequest};

/// How long a provider may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long an answer may be; a hundred repositories have some hundred kilobytes.
const MAX_ANSWER: ByteSize = ByteSize::mib(8);

/// What is told of a provider's message.
const MESSAGE_CHARS: usize = 200;

/// When to ask again, if the provider does not say, and how long that may be at most.
const RETRY: (Duration, Duration) = (Duration::from_mins(1), Duration::from_hours(1));

/// A server that is asked for JSON.
#[derive(Clone, Debug)]
pub(crate) struct ProviderClient {
    connections: HttpClient,
    server: Arc<ServerUrl>,
    provider: &'static str,
}

/// What is asked.
pub(crate) struct ProviderRequest<'a> {
    pub(crate) method: Method,
    /// Path and query; everything in it is percent-encoded.
    pub(crate) path: &'a str,
    /// The header with the secret.
    pub(crate) secret: (HeaderName, &'a Secret),
    pub(crate) body: Option<Value>,
}

impl<'a> ProviderRequest<'a> {
    pub(crate) fn get(path: &'a str, header: HeaderName, secret: &'a Secret) -> Self {
        Self { method: Method::GET, path, secret: (header, secret), body: None }
    }
}

impl ProviderClient {
    pub(crate) fn new(connections: HttpClient, server: ServerUrl, provider: &'static str) -> Self {
        Self { connections, server: Arc::new(server), provider }
    }

    /// Asks, and returns the answer if the provider gave what was asked for.
    pub(crate) async fn ask(&self, asked: ProviderRequest<'_>) -> Result<Value, GitHubError> {
        let secret = asked.secret.1.clone();
        let request = self.request(asked)?;
        let answer = self.connections.send(request, PATIENCE).await;
        let answer = answer.map_err(|source| self.unreachable(source))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = read_all(&mut answer.into_body(), MAX_ANSWER, PATIENCE).await;
        let body = body.map_err(|source| self.unreachable(source))?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|_| self.unexpected("JSON"));
        }
        Err(limit(status.as_u16(), &headers).unwrap_or_else(|| GitHubError::Refused {
            provider: self.provider,
            status: status.as_u16(),
            message: secret.mask(&message(&body)),
        }))
    }

    fn request(
        &self,
        asked: ProviderRequest<'_>,
    ) -> Result<Request<carrel_client::Body>, GitHubError> {
        let uri = format!("{}{}", self.server, asked.path);
        let (name, secret) = asked.secret;
        let shown = if name == AUTHORIZATION {
            format!("Bearer {}", secret.expose())
        } else {
            secret.expose().to_owned()
        };
        let mut shown =
            HeaderValue::from_str(&shown).map_err(|_| self.unexpected("a token of one line"))?;
        shown.set_sensitive(true);
        let mut request = Request::builder()
            .method(asked.method)
            .uri(uri)
            .header(USER_AGENT, concat!("carrel/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "application/vnd.github+json, application/json")
            .header("x-github-api-version", "2022-11-28")
            .header(name, shown);
        let body = match asked.body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                full_body(body.to_string())
            }
            None => empty_body(),
        };
        request.body(body).map_err(|_| self.unexpected("an address"))
    }

    /// Lists repositories that a token can see.
    pub(crate) async fn repositories(
        &self,
        token: &Secret,
        listing: Listing,
        page: PageRequest,
    ) -> Result<Vec<Repository>, GitHubError> {
        let PageRequest { number, size } = page;
        let path = match listing {
            Listing::User => format!("/user/repos?sort=updated&per_page={size}&page={number}"),
            Listing::Installation => {
                format!("/installation/repositories?per_page={size}&page={number}")
            }
        };
        let mut told = self.ask(ProviderRequest::get(&path, AUTHORIZATION, token)).await?;
        let listed = match listing {
            Listing::User => told,
            Listing::Installation => told["repositories"].take(),
        };
        self.read(listed)
    }

    /// Reads a list of repositories.
    pub(crate) fn read(&self, listed: Value) -> Result<Vec<Repository>, GitHubError> {
        let told: Vec<GitHubRepository> = serde_json::from_value(listed)
            .map_err(|_| self.unexpected("a list of repositories"))?;
        Ok(told.into_iter().map(Repository::from).collect())
    }

    pub(crate) fn unexpected(&self, what: &'static str) -> GitHubError {
        GitHubError::UnexpectedReply { provider: self.provider, what }
    }

    fn unreachable(&self, source: carrel_client::SendError) -> GitHubError {
        GitHubError::Unreachable { provider: self.provider, source }
    }
}

/// Tells whether a refusal is for asking too often, and when to ask again.
fn limit(status: u16, headers: &HeaderMap) -> Option<GitHubError> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let used_up = number("x-ratelimit-remaining") == Some(0);
    let limited = status == 429 || (status == 403 && (used_up || number("retry-after").is_some()));
    let until_reset = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
        Some(Duration::from_secs(number("x-ratelimit-reset")?.saturating_sub(now)))
    };
    let wait = number("retry-after").map(Duration::from_secs).or_else(until_reset);
    let wait = wait.unwrap_or(RETRY.0).clamp(Duration::from_secs(1), RETRY.1);
    limited.then_some(GitHubError::RateLimited { retry_after: wait })
}

/// Returns what a provider says about a refusal, on one short line.
fn message(body: &[u8]) -> String {
    let told: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut found = ["/message", "/error/message", "/error"].iter();
    let text = found.find_map(|place| told.pointer(place)?.as_str()).unwrap_or("no reason");
    text.chars().filter(|one| !one.is_control()).take(MESSAGE_CHARS).collect()
}
