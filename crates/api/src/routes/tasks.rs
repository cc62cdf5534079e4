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

use axum::extract::State;
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
use crate::extract::{
    Authenticated, Json, PathId, QueryParams, last_event, named_workspace, page_size,
};
use crate::idempotency;
use crate::limits::CANCEL_WAIT;
use crate::response::{ErrorResponse, Result, RouteResult, ok};
use crate::state::Api;

pub(super) use self::routes::routes;
pub(super) use self::task_reply::accepted;
use self::task_reply::{detail, summary};

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
    let submit = TaskSubmission::check(request, workspace.id, &api.options.hosts)
        .map_err(ServiceError::from)?;
    check_network(&caller, submit.networks())?;
    let submit = submit.capped(caller.network_cap());
    let steps = submit.steps();
    let receipt = api.options.tasks.submit(submit, "submit").await?;
    Ok(ok(&accepted(&receipt.task, steps)))
}

pub(super) fn check_network(
    caller: &Caller,
    networks: impl IntoIterator<Item = Network>,
) -> Result<()> {
    let any = networks.into_iter().any(|network| network != Network::None);
    if any { Ok(caller.check_scope(TokenScope::Net)?) } else { Ok(()) }
}

pub(super) async fn list(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    QueryParams(params): QueryParams<TaskQuery>,
) -> RouteResult {
    let limit = page_size("limit", params.limit, DEFAULT_PAGE, MAX_PAGE)?;
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
    let page = api.options.tasks.list(filter).await?;
    let tasks = page.tasks.iter().map(summary).collect();
    Ok(ok(&TaskList { tasks, total: page.total, limit, offset }))
}

/// Returns a task that the caller covers. One of another workspace is "not found": its existence is not
/// revealed.
async fn find(api: &Api, caller: &Caller, scope: TokenScope, id: TaskId) -> Result<Task> {
    let task = api.options.tasks.find_any(id).await?;
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
    if api.options.tasks.cancel(id).await? == Cancelled::Done {
        let status = TaskStatus::Cancelled;
        return Ok(ok(&CancelReply { id, status, cancel_requested: None }));
    }
    let ended = async {
        let events = api.options.tasks.follow(id, task.last_event);
        let mut events = std::pin::pin!(events);
        while events.next().await.is_some() {}
    };
    let ended_in_time = tokio::time::timeout(CANCEL_WAIT, ended).await.is_ok();
    let task = api.options.tasks.find_any(id).await?;
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
    // A ticket can replace credentials.
    who: Result<Authenticated>,
) -> RouteResult {
    let (task, expires) = match (&params.ticket, who) {
        (Some(ticket), _) => {
            let workspace = api.inner.tickets.verify(ticket, id, api.now())?;
            (api.options.tasks.find(workspace, id).await?, crate::auth::SESSION_LIFETIME)
        }
        (None, Ok(Authenticated(caller))) => {
            let task = find(&api, &caller, TokenScope::Read, id).await?;
            (task, api.now().age(caller.expires_at))
        }
        (None, Err(failed)) => return Err(failed),
    };
    let after = last_event(&headers, params.last_event_id)?;
    if task.status.is_terminal() && after >= task.last_event {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let permit = Box::new(api.stream(task.workspace)?);
    let limits = StreamLimits { stop: api.options.stop.clone(), expires, permit };
    let events = api.options.tasks.follow(id, after);
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
