//! Whether the server is well.

use axum::extract::State;
use axum::http::StatusCode;
use carrel_domain::{Code, Coded as _};
use carrel_service::BusHealth;
use carrel_wire::{HealthReply, Readiness};

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
            .json::<HealthReply>(200, "It is."),
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

/// The process answers.
pub(super) async fn alive() -> RouteResult {
    Ok(ok(&HealthReply { status: "ok".into() }))
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
    let (code, status) = if store != "ok" || keys == Some("missing") {
        (StatusCode::SERVICE_UNAVAILABLE, "not_ready")
    } else if queue == "ok" {
        (StatusCode::OK, "ready")
    } else {
        // The store is the truth: without the bus, workers find tasks when they poll.
        (StatusCode::OK, "degraded")
    };
    let readiness = Readiness {
        status: status.into(),
        store: store.into(),
        keys: keys.map(Into::into),
        queue: queue.into(),
        reason,
        space: space.into(),
    };
    Ok(json_response(code, &readiness))
}
