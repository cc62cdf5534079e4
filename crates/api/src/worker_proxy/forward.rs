//! RequestCounts that need a directory which lies elsewhere, passed on to a worker there.
//!
//! The worker serves the same routes. It believes this server, which has the internal token, about who
//! asks, and checks the rest itself. A client that goes away ends the request there, too.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
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
use crate::response::ErrorResponse;
use crate::state::Api;
use crate::worker_proxy::{Location, RemoteVolume, WorkerProxy};

/// Where the routes of one workspace begin, here and at a worker.
const PUBLIC: &str = "/api/workspaces/";
const INTERNAL: &str = "/workspaces/";

/// The endpoint of MCP, at a worker as well.
pub(crate) const MCP: &str = "/mcp";

/// The header that tells a worker who asks.
pub(crate) const CALLER_HEADER: &str = "x-carrel-caller";

/// How long a worker may take to begin its answer. A command takes at most half of that.
const PATIENCE: Duration = Duration::from_mins(10);

/// What the headers of MCP begin with, and proxy that it reads.
const OF_MCP: (&str, [&str; 4]) = ("mcp-", ["accept", "host", "last-event-id", "origin"]);

/// Headers of an answer that concern the connection it came over.
const OF_A_CONNECTION: [&str; 5] =
    ["connection", "keep-alive", "transfer-encoding", "trailer", "upgrade"];

/// Tells whether a route, given as the part behind the workspace's id, works with its directory.
pub(crate) fn needs_directory(rest: &str) -> bool {
    rest == "/exec"
        || rest == "/git"
        || rest == "/usage"
        || rest.starts_with("/tools/")
        || rest == "/files"
        || rest.starts_with("/files/")
}

/// Returns the path at a worker for a route that it serves.
pub(crate) fn internal_path(path: &str) -> Option<String> {
    let rest = path.strip_prefix(PUBLIC)?.strip_prefix("{workspace_id}")?;
    (rest.is_empty() || needs_directory(rest)).then(|| format!("{INTERNAL}{{workspace_id}}{rest}"))
}

/// Passes a request on if the directory that it needs lies elsewhere.
pub(crate) async fn forward(State(api): State<Api>, request: Request, next: Next) -> Response {
    let Some(proxy) = &api.inner.worker_proxy else { return next.run(request).await };
    let named = workspace_of(request.method(), request.uri());
    if named.is_none() && request.uri().path() != MCP {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    // Whoever is not believed is refused by the route.
    let Ok(Authenticated(caller)) = Authenticated::from_request_parts(&mut parts, &api).await
    else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    // What is said over MCP is about any workspace; only a token for one says which.
    let Some(workspace) = named.or_else(|| caller.workspace(None).ok()) else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    match locate(&api, proxy, &caller, &parts, workspace).await {
        Ok(Location::Local) => next.run(Request::from_parts(parts, body)).await,
        Ok(Location::Remote(mut far)) => {
            if named.is_none() {
                far.servers.sort_by_key(ToString::to_string);
            }
            let passed = pass_on(&api, &caller, &far, parts, body).await;
            passed.unwrap_or_else(ErrorResponse::into_response)
        }
        Err(failed) => failed.into_response(),
    }
}

/// Returns the workspace whose directory a request needs.
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
) -> Result<Location, ErrorResponse> {
    let workspace = api.find_or_provision(caller, Some(id)).await?;
    let looks = parts.method == Method::DELETE || parts.uri.path().ends_with("/usage");
    if workspace.volume.is_none() && looks {
        // There is nothing to see or to remove yet.
        return Ok(Location::Local);
    }
    let location = proxy.locate(&workspace).await?;
    if matches!(location, Location::Remote(_)) {
        audit::record_workspace(id);
        api.check_rate_limit(id)?;
    }
    Ok(location)
}

/// Authenticated asks, as one server tells another.
#[derive(Deserialize, Serialize)]
struct Told {
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    scopes: String,
    /// Only these workspaces; all if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    only: Option<Vec<WorkspaceId>>,
    expires_at: carrel_domain::Timestamp,
}

/// Returns what a worker is told of a caller.
fn told(caller: &Caller) -> Option<HeaderValue> {
    let only = match &caller.coverage {
        Coverage::All => None,
        Coverage::Only(covered) => Some(covered.iter().copied().collect()),
    };
    let told = Told {
        subject: caller.subject.clone(),
        scopes: caller.scopes.iter().map(TokenScope::as_str).collect::<Vec<_>>().join(","),
        only,
        expires_at: caller.expires_at,
    };
    let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&told).ok()?);
    HeaderValue::from_str(&text).ok()
}

/// Reads what another server tells of a caller.
pub(crate) fn decode_caller(value: &HeaderValue) -> Option<Caller> {
    let bytes = URL_SAFE_NO_PAD.decode(value.as_bytes()).ok()?;
    let told: Told = serde_json::from_slice(&bytes).ok()?;
    let scopes =
        if told.scopes.is_empty() { TokenScopes::NONE } else { told.scopes.parse().ok()? };
    Some(Caller {
        subject: told.subject,
        coverage: told
            .only
            .map_or(Coverage::All, |only| Coverage::Only(only.into_iter().collect())),
        scopes,
        expires_at: told.expires_at,
    })
}

/// Asks the first of these workers that can be reached.
async fn pass_on(
    api: &Api,
    caller: &Caller,
    far: &RemoteVolume,
    parts: Parts,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let proxy = proxy_of(api)?;
    let headers = headers(proxy, caller, &parts.headers)?;
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let path = path
        .strip_prefix(PUBLIC)
        .map_or_else(|| path.to_owned(), |rest| format!("{INTERNAL}{rest}"));
    let streams = parts.method == Method::PUT;
    let (mut stream, whole) =
        if streams { (Some(body), Bytes::new()) } else { (None, read_body(body, api).await?) };
    let (mut refused, mut asked_again) = (None, false);
    let mut waiting: VecDeque<_> = far.servers.iter().cloned().collect();
    loop {
        let Some(server) = waiting.pop_front() else {
            if asked_again || streams {
                break;
            }
            asked_again = true;
            waiting.extend(proxy.newer(far).await);
            continue;
        };
        let body = match stream.take() {
            Some(body) => body.map_err(Into::into).boxed_unsync(),
            // What was sent once is gone.
            None if streams => break,
            None => carrel_client::full_body(whole.clone()),
        };
        match send(proxy, &server, &parts.method, &path, &headers, body).await {
            Ok(response) => return Ok(response),
            Err(error) if error.is_unsent() => {
                proxy.doubt(&server);
                refused = Some(unreachable(&server, &error));
            }
            Err(error) => return Err(unreachable(&server, &error)),
        }
    }
    let nobody =
        || ErrorResponse::new(Code::WorkerUnreachable, "no worker could be asked", json!({}));
    Err(refused.unwrap_or_else(nobody))
}

fn proxy_of(api: &Api) -> Result<&WorkerProxy, ErrorResponse> {
    let nobody =
        || ErrorResponse::new(Code::WorkerUnreachable, "this server knows no workers", json!({}));
    api.inner.worker_proxy.as_deref().ok_or_else(nobody)
}

fn unreachable(server: &ServerUrl, error: &SendError) -> ErrorResponse {
    let message = format!("the worker at {server} does not answer: {}", message_of(error));
    ErrorResponse::new(Code::WorkerUnreachable, message, json!({ "worker": server.to_string() }))
}

/// Returns the headers for a worker: what it needs of the client's, and who asks.
fn headers(
    proxy: &WorkerProxy,
    caller: &Caller,
    given: &HeaderMap,
) -> Result<HeaderMap, ErrorResponse> {
    let of_mcp = |name: &str| name.starts_with(OF_MCP.0) || OF_MCP.1.contains(&name);
    let own = [CONTENT_TYPE.as_str(), CONTENT_LENGTH.as_str(), KEY_HEADER];
    let passes = |name: &HeaderName| own.contains(&name.as_str()) || of_mcp(name.as_str());
    let mut headers: HeaderMap = given
        .iter()
        .filter(|(name, _)| passes(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let token = proxy.token().and_then(|token| HeaderValue::from_str(token.expose()).ok());
    let (Some(mut token), Some(told)) = (token, told(caller)) else {
        let message = "the workspace lies on another volume, and WORKER_INTERNAL_TOKEN is not set here, so \
                       that no worker can be asked";
        return Err(ErrorResponse::new(Code::WorkerUnreachable, message, json!({})));
    };
    token.set_sensitive(true);
    headers.insert(HeaderName::from_static(INTERNAL_TOKEN_HEADER), token);
    headers.insert(HeaderName::from_static(CALLER_HEADER), told);
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
    let answer = proxy.connections().send(request, PATIENCE).await?;
    let (mut parts, body) = answer.into_parts();
    for name in OF_A_CONNECTION {
        parts.headers.remove(name);
    }
    Ok(Response::from_parts(parts, Body::new(body)))
}

/// Asks a worker for something about a workspace that lies there.
pub(crate) async fn ask(
    api: &Api,
    caller: &Caller,
    far: &RemoteVolume,
    path: &str,
) -> Result<serde_json::Value, ErrorResponse> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = format!("{PUBLIC}{path}").parse().map_err(|_| {
        ErrorResponse::new(Code::Internal, "the server could not do this", json!({}))
    })?;
    let (parts, body) = request.into_parts();
    let answer = pass_on(api, caller, far, parts, body).await?;
    let status = answer.status();
    let bytes = read_body(answer.into_body(), api).await?;
    let value = serde_json::from_slice(&bytes).unwrap_or_default();
    if status.is_success() { Ok(value) } else { Err(ErrorResponse::passed_on(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_domain::Timestamp;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_worker_hears_who_asks() {
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
            assert_eq!(decode_caller(&told(&caller).unwrap()), Some(caller));
        }
        for text in ["", "e30", "x", "eyJzY29wZXMiOiJvZGQifQ"] {
            assert_eq!(decode_caller(&HeaderValue::from_str(text).unwrap()), None, "{text}");
        }
    }

    #[test]
    fn only_what_needs_the_directory_is_passed_on() {
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
    fn a_worker_serves_what_is_passed_on() {
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
