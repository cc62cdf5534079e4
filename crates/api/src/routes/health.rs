//! Whether the server is well.

use axum::extract::State;
use axum::http::StatusCode;
use carrel_domain::{Code, Coded as _};
use carrel_service::BusHealth;
use schemars::JsonSchema;
use serde::Serialize;

use crate::auth::jwks::Provider;
use crate::openapi::Route;
use crate::response::{RouteResult, json_response, ok};
use crate::state::Api;

/// Every route of this module.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/healthz", alive)
            .name("check_health", "Is the server there?")
            .description("Answers as long as the process does.")
            .public()
            .json::<Alive>(200, "It is."),
        Route::get("/readyz", ready)
            .name("check_readiness", "Is the server ready?")
            .description(
                "Answers whether the store answers, whether the disk has room, whether workers are told of \
                 tasks at once, and whether the keys of the token provider are there, if one is set.",
            )
            .public()
            .json::<Readiness>(200, "It is.")
            .json::<Readiness>(503, "Something that is needed is not there."),
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
pub(super) async fn alive() -> RouteResult {
    Ok(ok(&Alive { status: "ok" }))
}

/// What it needs answers, too.
pub(super) async fn ready(State(api): State<Api>) -> RouteResult {
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
    Ok(json_response(StatusCode::SERVICE_UNAVAILABLE, &body))
}
