//! Whether the server is well.

mod metrics;

use axum::extract::State;
use axum::http::StatusCode;
use carrel_domain::{Code, Coded as _};
use carrel_service::BusHealth;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::{Answered, bytes_answer, json_answer, ok};
use crate::auth::Scope;
use crate::auth::jwks::Provider;
use crate::extract::Who;
use crate::openapi::{Route, STORE};
use crate::state::Api;

/// Every route of this module.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/healthz", alive)
            .called("check_health", "Is the server there?")
            .says("Answers as long as the process does.")
            .public()
            .json::<Alive>(200, "It is."),
        Route::get("/readyz", ready)
            .called("check_readiness", "Is the server ready?")
            .says(
                "Answers whether the store answers, whether the disk has room, whether workers are told of \
                 tasks at once, and whether the keys of the token provider are there, if one is set.",
            )
            .public()
            .json::<Readiness>(200, "It is.")
            .json::<Readiness>(503, "Something that is needed is not there."),
        Route::get("/metrics", metrics)
            .called("show_metrics", "Figures")
            .says("Returns figures in the format of Prometheus.")
            .needs(Scope::Read)
            .bytes("text/plain", "The figures.")
            .fails(STORE),
    ]
}

/// That the server is there.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Health")]
struct Alive {
    /// `ok`.
    status: &'static str,
}

/// Whether the server can work.
#[derive(Serialize, JsonSchema)]
struct Readiness {
    /// `ready`, `degraded` or `not_ready`.
    status: &'static str,
    /// `ok`, or the code of what is wrong.
    store: &'static str,
    /// Whether tokens of the provider can be verified: `ok` or `missing`. Not there without a provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<&'static str>,
    /// `ok`, or the code of what is wrong.
    queue: &'static str,
    /// What is wrong, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// `ok`, or `low` while the disk of the workspaces has less left than has to stay free: tasks wait, and
    /// nothing is begun.
    space: &'static str,
}

/// The process answers.
pub(super) async fn alive() -> Answered {
    Ok(ok(&Alive { status: "ok" }))
}

/// What it needs answers, too.
pub(super) async fn ready(State(api): State<Api>) -> Answered {
    let (queue, mut reason) = match api.inner.tasks.bus().health() {
        BusHealth::Available => ("ok", None),
        BusHealth::Unavailable { reason } => (Code::QueueUnavailable.name(), Some(reason)),
    };
    let space = if api.inner.spaces.check_free_space().is_ok() { "ok" } else { "low" };
    let store = match api.inner.tasks.store().ping().await {
        Ok(()) => "ok",
        Err(error) => {
            // Anybody may ask; what the database says in detail is for the log.
            reason = Some(error.to_string());
            error.code().name()
        }
    };
    let has_keys = |provider: &Provider| if provider.is_ready() { "ok" } else { "missing" };
    let keys = api.inner.provider.as_ref().map(has_keys);
    if store == "ok" && keys != Some("missing") {
        // Rows are the truth, so that tasks are taken and run without the queue.
        let status = if queue == "ok" { "ready" } else { "degraded" };
        return Ok(ok(&Readiness { status, store, keys, queue, reason, space }));
    }
    let body = Readiness { status: "not_ready", store, keys, queue, reason, space };
    Ok(json_answer(StatusCode::SERVICE_UNAVAILABLE, &body))
}

/// Figures for Prometheus. Those of workspaces are shown to whoever may look into them.
pub(super) async fn metrics(State(api): State<Api>, Who(caller): Who) -> Answered {
    caller.check_scope(Scope::Read)?;
    let counts = api.inner.tasks.store().counts().await?;
    let disk = api.inner.spaces.capacity()?;
    let mut text = metrics::Text::default();
    text.gauge("carrel_tasks_queued", "Tasks that wait.", counts.queued);
    text.gauge("carrel_tasks_running", "Tasks that run.", counts.running);
    text.gauge("carrel_workspaces", "Workspaces.", counts.workspaces);
    text.gauge("carrel_event_streams", "Event streams that are open.", api.streams() as u64);
    text.disk(disk);
    let used = api.inner.spaces.cached_usage().into_iter();
    text.workspaces(used.filter(|(id, _)| caller.coverage.covers(*id)));
    text.requests(&api.inner.requests.counts());
    if let Some(counts) = carrel_traces::counts() {
        text.spans(counts);
    }
    Ok(bytes_answer(StatusCode::OK, "text/plain; version=0.0.4", text.into_string()))
}
