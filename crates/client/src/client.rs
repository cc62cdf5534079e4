//! The client itself: how a request is put together and its answer taken apart.

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
use crate::error::{ClientError, refusal};
use crate::http_client::HttpClient;
use crate::limits::{BODY_IDLE_TIMEOUT, MAX_ERROR_RESPONSE, MAX_RESPONSE, RESPONSE_TIMEOUT};
use crate::server_url::ServerUrl;

const WORKSPACE_HEADER: HeaderName = HeaderName::from_static("x-workspace-id");
const INTERNAL_TOKEN_HEADER: HeaderName = HeaderName::from_static("x-internal-token");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How much of a strange answer an error repeats.
const SHOWN_CHARS: usize = 200;

/// What a client shows to be let in.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// Nothing.
    None,
    /// A token of the service.
    Bearer(Secret),
    /// The token that opens a worker's own API.
    Internal(Secret),
}

/// A client of the service's API. Cheap to clone.
#[derive(Clone, Debug)]
pub struct WorkspaceClient {
    connections: HttpClient,
    server: Arc<ServerUrl>,
    headers: HeaderMap,
}

impl WorkspaceClient {
    /// Makes a client with connections of its own. A token that cannot stand in a header, which none of
    /// the service's are, is not sent.
    pub fn new(server: ServerUrl, credentials: &Credentials) -> Self {
        Self::over(HttpClient::new(), server, credentials)
    }

    /// Makes a client over connections that others use, too.
    pub fn over(connections: HttpClient, server: ServerUrl, credentials: &Credentials) -> Self {
        let mut headers = HeaderMap::new();
        let excerpt = match credentials {
            Credentials::None => None,
            Credentials::Bearer(token) => {
                Some((AUTHORIZATION, secret_value(&format!("Bearer {}", token.expose()))))
            }
            Credentials::Internal(token) => {
                Some((INTERNAL_TOKEN_HEADER, secret_value(token.expose())))
            }
        };
        if let Some((name, Some(value))) = excerpt {
            headers.insert(name, value);
        }
        Self { connections, server: Arc::new(server), headers }
    }

    /// Returns a client whose requests are about this workspace, where the path does not name one.
    #[must_use]
    pub fn in_workspace(mut self, workspace: WorkspaceId) -> Self {
        if let Ok(value) = HeaderValue::from_str(&workspace.to_string()) {
            self.headers.insert(WORKSPACE_HEADER, value);
        }
        self
    }

    /// Returns a client whose next change can be sent again without being made twice. It is for one
    /// change; a key that cannot stand in a header is not sent.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(key) {
            self.headers.insert(IDEMPOTENCY_KEY, value);
        }
        self
    }

    /// Returns where the server is.
    pub fn server(&self) -> &ServerUrl {
        &self.server
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &impl Serialize,
    ) -> Result<T, ClientError> {
        let request = ApiRequest::new(Method::GET, path).query(query);
        self.json(request).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let request = ApiRequest::new(Method::POST, path).with(body);
        self.json(request).await
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn json<T: DeserializeOwned>(
        &self,
        request: ApiRequest<'_>,
    ) -> Result<T, ClientError> {
        let answer = self.send(request).await?;
        let bytes = self.bytes(answer, MAX_RESPONSE).await?;
        serde_json::from_slice(&bytes).map_err(|error| self.protocol(format!("{error}")))
    }

    /// Sends a request, and returns its answer if it is none of the refusals.
    pub(crate) async fn send(
        &self,
        request: ApiRequest<'_>,
    ) -> Result<Response<Incoming>, ClientError> {
        let within = request.within;
        let request = self.request(request)?;
        let unreachable = |source| self.unreachable(source);
        let answer = self.connections.send(request, within).await.map_err(unreachable)?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        if status.is_redirection() {
            let to = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let to = excerpt(to.unwrap_or("nowhere").as_bytes());
            return Err(self.protocol(format!("{status} to {to}; redirects are not followed")));
        }
        let after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let after = after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        let body = self.bytes(answer, MAX_ERROR_RESPONSE).await?;
        Err(refusal(status.as_u16(), after, &body)
            .unwrap_or_else(|| self.protocol(format!("{status} with {}", excerpt(&body)))))
    }

    /// Reads an answer to its end.
    pub(crate) async fn bytes(
        &self,
        answer: Response<Incoming>,
        limit: ByteSize,
    ) -> Result<Bytes, ClientError> {
        let mut body = answer.into_body();
        read_all(&mut body, limit, BODY_IDLE_TIMEOUT)
            .await
            .map_err(|source| self.unreachable(source))
    }

    fn request(&self, call: ApiRequest<'_>) -> Result<Request<Body>, ClientError> {
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

/// A request that is to be sent.
pub(crate) struct ApiRequest<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) header: Option<(HeaderName, HeaderValue)>,
    pub(crate) accept: &'static str,
    pub(crate) kind: Option<&'static str>,
    pub(crate) body: Body,
    /// How long the answer may take to begin.
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

    /// Adds a query. Its fields are texts, numbers or absent.
    pub(crate) fn query(self, query: &impl Serialize) -> Self {
        Self { query: query_pairs(query), ..self }
    }

    /// Adds a body of JSON.
    pub(crate) fn with(self, body: &impl Serialize) -> Self {
        let bytes = serde_json::to_vec(body).expect("a request is plain data");
        Self { kind: Some("application/json"), body: full_body(bytes), ..self }
    }
}

/// Returns the fields of a query as pairs, without those that are absent.
fn query_pairs(query: &impl Serialize) -> Vec<(String, String)> {
    let value = serde_json::to_value(query).expect("a query is plain data");
    let fields = value.as_object().into_iter().flatten();
    let pairs = fields.filter_map(|(name, value)| match value {
        Value::Null => None,
        Value::String(text) => Some((name.clone(), text.clone())),
        other => Some((name.clone(), other.to_string())),
    });
    pairs.collect()
}

/// Returns a header that logs do not show.
fn secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns the beginning of something strange, on one line.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let start: String = text.chars().take(SHOWN_CHARS).collect();
    format!("{start:?}")
}
