//! Requests to a tracker.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use carrel_client::{HttpClient, SendError, ServerUrl, empty_body, full_body, read_all};
use carrel_domain::{ByteSize, Clock as _, Secret, SystemClock};
use hyper::header::{
    ACCEPT, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, USER_AGENT,
};
use hyper::{HeaderMap, Method, Request};
use serde_json::Value;

use crate::error::{TrackerError, TrackerErrorKind};
use crate::rate_limit::{self, RateLimit};

/// How long a tracker may take to begin its answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);

/// How long a tracker may pause inside its answer.
const PAUSE_PATIENCE: Duration = Duration::from_secs(15);

/// How long an answer may take from beginning to end.
const WHOLE_PATIENCE: Duration = Duration::from_secs(90);

/// How long an answer may be; a hundred issues have some hundred kilobytes, and long descriptions are rare.
const MAX_ANSWER: ByteSize = ByteSize::mib(32);

/// What is told of a tracker's own words.
const MESSAGE_CHARS: usize = 300;

/// A server that is asked for JSON, with what it knows us by.
#[derive(Clone)]
pub(crate) struct Api {
    connections: HttpClient,
    server: ServerUrl,
    provider: &'static str,
    secret: (HeaderName, HeaderValue),
    /// What is never repeated, whoever says it.
    hidden: Vec<Secret>,
    headers: &'static [(&'static str, &'static str)],
    rate_limit: Arc<RateLimit>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("server", &self.server).finish_non_exhaustive()
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    /// Path and query; everything in it is percent-encoded.
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
    /// The version of the answer that is there already.
    pub(crate) known: Option<String>,
}

impl ApiRequest {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), body: None, known: None }
    }

    pub(crate) fn post(path: impl Into<String>, body: Value) -> Self {
        Self { method: Method::POST, path: path.into(), body: Some(body), known: None }
    }
}

/// What was answered, whatever it says.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ApiResponse {
    /// Returns the version of what was answered.
    pub(crate) fn version(&self) -> Option<String> {
        Some(self.headers.get(ETAG)?.to_str().ok()?.to_owned())
    }

    /// Returns a header, if it is there and says something.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
    }

    /// Returns the body as JSON; nothing if it is none.
    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Tells whether what is known already still holds.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.status == 304
    }
}

impl Api {
    /// Makes an interface to a server that knows us by the value of a header. What is sent there must be
    /// protected on its way, unless it stays on this machine.
    pub(crate) fn new(
        connections: &HttpClient,
        server: (&'static str, &str),
        provider: &'static str,
        (header, value): (HeaderName, &Secret),
        headers: &'static [(&'static str, &'static str)],
    ) -> Result<Self, TrackerError> {
        let (setting, address) = server;
        let server: ServerUrl = address
            .parse()
            .map_err(|error| TrackerError::setting(setting, &format!("is {error}")))?;
        if server.is_cleartext_remote() {
            return Err(TrackerError::setting(setting, "must begin with https://"));
        }
        let refused = || {
            TrackerError::new(
                TrackerErrorKind::Secret,
                format!("the secret of {provider} is no text of one line"),
            )
        };
        let mut shown = HeaderValue::from_str(value.expose()).map_err(|_| refused())?;
        shown.set_sensitive(true);
        let connections = connections.clone();
        let (hidden, rate_limit) = (vec![value.clone()], Arc::default());
        Ok(Self {
            connections,
            server,
            provider,
            secret: (header, shown),
            hidden,
            headers,
            rate_limit,
        })
    }

    /// Never repeats this either.
    #[must_use]
    pub(crate) fn hiding(mut self, secret: &Secret) -> Self {
        self.hidden.push(secret.clone());
        self
    }

    /// Asks another place in the same name.
    pub(crate) fn elsewhere(&self, address: &str) -> Result<Self, TrackerError> {
        let server = address.parse().map_err(|_| self.strange("an address"))?;
        Ok(Self { server, ..self.clone() })
    }

    /// Returns where it is.
    pub(crate) fn address(&self) -> String {
        self.server.to_string()
    }

    /// Returns whom is asked.
    pub(crate) fn provider(&self) -> &'static str {
        self.provider
    }

    /// Asks, and returns the answer whatever it says. A tracker that wants to be left alone is not asked.
    pub(crate) async fn send(&self, ask: ApiRequest) -> Result<ApiResponse, TrackerError> {
        if let Some(left) = self.rate_limit.remaining(Instant::now()) {
            return Err(TrackerError::limited(self.provider, left));
        }
        let exchange = tokio::time::timeout(WHOLE_PATIENCE, self.exchange(ask)).await;
        exchange.unwrap_or(Err(SendError::Timeout { within: WHOLE_PATIENCE })).map_err(|error| {
            let why = chain(&error);
            let message = format!("{} does not answer: {why}", self.provider);
            TrackerError::new(TrackerErrorKind::Request, self.mask(&message))
        })
    }

    async fn exchange(&self, ask: ApiRequest) -> Result<ApiResponse, SendError> {
        let request = self.request(ask).ok_or(SendError::UnsupportedScheme)?;
        let answer = self.connections.send(request, ANSWER_PATIENCE).await?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = read_all(&mut answer.into_body(), MAX_ANSWER, PAUSE_PATIENCE).await?;
        Ok(ApiResponse { status, headers, body })
    }

    /// Asks, and returns the answer if it is what was asked for, or says that nothing has changed.
    pub(crate) async fn ask(&self, ask: ApiRequest) -> Result<ApiResponse, TrackerError> {
        let (method, path) = (ask.method.clone(), ask.path.clone());
        let known = ask.known.is_some();
        let answer = self.send(ask).await?;
        match answer.status {
            200..=299 => Ok(answer),
            304 if known => Ok(answer),
            _ => Err(self.refusal(&answer, &format!("{method} {}", place(&path)))),
        }
    }

    /// Asks, and returns the JSON that is the answer.
    pub(crate) async fn json(&self, ask: ApiRequest) -> Result<Value, TrackerError> {
        self.ask(ask).await?.json().ok_or_else(|| self.strange("JSON"))
    }

    /// Says why an answer is not what was asked for.
    pub(crate) fn refusal(&self, answer: &ApiResponse, asked: &str) -> TrackerError {
        let told = self.mask(&message(&answer.body));
        if rate_limit::is_limit(answer.status, &answer.headers, &told) {
            return self.limited(&answer.headers);
        }
        let (provider, status) = (self.provider, answer.status);
        let kind =
            if status == 401 { TrackerErrorKind::Secret } else { TrackerErrorKind::Status(status) };
        let way_out = match status {
            300..=399 => "; redirects are not followed, so name the place it has moved to",
            401 => "; check that the secret is whole and still valid",
            403 => "; check what the secret allows",
            404 => "; check the address and the project, and whether the secret may see them",
            _ => "",
        };
        let message = format!("{provider} answered {status} to {asked}: {told}{way_out}");
        TrackerError::new(kind, message)
    }

    /// Says that there were too many requests, and sends no more until it is time again.
    pub(crate) fn limited(&self, headers: &HeaderMap) -> TrackerError {
        let wait = rate_limit::wait(headers, SystemClock.now());
        self.rate_limit.extend(Instant::now(), wait);
        TrackerError::limited(self.provider, wait)
    }

    /// Says that an answer makes no sense.
    pub(crate) fn strange(&self, what: &str) -> TrackerError {
        TrackerError::strange(self.provider, what)
    }

    /// Takes what is secret out of a text.
    pub(crate) fn mask(&self, text: &str) -> String {
        self.hidden.iter().fold(text.to_owned(), |text, secret| secret.mask(&text))
    }

    fn request(&self, ask: ApiRequest) -> Option<Request<carrel_client::Body>> {
        let mut request = Request::builder()
            .method(ask.method)
            .uri(format!("{}{}", self.server, ask.path))
            .header(USER_AGENT, concat!("carrel/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "application/json")
            .header(&self.secret.0, &self.secret.1);
        for (name, value) in self.headers {
            request = request.header(*name, *value);
        }
        if let Some(known) = ask.known {
            request = request.header(IF_NONE_MATCH, known);
        }
        let body = match ask.body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                full_body(body.to_string())
            }
            None => empty_body(),
        };
        request.body(body).ok()
    }
}

/// Returns a path without its query, which may be long.
fn place(path: &str) -> &str {
    path.split('?').next().unwrap_or(path)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// Returns what a tracker says about a refusal, on one short line.
fn message(body: &[u8]) -> String {
    const PLACES: &[&str] =
        &["/message", "/errorMessages/0", "/errors/0/message", "/error/message", "/error"];
    let told: Value = serde_json::from_slice(body).unwrap_or_default();
    let named = || {
        let (field, text) = told.get("errors")?.as_object()?.iter().next()?;
        Some(format!("{field}: {}", text.as_str()?))
    };
    let plain = PLACES.iter().find_map(|place| told.pointer(place)?.as_str().map(str::to_owned));
    line(&plain.or_else(named).unwrap_or_else(|| "no reason".to_owned()))
}

/// Returns a text as one short line.
pub(crate) fn line(text: &str) -> String {
    text.chars().filter(|one| !one.is_control()).take(MESSAGE_CHARS).collect()
}
