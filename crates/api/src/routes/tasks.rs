//! `/api/tasks`: submit, list, show, cancel and follow tasks.
//!
//! A submission is answered when the task is in the store; from then on it runs without the server.
//! Cancelling waits for a moment for the end of the task, since most commands end at once, and answers 202 if
//! the worker is still busy with it. An event stream starts after the cursor that the client names
//! (`Last-Event-ID`, or `last_event_id` for clients that cannot send headers); a cursor at the last event of
//! an ended task is answered with 204, which tells an `EventSource` not to reconnect.
//!
//! A task of a workspace that the token does not cover is "not found": its existence is not revealed.

mod routes;
mod task_reply;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use carrel_domain::{Network, TaskId, TaskStatus, TokenScope};
use carrel_service::{Cancelled, ServiceError, TaskSubmission};
use carrel_store::{Task, TaskFilter};
use carrel_wire::limits::{DEFAULT_PAGE, MAX_PAGE};
use carrel_wire::{CancelReply, TaskEventsQuery, TaskList, TaskQuery, TaskRequest, TicketReply};
use futures_util::StreamExt as _;

use crate::audit;
use crate::auth::Caller;
use crate::event_stream::{StreamLimits, event_stream};
use crate::extract::{Authenticated, Json, PathId, QueryParams, named_workspace};
use crate::idempotency;
use crate::limits::CANCEL_WAIT;
use crate::response::{ErrorResponse, RouteResult, ok};
use crate::state::Api;

pub(super) use self::routes::routes;
pub(super) use self::task_reply::accepted;
use self::task_reply::{detail, summary};

const LAST_EVENT_ID: &str = "last-event-id";

pub(super) async fn submit(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    Json(mut request, _): Json<TaskRequest>,
) -> RouteResult {
    let requested = named_workspace(request.workspace_id, &headers)?;
    let workspace = api.workspace(&caller, TokenScope::Exec, requested).await?;
    if let Some(key) = idempotency::key(&headers)? {
        request.idempotency_key.get_or_insert(key);
    }
    let submit = TaskSubmission::check(request, workspace.id, &api.inner.hosts)
        .map_err(ServiceError::from)?;
    check_network(&caller, submit.networks())?;
    let steps = submit.steps();
    let receipt = api.inner.tasks.submit(submit, "submit").await?;
    Ok(ok(&accepted(&receipt.task, steps)))
}

pub(super) fn check_network(
    caller: &Caller,
    networks: impl IntoIterator<Item = Network>,
) -> Result<(), ErrorResponse> {
    let any = networks.into_iter().any(|network| network != Network::None);
    if any { Ok(caller.check_scope(TokenScope::Net)?) } else { Ok(()) }
}

pub(super) async fn list(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    QueryParams(params): QueryParams<TaskQuery>,
) -> RouteResult {
    let limit = params.limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(ErrorResponse::field("limit", &format!("is a number from 1 to {MAX_PAGE}")));
    }
    let offset = params.offset.unwrap_or(0);
    if i64::try_from(offset).is_err() {
        return Err(ErrorResponse::field("offset", "is a number below 2^63"));
    }
    let requested = named_workspace(params.workspace_id, &headers)?;
    let workspace = api.workspace(&caller, TokenScope::Read, requested).await?;
    let filter = TaskFilter {
        workspace: workspace.id,
        status: params.status,
        task_type: params.task_type,
        limit,
        offset,
    };
    let page = api.inner.tasks.list(filter).await?;
    let tasks = page.tasks.iter().map(summary).collect();
    Ok(ok(&TaskList { tasks, total: page.total, limit, offset }))
}

/// Returns a task that the caller covers. One of another workspace is "not found": its existence is not
/// revealed.
async fn find(
    api: &Api,
    caller: &Caller,
    scope: TokenScope,
    id: TaskId,
) -> Result<Task, ErrorResponse> {
    let task = api.inner.tasks.find_any(id).await?;
    if !caller.coverage.covers(task.workspace) {
        return Err(ServiceError::NoTask { id }.into());
    }
    audit::record_workspace(task.workspace);
    caller.check(scope, task.workspace)?;
    api.check_rate_limit(task.workspace)?;
    Ok(task)
}

pub(super) async fn show(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(id): PathId<TaskId>,
) -> RouteResult {
    let task = find(&api, &caller, TokenScope::Read, id).await?;
    Ok(ok(&detail(task)?))
}

pub(super) async fn cancel(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(id): PathId<TaskId>,
) -> RouteResult {
    let task = find(&api, &caller, TokenScope::Exec, id).await?;
    if api.inner.tasks.cancel(id).await? == Cancelled::Done {
        let status = TaskStatus::Cancelled;
        return Ok(ok(&CancelReply { id, status, cancel_requested: None }));
    }
    let ended = async {
        let events = api.inner.tasks.follow(id, task.last_event);
        let mut events = std::pin::pin!(events);
        while events.next().await.is_some() {}
    };
    let ended_in_time = tokio::time::timeout(CANCEL_WAIT, ended).await.is_ok();
    let task = api.inner.tasks.find_any(id).await?;
    let status = if ended_in_time { StatusCode::OK } else { StatusCode::ACCEPTED };
    let cancel_requested = Some(task.cancel_requested);
    let body = CancelReply { id, status: task.status, cancel_requested };
    Ok(crate::response::json_response(status, &body))
}

pub(super) async fn events(
    State(api): State<Api>,
    PathId(id): PathId<TaskId>,
    QueryParams(params): QueryParams<TaskEventsQuery>,
    headers: HeaderMap,
    OptionalCaller(who): OptionalCaller,
) -> RouteResult {
    let (task, expires) = match (&params.ticket, who) {
        (Some(ticket), _) => {
            let workspace = api.inner.tickets.verify(ticket, id, api.now())?;
            (api.inner.tasks.find(workspace, id).await?, crate::auth::SESSION_LIFETIME)
        }
        (None, Ok(Authenticated(caller))) => {
            let task = find(&api, &caller, TokenScope::Read, id).await?;
            (task, api.credential_lifetime(&caller))
        }
        (None, Err(failed)) => return Err(failed),
    };
    let seen = headers.get(LAST_EVENT_ID).map(|value| value.to_str().ok()?.trim().parse().ok());
    let after = match seen {
        None => params.last_event_id.unwrap_or(0),
        Some(Some(number)) => number,
        Some(None) => {
            return Err(ErrorResponse::field("Last-Event-ID", "is the number of an event"));
        }
    };
    if task.status.is_terminal() && after >= task.last_event {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let permit = Box::new(api.stream(task.workspace)?);
    let limits = StreamLimits { stop: api.inner.stop.clone(), expires, permit };
    let events = api.inner.tasks.follow(id, after);
    Ok(event_stream(events, limits))
}

pub(super) async fn ticket(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(id): PathId<TaskId>,
) -> RouteResult {
    let task = find(&api, &caller, TokenScope::Read, id).await?;
    let ticket = api.inner.tickets.issue(id, task.workspace, api.now());
    Ok(ok(&TicketReply {
        ticket: ticket.expose().to_owned(),
        expires_in: crate::auth::TICKET_LIFETIME.as_secs(),
        url: format!("/api/tasks/{id}/events?ticket={}", ticket.expose()),
    }))
}

/// The caller, or the error of its credentials. A ticket can replace credentials, so that the handler
/// decides.
pub(super) struct OptionalCaller(Result<Authenticated, ErrorResponse>);

impl FromRequestParts<Api> for OptionalCaller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Self::Rejection> {
        Ok(Self(Authenticated::from_request_parts(parts, api).await))
    }
}
