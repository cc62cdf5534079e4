//! Forwarding of requests to the worker that has the directory.
//!
//! The middleware [`forward`] verifies the caller, locates the workspace, and either lets the local handler
//! run or sends the request to a worker. The worker serves the same routes under another prefix. It trusts
//! this server, which has the internal token, about the identity of the caller ([`CALLER_HEADER`]), and
//! checks scopes itself.
//!
//! A worker that refuses the connection has not seen the request, so that the next one is tried; after any
//! other failure the request may have been executed, and the client gets the error. JSON bodies are buffered
//! and can be sent again. Uploads are streamed, and are tried once. A client that disconnects drops the
//! forwarded request, and the worker ends its command.
//!
//! Requests to `/mcp` name the workspace in each message. They are forwarded only for a token that covers
//! exactly one, always to the same worker, since its sessions are in memory.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, IF_NONE_MATCH, IF_RANGE, RANGE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use carrel_client::{SendError, ServerUrl};
use carrel_domain::{Code, TokenScope, TokenScopes, WorkspaceId, message_of};
use http_body_util::BodyExt as _;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::audit;
use crate::auth::{Caller, Coverage, INTERNAL_TOKEN_HEADER};
use crate::extract::{Authenticated, read_body};
use crate::idempotency::KEY_HEADER;
use crate::request_span::TRACE_PARENT;
use crate::response::{ErrorResponse, Result};
use crate::state::Api;
use crate::worker_proxy::{Location, RemoteVolume, WorkerProxy};

/// The prefix of a workspace's routes, here and at a worker.
const PUBLIC: &str = "/api/workspaces/";
const INTERNAL: &str = "/workspaces/";

pub(crate) const MCP: &str = "/mcp";

/// The header with the verified caller, base64url-encoded JSON.
pub(crate) const CALLER_HEADER: &str = "x-carrel-caller";

/// Time until a worker's response begins. Commands take at most half of it.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(10);

/// The client's headers that the routes read.
static OWN_HEADERS: [HeaderName; 6] = [
    CONTENT_TYPE,
    CONTENT_LENGTH,
    RANGE,
    IF_RANGE,
    IF_NONE_MATCH,
    HeaderName::from_static(KEY_HEADER),
];

/// The prefix of MCP's headers, and other headers that it reads.
const MCP_HEADER_PREFIX: &str = "mcp-";
const MCP_HEADERS: [&str; 4] = ["accept", "host", "last-event-id", "origin"];

/// Hop-by-hop headers (RFC 9110, 7.6.1), which are not forwarded.
const HOP_BY_HOP_HEADERS: [&str; 5] =
    ["connection", "keep-alive", "transfer-encoding", "trailer", "upgrade"];

/// Returns `true` for routes that need the directory. `rest` is the path after the workspace's id.
pub(crate) fn needs_directory(rest: &str) -> bool {
    let below = |prefix| rest.starts_with(prefix);
    matches!(rest, "/exec" | "/git" | "/usage" | "/files" | "/snapshots" | "/tries")
        || ["/tools/", "/files/", "/snapshots/", "/tries/"].into_iter().any(below)
}

/// Returns the path of a route at a worker, if a worker serves it.
pub(crate) fn internal_path(path: &str) -> Option<String> {
    let rest = path.strip_prefix(PUBLIC)?.strip_prefix("{workspace_id}")?;
    (rest.is_empty() || needs_directory(rest)).then(|| format!("{INTERNAL}{{workspace_id}}{rest}"))
}

/// Middleware that forwards a request if the directory it needs is on another volume.
pub(crate) async fn forward(State(api): State<Api>, request: Request, next: Next) -> Response {
    let Some(proxy) = &api.options.worker_proxy else { return next.run(request).await };
    let named = workspace_of(request.method(), request.uri());
    if named.is_none() && request.uri().path() != MCP {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    // Without a valid token the local handler answers, with the usual error.
    let Ok(Authenticated(caller)) = Authenticated::from_request_parts(&mut parts, &api).await
    else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    // MCP messages may concern any workspace; only a token for a single one says which.
    let Some(workspace) = named.or_else(|| caller.workspace(None).ok()) else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    match locate(&api, proxy, &caller, &parts, workspace).await {
        Ok(Location::Local) => next.run(Request::from_parts(parts, body)).await,
        Ok(Location::Remote(mut remote)) => {
            if named.is_none() {
                remote.servers.sort_by_key(ToString::to_string);
            }
            let sent = send_to_worker(&api, &caller, &remote, parts, body).await;
            sent.unwrap_or_else(ErrorResponse::into_response)
        }
        Err(failed) => failed.into_response(),
    }
}

fn workspace_of(method: &Method, uri: &Uri) -> Option<WorkspaceId> {
    let rest = uri.path().strip_prefix(PUBLIC)?;
    let (id, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let removes = rest.is_empty() && *method == Method::DELETE;
    if removes || needs_directory(rest) { id.parse().ok() } else { None }
}

async fn locate(
    api: &Api,
    proxy: &WorkerProxy,
    caller: &Caller,
    parts: &Parts,
    id: WorkspaceId,
) -> Result<Location> {
    let workspace = api.find_or_provision(caller, Some(id)).await?;
    let needs_no_directory = parts.method == Method::DELETE || parts.uri.path().ends_with("/usage");
    if workspace.volume.is_none() && needs_no_directory {
        // A workspace without a volume has nothing to measure or to remove.
        return Ok(Location::Local);
    }
    let location = proxy.locate(&workspace).await?;
    if matches!(location, Location::Remote(_)) {
        audit::record_workspace(id);
        api.check_rate_limit(id)?;
    }
    Ok(location)
}

#[derive(Deserialize, Serialize)]
struct ForwardedCaller {
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    scopes: String,
    /// The covered workspaces; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    only: Option<Vec<WorkspaceId>>,
    expires_at: carrel_domain::Timestamp,
}

fn encode_caller(caller: &Caller) -> Option<HeaderValue> {
    let only = match &caller.coverage {
        Coverage::All => None,
        Coverage::Only(covered) => Some(covered.iter().copied().collect()),
    };
    let forwarded = ForwardedCaller {
        subject: caller.subject.clone(),
        scopes: caller.scopes.iter().map(TokenScope::as_str).collect::<Vec<_>>().join(","),
        only,
        expires_at: caller.expires_at,
    };
    let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&forwarded).ok()?);
    HeaderValue::from_str(&text).ok()
}

pub(crate) fn decode_caller(value: &HeaderValue) -> Option<Caller> {
    let bytes = URL_SAFE_NO_PAD.decode(value.as_bytes()).ok()?;
    let forwarded: ForwardedCaller = serde_json::from_slice(&bytes).ok()?;
    let scopes = if forwarded.scopes.is_empty() {
        TokenScopes::NONE
    } else {
        forwarded.scopes.parse().ok()?
    };
    Some(Caller {
        subject: forwarded.subject,
        coverage: forwarded
            .only
            .map_or(Coverage::All, |only| Coverage::Only(only.into_iter().collect())),
        scopes,
        expires_at: forwarded.expires_at,
    })
}

/// Sends a request to the first worker that can be reached.
async fn send_to_worker(
    api: &Api,
    caller: &Caller,
    remote: &RemoteVolume,
    parts: Parts,
    body: Body,
) -> Result<Response> {
    let proxy = proxy_of(api)?;
    let headers = headers(proxy, caller, &parts.headers)?;
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let path = path
        .strip_prefix(PUBLIC)
        .map_or_else(|| path.to_owned(), |rest| format!("{INTERNAL}{rest}"));
    let streams = parts.method == Method::PUT;
    let (mut stream, whole) =
        if streams { (Some(body), Bytes::new()) } else { (None, read_body(body, api).await?) };
    let mut failure = ErrorResponse::plain(Code::WorkerUnreachable, "no worker could be reached");
    let mut refreshed = false;
    let mut candidates: VecDeque<_> = remote.servers.iter().cloned().collect();
    loop {
        let Some(server) = candidates.pop_front() else {
            if refreshed || streams {
                return Err(failure);
            }
            refreshed = true;
            candidates.extend(proxy.started_since(remote).await);
            continue;
        };
        let body = match stream.take() {
            Some(body) => body.map_err(Into::into).boxed_unsync(),
            // A streamed body cannot be sent again.
            None if streams => return Err(failure),
            None => carrel_client::full_body(whole.clone()),
        };
        match send(proxy, &server, &parts.method, &path, &headers, body).await {
            Ok(response) => return Ok(response),
            Err(error) if error.is_unsent() => {
                proxy.mark_unreachable(&server);
                failure = unreachable(&server, &error);
            }
            Err(error) => return Err(unreachable(&server, &error)),
        }
    }
}

fn proxy_of(api: &Api) -> Result<&WorkerProxy> {
    let message = "this server knows no workers";
    let unavailable = || ErrorResponse::plain(Code::WorkerUnreachable, message);
    api.options.worker_proxy.as_deref().ok_or_else(unavailable)
}

fn unreachable(server: &ServerUrl, error: &SendError) -> ErrorResponse {
    let message = format!("the worker at {server} does not answer: {}", message_of(error));
    ErrorResponse::new(Code::WorkerUnreachable, message, json!({ "worker": server.to_string() }))
}

/// Returns the headers for a worker: selected ones of the client, the internal token, the caller and the
/// trace context.
fn headers(proxy: &WorkerProxy, caller: &Caller, given: &HeaderMap) -> Result<HeaderMap> {
    let of_mcp = |name: &str| name.starts_with(MCP_HEADER_PREFIX) || MCP_HEADERS.contains(&name);
    let passes = |name: &HeaderName| OWN_HEADERS.contains(name) || of_mcp(name.as_str());
    let mut headers: HeaderMap = given
        .iter()
        .filter(|(name, _)| passes(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let token = proxy.token().and_then(|token| HeaderValue::from_str(token.expose()).ok());
    let (Some(mut token), Some(forwarded)) = (token, encode_caller(caller)) else {
        let message = "the workspace lies on another volume, and WORKER_INTERNAL_TOKEN is not set here, so \
                       that no worker can be reached";
        return Err(ErrorResponse::plain(Code::WorkerUnreachable, message));
    };
    token.set_sensitive(true);
    headers.insert(HeaderName::from_static(INTERNAL_TOKEN_HEADER), token);
    headers.insert(HeaderName::from_static(CALLER_HEADER), forwarded);
    let here = carrel_traces::current_context()
        .and_then(|here| HeaderValue::from_str(&here.to_string()).ok());
    headers.extend(here.map(|here| (HeaderName::from_static(TRACE_PARENT), here)));
    Ok(headers)
}

async fn send(
    proxy: &WorkerProxy,
    server: &ServerUrl,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    body: carrel_client::Body,
) -> Result<Response, SendError> {
    let uri: Uri = format!("{server}{path}").parse().map_err(|_| SendError::UnsupportedScheme)?;
    let mut request = Request::new(body);
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = headers.clone();
    let response = proxy.connections().send(request, RESPONSE_TIMEOUT).await?;
    let (mut parts, body) = response.into_parts();
    for name in HOP_BY_HOP_HEADERS {
        parts.headers.remove(name);
    }
    Ok(Response::from_parts(parts, Body::new(body)))
}

/// Sends a `GET` about a workspace to its worker, and returns the JSON of the reply.
pub(crate) async fn get_from_worker(
    api: &Api,
    caller: &Caller,
    remote: &RemoteVolume,
    path: &str,
) -> Result<serde_json::Value> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() =
        format!("{PUBLIC}{path}").parse().map_err(|_| ErrorResponse::internal())?;
    let (parts, body) = request.into_parts();
    let response = send_to_worker(api, caller, remote, parts, body).await?;
    let status = response.status();
    let bytes = read_body(response.into_body(), api).await?;
    let value = serde_json::from_slice(&bytes).unwrap_or_default();
    if status.is_success() { Ok(value) } else { Err(ErrorResponse::passed_on(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_domain::Timestamp;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_forwarded_caller_arrives_unchanged() {
        for (coverage, scopes) in [
            (Coverage::All, TokenScopes::ALL),
            (
                Coverage::one(WorkspaceId::generate()),
                TokenScopes::of(&[TokenScope::Read, TokenScope::Exec]),
            ),
            (Coverage::Only([].into()), TokenScopes::NONE),
        ] {
            let subject = Some("Zoë \"x\"\r\n".to_owned());
            let caller =
                Caller { subject, coverage, scopes, expires_at: Timestamp::from_millis(7) };
            assert_eq!(decode_caller(&encode_caller(&caller).unwrap()), Some(caller));
        }
        for text in ["", "e30", "x", "eyJzY29wZXMiOiJvZGQifQ"] {
            assert_eq!(decode_caller(&HeaderValue::from_str(text).unwrap()), None, "{text}");
        }
    }

    #[test]
    fn only_requests_that_need_the_directory_are_forwarded() {
        let id = "0198c0de-7a11-7000-8000-000000000001";
        let table = [
            (Method::GET, "/files?path=a", true),
            (Method::PUT, "/files/raw?path=a", true),
            (Method::POST, "/exec", true),
            (Method::POST, "/git", true),
            (Method::POST, "/tools/Read", true),
            (Method::GET, "/usage", true),
            (Method::DELETE, "", true),
            (Method::GET, "", false),
            (Method::POST, "/github/clone", false),
            (Method::PUT, "/credentials/x", false),
            (Method::GET, "/filesystem", false),
        ];
        for (method, rest, expected) in table {
            let uri = format!("/api/workspaces/{id}{rest}").parse().unwrap();
            assert_eq!(workspace_of(&method, &uri).is_some(), expected, "{method} {rest}");
        }
        let strange = "/api/workspaces/x/files".parse().unwrap();
        assert_eq!(workspace_of(&Method::GET, &strange), None);
    }

    #[test]
    fn a_worker_serves_what_is_forwarded() {
        let path = |path| internal_path(path);
        let files = "/api/workspaces/{workspace_id}/files/content";
        assert_eq!(path(files).as_deref(), Some("/workspaces/{workspace_id}/files/content"));
        let one = "/api/workspaces/{workspace_id}";
        assert_eq!(path(one).as_deref(), Some("/workspaces/{workspace_id}"));
        for other in
            ["/api/workspaces", "/api/tasks", "/api/workspaces/{workspace_id}/github/clone"]
        {
            assert_eq!(path(other), None, "{other}");
        }
    }
}
