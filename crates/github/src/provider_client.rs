//! JSON requests to GitHub and Composio.
//!
//! The module knows the limits that both set: a response of at most 8 MiB within 15 seconds, and the several
//! ways in which GitHub reports an exhausted rate limit (429, or 403 with `Retry-After` or
//! `X-RateLimit-Remaining: 0`).

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carrel_client::{HttpClient, ServerUrl, empty_body, full_body, read_all};
use carrel_domain::{ByteSize, Secret};
use carrel_wire::Repository;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, Method, Request};
use serde_json::Value;

use crate::error::{GitHubError, Result};
use crate::repository::{GitHubRepository, Listing, PageRequest};

/// Time until the response head, and between chunks of the body.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The largest response; a hundred repositories have some hundred kilobytes.
const MAX_RESPONSE: ByteSize = ByteSize::mib(8);

const MESSAGE_CHARS: usize = 200;

/// The wait after a rate limit without a time, and the longest that is reported.
const DEFAULT_RETRY: Duration = Duration::from_mins(1);
const MAX_RETRY: Duration = Duration::from_hours(1);

#[derive(Clone, Debug)]
pub(crate) struct ProviderClient {
    connections: HttpClient,
    server: Arc<ServerUrl>,
    provider: &'static str,
}

pub(crate) struct ProviderRequest<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
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

    /// Sends a request, and returns the JSON of a success.
    pub(crate) async fn send(&self, call: ProviderRequest<'_>) -> Result<Value> {
        let secret = call.secret.1.clone();
        let request = self.build(call)?;
        let response = self.connections.send(request, TIMEOUT).await;
        let response = response.map_err(|source| self.unreachable(source))?;
        let status = response.status();
        let headers = response.headers().clone();
        let body = read_all(&mut response.into_body(), MAX_RESPONSE, TIMEOUT).await;
        let body = body.map_err(|source| self.unreachable(source))?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|_| self.unexpected("JSON"));
        }
        Err(rate_limit(status.as_u16(), &headers).unwrap_or_else(|| GitHubError::Refused {
            provider: self.provider,
            status: status.as_u16(),
            message: secret.mask(&message(&body)),
        }))
    }

    fn build(&self, call: ProviderRequest<'_>) -> Result<Request<carrel_client::Body>> {
        let uri = format!("{}{}", self.server, call.path);
        let (name, secret) = call.secret;
        let value = if name == AUTHORIZATION {
            format!("Bearer {}", secret.expose())
        } else {
            secret.expose().to_owned()
        };
        let mut value =
            HeaderValue::from_str(&value).map_err(|_| self.unexpected("a token of one line"))?;
        value.set_sensitive(true);
        let mut request = Request::builder()
            .method(call.method)
            .uri(uri)
            .header(USER_AGENT, concat!("carrel/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "application/vnd.github+json, application/json")
            .header("x-github-api-version", "2022-11-28")
            .header(name, value);
        let body = match call.body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                full_body(body.to_string())
            }
            None => empty_body(),
        };
        request.body(body).map_err(|_| self.unexpected("an address"))
    }

    /// Lists a page of the repositories that a token can see.
    pub(crate) async fn repositories(
        &self,
        token: &Secret,
        listing: Listing,
        page: PageRequest,
    ) -> Result<Vec<Repository>> {
        let PageRequest { number, size } = page;
        let path = match listing {
            Listing::User => format!("/user/repos?sort=updated&per_page={size}&page={number}"),
            Listing::Installation => {
                format!("/installation/repositories?per_page={size}&page={number}")
            }
        };
        let mut reply = self.send(ProviderRequest::get(&path, AUTHORIZATION, token)).await?;
        let listed = match listing {
            Listing::User => reply,
            Listing::Installation => reply["repositories"].take(),
        };
        self.parse_repositories(listed)
    }

    pub(crate) fn parse_repositories(&self, listed: Value) -> Result<Vec<Repository>> {
        let reply: Vec<GitHubRepository> = serde_json::from_value(listed)
            .map_err(|_| self.unexpected("a list of repositories"))?;
        Ok(reply.into_iter().map(Repository::from).collect())
    }

    pub(crate) fn unexpected(&self, what: &'static str) -> GitHubError {
        GitHubError::UnexpectedReply { provider: self.provider, what }
    }

    fn unreachable(&self, source: carrel_client::SendError) -> GitHubError {
        GitHubError::Unreachable { provider: self.provider, source }
    }
}

/// Returns the error of a response that reports an exhausted rate limit, with the time until it resets.
fn rate_limit(status: u16, headers: &HeaderMap) -> Option<GitHubError> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let used_up = number("x-ratelimit-remaining") == Some(0);
    let limited = status == 429 || (status == 403 && (used_up || number("retry-after").is_some()));
    let until_reset = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
        Some(Duration::from_secs(number("x-ratelimit-reset")?.saturating_sub(now)))
    };
    let wait = number("retry-after").map(Duration::from_secs).or_else(until_reset);
    let wait = wait.unwrap_or(DEFAULT_RETRY).clamp(Duration::from_secs(1), MAX_RETRY);
    limited.then_some(GitHubError::RateLimited { retry_after: wait })
}

fn message(body: &[u8]) -> String {
    let reply: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut pointers = ["/message", "/error/message", "/error"].iter();
    let text = pointers.find_map(|pointer| reply.pointer(pointer)?.as_str()).unwrap_or("no reason");
    text.chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS).collect()
}
