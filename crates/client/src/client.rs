//! Requests to the API and the parsing of responses.
//!
//! [`WorkspaceClient`] holds the server, the connection pool and the headers of every request. The routes are
//! methods in the modules beside this one, each a line that names method, path and types; everything that can
//! go wrong is handled here once:
//!
//! - A success status is parsed into the reply type. JSON of another shape is [`ClientError::Protocol`].
//! - A redirect is an error, since the token must not reach another server.
//! - Any other status is read as the error envelope of the API ([`ClientError::Api`]); without one, it is
//!   some other server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use carrel_domain::{ByteSize, Secret, WorkspaceId};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
};
use hyper::{HeaderMap, Method, Request, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::body::{Body, empty_body, full_body, read_all};
use crate::error::{ClientError, Result, refusal};
use crate::http_client::HttpClient;
use crate::limits::{BODY_IDLE_TIMEOUT, MAX_ERROR_RESPONSE, MAX_RESPONSE, RESPONSE_TIMEOUT};
use crate::server_url::ServerUrl;

const WORKSPACE_HEADER: HeaderName = HeaderName::from_static("x-workspace-id");
const INTERNAL_TOKEN_HEADER: HeaderName = HeaderName::from_static("x-internal-token");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Characters of an unexpected body that an error message repeats.
const SHOWN_CHARS: usize = 200;

/// The credentials of a client.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// No credentials, for routes that are public.
    None,
    /// A token of the service, sent as `Authorization: Bearer`.
    Bearer(Secret),
    /// The token that servers and workers of one installation share, sent as `X-Internal-Token`.
    Internal(Secret),
}

/// A client of the REST API. Clones share the connection pool.
#[derive(Clone, Debug)]
pub struct WorkspaceClient {
    connections: HttpClient,
    server: Arc<ServerUrl>,
    headers: HeaderMap,
}

impl WorkspaceClient {
    /// Creates a client with a connection pool of its own.
    ///
    /// A token that is not a valid header value is not sent, and the server answers 401. Tokens of the
    /// service are valid.
    pub fn new(server: ServerUrl, credentials: &Credentials) -> Self {
        let mut headers = HeaderMap::new();
        let (name, value) = match credentials {
            Credentials::None => (AUTHORIZATION, None),
            Credentials::Bearer(token) => {
                (AUTHORIZATION, secret_value(&format!("Bearer {}", token.expose())))
            }
            Credentials::Internal(token) => (INTERNAL_TOKEN_HEADER, secret_value(token.expose())),
        };
        headers.extend(value.map(|value| (name, value)));
        Self { connections: HttpClient::new(), server: Arc::new(server), headers }
    }

    /// Returns a client that sends `X-Workspace-ID`, for routes whose path names no workspace.
    #[must_use]
    pub fn in_workspace(mut self, workspace: WorkspaceId) -> Self {
        if let Ok(value) = HeaderValue::from_str(&workspace.to_string()) {
            self.headers.insert(WORKSPACE_HEADER, value);
        }
        self
    }

    /// Returns a client that sends an idempotency key, so that its next mutation can be retried safely.
    ///
    /// The key is for one mutation: with another body the server answers 409. A key that is not a valid
    /// header value is not sent.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(key) {
            self.headers.insert(IDEMPOTENCY_KEY, value);
        }
        self
    }

    /// Returns the URL of the server.
    pub fn server(&self) -> &ServerUrl {
        &self.server
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &impl Serialize,
    ) -> Result<T> {
        self.json(ApiRequest::new(Method::GET, path).query(query)).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T> {
        self.json(ApiRequest::new(Method::POST, path).with(body)).await
    }

    pub(crate) async fn json<T: DeserializeOwned>(&self, request: ApiRequest<'_>) -> Result<T> {
        let response = self.send(request).await?;
        let bytes = self.bytes(response, MAX_RESPONSE).await?;
        serde_json::from_slice(&bytes).map_err(|error| self.protocol(format!("{error}")))
    }

    /// Sends a request, and returns the response if its status is a success.
    pub(crate) async fn send(&self, request: ApiRequest<'_>) -> Result<Response<Incoming>> {
        let within = request.within;
        let request = self.request(request)?;
        let response = self.connections.send(request, within).await;
        let response = response.map_err(|source| self.unreachable(source))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let to = excerpt(to.unwrap_or("nowhere").as_bytes());
            return Err(self.protocol(format!("{status} to {to}; redirects are not followed")));
        }
        let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let after = after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        let body = self.bytes(response, MAX_ERROR_RESPONSE).await?;
        Err(refusal(status.as_u16(), after, &body)
            .unwrap_or_else(|| self.protocol(format!("{status} with {}", excerpt(&body)))))
    }

    pub(crate) async fn bytes(
        &self,
        response: Response<Incoming>,
        limit: ByteSize,
    ) -> Result<Bytes> {
        let read = read_all(&mut response.into_body(), limit, BODY_IDLE_TIMEOUT).await;
        read.map_err(|source| self.unreachable(source))
    }

    fn request(&self, call: ApiRequest<'_>) -> Result<Request<Body>> {
        let uri = self.server.at(call.path, &call.query);
        let mut request = Request::builder().method(call.method).uri(uri);
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers.clone());
            headers.insert(ACCEPT, HeaderValue::from_static(call.accept));
            if let Some(kind) = call.kind {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            }
            if let Some((name, value)) = call.header {
                headers.insert(name, value);
            }
        }
        request.body(call.body).map_err(|error| self.protocol(error.to_string()))
    }

    pub(crate) fn unreachable(&self, source: crate::SendError) -> ClientError {
        ClientError::Unreachable { server: self.server.to_string(), source }
    }

    pub(crate) fn protocol(&self, what: impl Into<String>) -> ClientError {
        ClientError::Protocol { server: self.server.to_string(), what: what.into() }
    }
}

pub(crate) struct ApiRequest<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) header: Option<(HeaderName, HeaderValue)>,
    pub(crate) accept: &'static str,
    pub(crate) kind: Option<&'static str>,
    pub(crate) body: Body,
    pub(crate) within: Duration,
}

impl<'a> ApiRequest<'a> {
    pub(crate) fn new(method: Method, path: &'a str) -> Self {
        Self {
            method,
            path,
            query: Vec::new(),
            header: None,
            accept: "application/json",
            kind: None,
            body: empty_body(),
            within: RESPONSE_TIMEOUT,
        }
    }

    /// Adds a query. Every field is a text, a number or absent.
    pub(crate) fn query(self, query: &impl Serialize) -> Self {
        let Ok(Value::Object(fields)) = serde_json::to_value(query) else { return self };
        let pairs = fields.into_iter().filter_map(|(name, value)| match value {
            Value::Null => None,
            Value::String(text) => Some((name, text)),
            other => Some((name, other.to_string())),
        });
        Self { query: pairs.collect(), ..self }
    }

    pub(crate) fn with(self, body: &impl Serialize) -> Self {
        let bytes = serde_json::to_vec(body).expect("a request is plain data");
        Self { kind: Some("application/json"), body: full_body(bytes), ..self }
    }
}

fn secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns the beginning of an unexpected body, quoted, so that control characters do not reach a terminal.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let start: String = text.chars().take(SHOWN_CHARS).collect();
    format!("{start:?}")
}
