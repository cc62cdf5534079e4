//! HTTP requests to a tracker's API.
//!
//! An [`Api`] is a base URL with one credential. It bounds the time and size of every response, enforces
//! the rate limit that all requests with the credential share, never follows redirects (the credential
//! would go with them), and redacts the credential in everything that a tracker sends back in an error.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use carrel_client::{HttpClient, SendError, ServerUrl, empty_body, full_body, read_all};
use carrel_domain::{ByteSize, Clock as _, Secret, SystemClock, message_of};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, IF_NONE_MATCH, USER_AGENT,
};
use hyper::{HeaderMap, Method, Request};
use serde_json::Value;

use crate::error::{Result, TrackerError, TrackerErrorKind};
use crate::provider::Settings;
use crate::rate_limit::{self, RateLimit};

/// The time until the response headers arrive. A tracker that is slower than this is treated as failed.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest pause between two parts of a body, so that a stalled connection does not hold a poll.
const READ_TIMEOUT: Duration = Duration::from_secs(15);

/// The time for the whole exchange, connection included. It bounds a body that trickles in.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(90);

/// The size of a response body. A page of a hundred issues has some hundred kilobytes.
const MAX_RESPONSE: ByteSize = ByteSize::mib(32);

/// The part of a tracker's error message that is kept.
const MAX_MESSAGE_CHARS: usize = 300;

/// The credential is in a header value that is marked as sensitive, so that it is not printed.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    connections: HttpClient,
    pub(crate) server: ServerUrl,
    pub(crate) provider: &'static str,
    secret: (HeaderName, HeaderValue),
    /// Secrets that are redacted in errors and tool replies.
    redacted: Vec<Secret>,
    headers: &'static [(&'static str, &'static str)],
    rate_limit: Arc<RateLimit>,
}

#[derive(Clone, Debug)]
pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
    /// The `ETag` of the cached response, for a conditional request.
    pub(crate) etag: Option<String>,
}

impl ApiRequest {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), body: None, etag: None }
    }

    pub(crate) fn post(path: impl Into<String>, body: Value) -> Self {
        Self { method: Method::POST, path: path.into(), body: Some(body), etag: None }
    }
}

#[derive(Debug)]
pub(crate) struct ApiResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ApiResponse {
    /// Returns a header that is present, valid and not blank.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
    }

    /// Parses the body; `None` if it is not JSON.
    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Api {
    /// Creates an API at the address in a setting, whose credential is the value of a header. The address
    /// must be `https`, or local.
    pub(crate) fn new(
        settings: Settings<'_>,
        setting: &str,
        provider: &'static str,
        (header, value): (HeaderName, &Secret),
    ) -> Result<Self> {
        let server = settings.text(setting)?.parse::<ServerUrl>();
        let server = server
            .map_err(|error| TrackerError::invalid_setting(setting, &format!("is {error}")))?;
        if server.is_cleartext_remote() {
            return Err(TrackerError::invalid_setting(setting, "must begin with https://"));
        }
        let mut shown = HeaderValue::from_str(value.expose()).map_err(|_| {
            let message = format!("the secret of {provider} is not a single line of text");
            TrackerError::new(TrackerErrorKind::Secret, message)
        })?;
        shown.set_sensitive(true);
        Ok(Self {
            connections: settings.connections.clone(),
            server,
            provider,
            secret: (header, shown),
            redacted: vec![value.clone()],
            headers: &[],
            rate_limit: Arc::default(),
        })
    }

    /// Creates an API whose credential is a bearer token.
    pub(crate) fn with_token(
        settings: Settings<'_>,
        setting: &str,
        provider: &'static str,
        token: &Secret,
    ) -> Result<Self> {
        let shown = Secret::new(format!("Bearer {}", token.expose()));
        Ok(Self::new(settings, setting, provider, (AUTHORIZATION, &shown))?.redacting(token))
    }

    #[must_use]
    pub(crate) fn with_headers(self, headers: &'static [(&'static str, &'static str)]) -> Self {
        Self { headers, ..self }
    }

    #[must_use]
    pub(crate) fn redacting(mut self, secret: &Secret) -> Self {
        self.redacted.push(secret.clone());
        self
    }

    /// Returns an API at another address with the same credential and the same shared rate limit.
    pub(crate) fn with_address(&self, address: &str) -> Result<Self> {
        let server = address.parse().map_err(|_| self.malformed("an address"))?;
        Ok(Self { server, ..self.clone() })
    }

    /// Sends a request and returns the response of any status. During a rate limit it fails without
    /// sending.
    pub(crate) async fn send(&self, request: ApiRequest) -> Result<ApiResponse> {
        if let Some(left) = self.rate_limit.remaining(Instant::now()) {
            return Err(TrackerError::rate_limited(self.provider, left));
        }
        let exchange = tokio::time::timeout(TOTAL_TIMEOUT, self.exchange(request)).await;
        exchange.unwrap_or(Err(SendError::Timeout { within: TOTAL_TIMEOUT })).map_err(|error| {
            let message = format!("{} does not answer: {}", self.provider, message_of(&error));
            TrackerError::new(TrackerErrorKind::Request, self.redact(&message))
        })
    }

    async fn exchange(&self, request: ApiRequest) -> Result<ApiResponse, SendError> {
        let request = self.http_request(request).ok_or(SendError::UnsupportedScheme)?;
        let response = self.connections.send(request, RESPONSE_TIMEOUT).await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = read_all(&mut response.into_body(), MAX_RESPONSE, READ_TIMEOUT).await?;
        Ok(ApiResponse { status, headers, body })
    }

    /// Sends a request and returns a successful response, or 304 for a conditional one.
    pub(crate) async fn request(&self, request: ApiRequest) -> Result<ApiResponse> {
        let path = request.path.split('?').next().unwrap_or_default();
        let what = format!("{} {path}", request.method);
        let known = request.etag.is_some();
        let response = self.send(request).await?;
        if response.is_success() || (known && response.status == 304) {
            return Ok(response);
        }
        Err(self.refusal(&response, &what))
    }

    /// Sends a request and returns the JSON of a successful response.
    pub(crate) async fn json(&self, request: ApiRequest) -> Result<Value> {
        self.request(request).await?.json().ok_or_else(|| self.malformed("JSON"))
    }

    /// Converts an unsuccessful response into an error with a hint. `what` names the request.
    pub(crate) fn refusal(&self, response: &ApiResponse, what: &str) -> TrackerError {
        let reason = self.redact(&message(&response.body));
        if rate_limit::is_limit(response.status, &response.headers, &reason) {
            return self.rate_limited(&response.headers);
        }
        let (provider, status) = (self.provider, response.status);
        let kind =
            if status == 401 { TrackerErrorKind::Secret } else { TrackerErrorKind::Status(status) };
        let hint = match status {
            300..=399 => "; redirects are not followed, so configure the new address",
            401 => "; check that the secret is complete and valid",
            403 => "; check what the secret allows",
            404 => "; check the address and the project, and whether the secret may see them",
            _ => "",
        };
        let message = format!("{provider} answered {status} to {what}: {reason}{hint}");
        TrackerError::new(kind, message)
    }

    /// Records the rate limit of a response, and returns its error.
    pub(crate) fn rate_limited(&self, headers: &HeaderMap) -> TrackerError {
        let wait = rate_limit::wait(headers, SystemClock.now());
        self.rate_limit.extend(Instant::now(), wait);
        TrackerError::rate_limited(self.provider, wait)
    }

    /// Returns the error of a response without an expected part, such as "a list of issues".
    pub(crate) fn malformed(&self, what: &str) -> TrackerError {
        TrackerError::malformed(self.provider, what)
    }

    pub(crate) fn redact(&self, text: &str) -> String {
        self.redacted.iter().fold(text.to_owned(), |text, secret| secret.mask(&text))
    }

    fn http_request(&self, request: ApiRequest) -> Option<Request<carrel_client::Body>> {
        let mut builder = Request::builder()
            .method(request.method)
            .uri(format!("{}{}", self.server, request.path))
            .header(USER_AGENT, concat!("carrel/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "application/json")
            .header(&self.secret.0, &self.secret.1);
        for (name, value) in self.headers {
            builder = builder.header(*name, *value);
        }
        if let Some(etag) = request.etag {
            builder = builder.header(IF_NONE_MATCH, etag);
        }
        let body = match request.body {
            Some(body) => {
                builder = builder.header(CONTENT_TYPE, "application/json");
                full_body(body.to_string())
            }
            None => empty_body(),
        };
        builder.body(body).ok()
    }
}

/// Returns the error message in a response body, from the location that each tracker uses.
fn message(body: &[u8]) -> String {
    const LOCATIONS: &[&str] =
        &["/message", "/errorMessages/0", "/errors/0/message", "/error/message", "/error"];
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let named = || {
        let (field, text) = json.get("errors")?.as_object()?.iter().next()?;
        Some(format!("{field}: {}", text.as_str()?))
    };
    let plain = LOCATIONS.iter().find_map(|path| json.pointer(path)?.as_str().map(str::to_owned));
    line(&plain.or_else(named).unwrap_or_else(|| "no reason".to_owned()))
}

/// Returns the first 300 characters of a text, without control characters.
pub(crate) fn line(text: &str) -> String {
    text.chars().filter(|one| !one.is_control()).take(MAX_MESSAGE_CHARS).collect()
}
