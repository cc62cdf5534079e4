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
use axum::middleware::from_fn;
use axum::response::IntoResponse as _;
use carrel_conductor::snapshot::{IssueView, Snapshot};
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
use crate::conductor_api::{ConductorApi, WebhookCall, check, unavailable};
use crate::extract::{Authenticated, QueryParams, parse};
use crate::limits::BODY_READ_TIMEOUT;
use crate::openapi::Route;
use crate::request_span::span_request;
use crate::response::{ErrorResponse, RouteResult, json_response, ok};

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
        .layer(from_fn(span_request))
        .with_state(api)
}

/// Returns the same routes for a server without a conductor, where each answers with an error.
pub(super) fn unavailable_routes() -> Vec<Route> {
    routes::routes().into_iter().map(|route| route.handled_by(no_conductor)).collect()
}

async fn no_conductor(who: Result<Authenticated, ErrorResponse>) -> ErrorResponse {
    match who {
        Ok(_) => unavailable("this server has none; start one with `carrel run --port`"),
        Err(failed) => failed,
    }
}

struct IssueReference {
    name: String,
    which: IssueQuery,
}

impl IssueReference {
    async fn of(parts: &mut Parts, api: &ConductorApi) -> Result<Self, ErrorResponse> {
        let Authenticated(_) = Authenticated::from_request_parts(parts, api).await?;
        let Path(mut pieces) = Path::<HashMap<String, String>>::from_request_parts(parts, api)
            .await
            .map_err(|_| ErrorResponse::field("issue", "is text"))?;
        let QueryParams(which) = QueryParams::<IssueQuery>::from_request_parts(parts, api).await?;
        Ok(Self { name: pieces.remove("issue").unwrap_or_default(), which })
    }

    /// Returns the tracker's id, if the request has it, and the text to show.
    fn target(&self) -> (Option<&str>, &str) {
        match &self.which {
            IssueQuery { id: Some(id), .. } if self.name == BY_QUERY => (Some(id), id),
            IssueQuery { identifier: Some(identifier), .. } if self.name == BY_QUERY => {
                (None, identifier)
            }
            IssueQuery { .. } => (None, &self.name),
        }
    }

    fn find(&self, state: &carrel_conductor::State) -> Option<IssueId> {
        match self.target() {
            (Some(id), _) => state.find_id(id),
            (None, name) => state.find(name),
        }
    }

    fn unknown(&self, why: &str) -> ErrorResponse {
        let name: String = self.target().1.chars().take(200).collect();
        let message = format!("{name} is not claimed, and {why}");
        ErrorResponse::new(Code::IssueNotFound, message, json!({ "issue": name }))
    }
}

struct IssueParam(IssueId);

impl FromRequestParts<ConductorApi> for IssueParam {
    type Rejection = ErrorResponse;

    async fn from_request_parts(
        parts: &mut Parts,
        api: &ConductorApi,
    ) -> Result<Self, ErrorResponse> {
        let reference = IssueReference::of(parts, api).await?;
        let claimed = reference.find(&*api.state()?);
        claimed.map(Self).ok_or_else(|| reference.unknown("does not wait for anything"))
    }
}

async fn state(
    State(api): State<ConductorApi>,
    Authenticated(caller): Authenticated,
) -> RouteResult {
    check(&caller, TokenScope::Read)?;
    Ok(ok(&Snapshot::of(&*api.state()?, api.now())))
}

async fn show(
    State(api): State<ConductorApi>,
    Authenticated(caller): Authenticated,
    IssueParam(id): IssueParam,
) -> RouteResult {
    check(&caller, TokenScope::Read)?;
    let filter =
        RunFilter { issue: Some(id.0.clone()), limit: Some(MAX_RUNS), ..RunFilter::default() };
    let runs = api.handle().runs(filter).await?;
    let view =
        IssueView::of(&*api.state()?, &id, api.now(), runs.into_iter().map(runs::log).collect());
    let view = view.ok_or_else(|| {
        ErrorResponse::new(Code::IssueNotFound, format!("{id} is not claimed any more"), json!({}))
    })?;
    Ok(ok(&view))
}

/// Polls the tracker now, for a caller with a token or for a signed webhook call.
async fn refresh(
    State(api): State<ConductorApi>,
    who: Result<Authenticated, ErrorResponse>,
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

async fn read(body: Body) -> Result<Bytes, ErrorResponse> {
    match tokio::time::timeout(BODY_READ_TIMEOUT, axum::body::to_bytes(body, MAX_BODY)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let message = format!("the body is larger than {MAX_BODY} bytes");
            Err(ErrorResponse::new(Code::TooLarge, message, json!({ "limit_bytes": MAX_BODY })))
        }
        Err(_) => {
            Err(ErrorResponse::new(Code::Timeout, "the body did not arrive in time", json!({})))
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct ModeReply {
    /// The dispatch mode.
    mode: Mode,
    /// Agents that are running.
    agents: usize,
}

async fn change(
    api: &ConductorApi,
    Authenticated(caller): &Authenticated,
    order: OperatorCommand,
) -> RouteResult {
    check(caller, TokenScope::Exec)?;
    api.send(order).await?;
    let state = api.state()?;
    Ok(ok(&ModeReply { mode: state.ledger.mode, agents: state.agents() }))
}

async fn pause(State(api): State<ConductorApi>, who: Authenticated) -> RouteResult {
    change(&api, &who, OperatorCommand::Pause).await
}

async fn drain(State(api): State<ConductorApi>, who: Authenticated) -> RouteResult {
    change(&api, &who, OperatorCommand::Drain).await
}

async fn resume(State(api): State<ConductorApi>, who: Authenticated) -> RouteResult {
    change(&api, &who, OperatorCommand::Resume).await
}

async fn order(
    api: &ConductorApi,
    Authenticated(caller): &Authenticated,
    id: &IssueId,
    order: fn(IssueId) -> OperatorCommand,
) -> RouteResult {
    check(caller, TokenScope::Exec)?;
    api.send(order(id.clone())).await?;
    issue_reply(api, id)
}

fn issue_reply(api: &ConductorApi, id: &IssueId) -> RouteResult {
    let view = IssueView::of(&*api.state()?, id, api.now(), Vec::new());
    let released = || {
        ErrorResponse::new(Code::IssueNotFound, format!("{id} is not claimed any more"), json!({}))
    };
    Ok(ok(&view.ok_or_else(released)?))
}

async fn cancel(
    State(api): State<ConductorApi>,
    who: Authenticated,
    IssueParam(id): IssueParam,
) -> RouteResult {
    order(&api, &who, &id, OperatorCommand::Cancel).await
}

async fn retry(
    State(api): State<ConductorApi>,
    who: Authenticated,
    IssueParam(id): IssueParam,
) -> RouteResult {
    order(&api, &who, &id, OperatorCommand::RetryNow).await
}

async fn unblock(
    State(api): State<ConductorApi>,
    who: Authenticated,
    IssueParam(id): IssueParam,
) -> RouteResult {
    order(&api, &who, &id, OperatorCommand::Unblock).await
}

async fn answer(
    State(api): State<ConductorApi>,
    Authenticated(caller): Authenticated,
    IssueParam(id): IssueParam,
    body: Body,
) -> RouteResult {
    check(&caller, TokenScope::Exec)?;
    let AnswerRequest { answer } = parse(&read(body).await?)?;
    if answer.is_empty() || answer.chars().count() > MAX_ANSWER_CHARS {
        let rule = format!("has 1 to {MAX_ANSWER_CHARS} characters");
        return Err(ErrorResponse::field("answer", &rule));
    }
    api.send(OperatorCommand::Answer(id.clone(), answer)).await?;
    issue_reply(&api, &id)
}
