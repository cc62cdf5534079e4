//! `/api/v1`: the API of a conductor.
//!
//! A path names an issue by its identifier. An issue that is called like a route (`state`, `events` …) is
//! reached as `/api/v1/issue` with the identifier in the query.

mod events;
mod routes;
mod runs;

use std::collections::HashMap;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::IntoResponse as _;
use carrel_conductor::snapshot::{IssueView, SessionLog, Snapshot};
use carrel_conductor::{IssueId, Mode, OperatorCommand};
use carrel_domain::{Code, Secret, TokenScope};
use carrel_store::RunFilter;
use carrel_tracker::ASANA_SECRET;
use carrel_wire::limits::MAX_ANSWER_CHARS;
use carrel_wire::{AnswerRequest, IssueQuery, RefreshReply};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{unknown, wrong_method};
use crate::auth::Caller;
use crate::conductor_api::{ConductorApi, WebhookCall, check, unavailable};
use crate::extract::{Authenticated, QueryParams, parse};
use crate::host_check::check_conductor_host;
use crate::limits::BODY_READ_TIMEOUT;
use crate::openapi::Route;
use crate::request_span::span_request;
use crate::response::{ErrorResponse, Result, RouteResult, json_response, ok};

/// The largest body; a tracker's webhook calls are the longest.
const MAX_BODY: usize = 1 << 20;

const MAX_RUNS: u32 = 20;

/// The path segment that refers to the issue in the query.
const BY_QUERY: &str = "issue";

pub(crate) fn router(api: ConductorApi) -> Router {
    let routes = routes::routes().into_iter().map(Route::into_handler);
    routes
        .fold(Router::new(), |router, (path, handler)| router.route(path, handler))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(api.clone(), check_conductor_host))
        .layer(from_fn(span_request))
        .with_state(api)
}

/// Returns the same routes for a server without a conductor, where each answers with an error.
pub(super) fn unavailable_routes() -> Vec<Route> {
    routes::routes().into_iter().map(|route| route.handled_by(no_conductor)).collect()
}

async fn no_conductor(who: Result<Authenticated>) -> ErrorResponse {
    match who {
        Ok(_) => unavailable("this server has none; start one with `carrel run --port`"),
        Err(failed) => failed,
    }
}

/// A request about the issue that its path or its query names. Its caller is verified, and not yet authorized.
struct IssueRequest {
    api: ConductorApi,
    caller: Caller,
    /// The parameters of the path.
    path: HashMap<String, String>,
    query: IssueQuery,
}

impl FromRequestParts<ConductorApi> for IssueRequest {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, api: &ConductorApi) -> Result<Self> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, api).await?;
        let path = Path::from_request_parts(parts, api).await;
        let Path(path) = path.map_err(|_| ErrorResponse::field("issue", "is text"))?;
        let QueryParams(query) = QueryParams::from_request_parts(parts, api).await?;
        Ok(Self { api: api.clone(), caller, path, query })
    }
}

impl IssueRequest {
    /// Returns the tracker's id, if the request has it, and the text to show.
    fn target(&self) -> (Option<&str>, &str) {
        let name = self.path.get("issue").map_or("", String::as_str);
        match &self.query {
            IssueQuery { id: Some(id), .. } if name == BY_QUERY => (Some(id), id),
            IssueQuery { identifier: Some(named), .. } if name == BY_QUERY => (None, named),
            IssueQuery { .. } => (None, name),
        }
    }

    /// Returns the issue if it is claimed.
    fn find(&self) -> Result<Option<IssueId>> {
        let state = self.api.state()?;
        Ok(match self.target() {
            (Some(id), _) => state.find_id(id),
            (None, name) => state.find(name),
        })
    }

    fn claimed(&self) -> Result<IssueId> {
        self.find()?.ok_or_else(|| self.unknown("does not wait for anything"))
    }

    fn unknown(&self, why: &str) -> ErrorResponse {
        let name: String = self.target().1.chars().take(200).collect();
        let message = format!("{name} is not claimed, and {why}");
        ErrorResponse::new(Code::IssueNotFound, message, json!({ "issue": name }))
    }
}

async fn state(
    State(api): State<ConductorApi>,
    Authenticated(caller): Authenticated,
) -> RouteResult {
    check(&caller, TokenScope::Read)?;
    Ok(ok(&Snapshot::of(&*api.state()?, api.now())))
}

async fn show(request: IssueRequest) -> RouteResult {
    let id = request.claimed()?;
    check(&request.caller, TokenScope::Read)?;
    let (issue, limit) = (Some(id.0.clone()), Some(MAX_RUNS));
    let filter = RunFilter { issue, limit, ..RunFilter::default() };
    let runs = request.api.options.handle.runs(filter).await?;
    issue_reply(&request.api, &id, runs.into_iter().map(runs::log).collect())
}

/// Polls the tracker now, for a caller with a token or for a signed webhook call.
async fn refresh(
    State(api): State<ConductorApi>,
    who: Result<Authenticated>,
    headers: HeaderMap,
    body: Body,
) -> RouteResult {
    let body = read(body).await?;
    match who {
        Ok(Authenticated(caller)) => check(&caller, TokenScope::Exec)?,
        Err(failed) if headers.contains_key(header::AUTHORIZATION) => return Err(failed),
        Err(_) => match api.verify_webhook(&headers, &body).await? {
            WebhookCall::Wake => {}
            WebhookCall::Handshake(secret) => return acknowledge_handshake(&secret),
        },
    }
    let requested_at = api.now();
    let coalesced = api.state()?.is_polling(requested_at);
    api.send(OperatorCommand::Refresh).await?;
    let operations = ["poll", "reconcile"].map(str::to_owned);
    let reply = RefreshReply { queued: true, coalesced, requested_at, operations };
    Ok(json_response(StatusCode::ACCEPTED, &reply))
}

fn acknowledge_handshake(secret: &Secret) -> RouteResult {
    let value = HeaderValue::from_str(secret.expose());
    let mut value = value.map_err(|_| ErrorResponse::field(ASANA_SECRET, "is text"))?;
    value.set_sensitive(true);
    Ok((StatusCode::NO_CONTENT, [(ASANA_SECRET, value)]).into_response())
}

async fn read(body: Body) -> Result<Bytes> {
    match tokio::time::timeout(BODY_READ_TIMEOUT, axum::body::to_bytes(body, MAX_BODY)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let message = format!("the body is larger than {MAX_BODY} bytes");
            Err(ErrorResponse::new(Code::TooLarge, message, json!({ "limit_bytes": MAX_BODY })))
        }
        Err(_) => Err(ErrorResponse::body_timeout()),
    }
}

#[derive(Serialize, JsonSchema)]
struct ModeReply {
    /// The dispatch mode.
    mode: Mode,
    /// Agents that are running.
    agents: usize,
}

/// Sends a command about dispatching, and returns the mode that follows.
async fn change(
    State(api): State<ConductorApi>,
    Authenticated(caller): Authenticated,
    command: OperatorCommand,
) -> RouteResult {
    check(&caller, TokenScope::Exec)?;
    api.send(command).await?;
    let state = api.state()?;
    Ok(ok(&ModeReply { mode: state.ledger.mode, agents: state.agents() }))
}

/// Sends a command about an issue, and returns the state that follows.
async fn order(request: IssueRequest, command: fn(IssueId) -> OperatorCommand) -> RouteResult {
    let id = request.claimed()?;
    check(&request.caller, TokenScope::Exec)?;
    request.api.send(command(id.clone())).await?;
    issue_reply(&request.api, &id, Vec::new())
}

fn issue_reply(api: &ConductorApi, id: &IssueId, runs: Vec<SessionLog>) -> RouteResult {
    let view = IssueView::of(&*api.state()?, id, api.now(), runs);
    let released =
        || ErrorResponse::plain(Code::IssueNotFound, format!("{id} is not claimed any more"));
    Ok(ok(&view.ok_or_else(released)?))
}

async fn answer(request: IssueRequest, body: Body) -> RouteResult {
    let id = request.claimed()?;
    check(&request.caller, TokenScope::Exec)?;
    let AnswerRequest { answer } = parse(&read(body).await?)?;
    if !(1..=MAX_ANSWER_CHARS).contains(&answer.chars().count()) {
        let rule = format!("has 1 to {MAX_ANSWER_CHARS} characters");
        return Err(ErrorResponse::field("answer", rule));
    }
    request.api.send(OperatorCommand::Answer(id.clone(), answer)).await?;
    issue_reply(&request.api, &id, Vec::new())
}
