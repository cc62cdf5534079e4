//! `/healthz` and `/readyz`. Both are public and reveal no details.
//!
//! Liveness says that the process answers; an orchestrator restarts it otherwise. Readiness says whether
//! requests can succeed: the store is required, and so are the provider's keys if a provider is configured.
//! Without the bus or with little disk space the server stays ready and reports `degraded` or `low`.

use axum::extract::State;
use axum::http::StatusCode;
use carrel_domain::{Code, Coded as _};
use carrel_service::BusHealth;
use carrel_wire::{HealthReply, Readiness};

use crate::auth::jwks::Provider;
use crate::openapi::{Access, Route};
use crate::response::{RouteResult, json_response, ok};
use crate::state::Api;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/healthz", alive)
            .name("check_health", "Liveness", Access::Public)
            .description("Answers while the process runs.")
            .json::<HealthReply>(200, "The server is available."),
        Route::get("/readyz", ready)
            .name("check_readiness", "Readiness", Access::Public)
            .description(
                "Reports whether the store answers, whether the disk has free space, whether the bus notifies \
                 workers, and whether the keys of the identity provider are loaded, if one is configured.",
            )
            .json::<Readiness>(200, "The server is available.")
            .json::<Readiness>(503, "A dependency is not available."),
    ]
}

pub(super) async fn alive() -> RouteResult {
    Ok(ok(&HealthReply { status: "ok".into() }))
}

pub(super) async fn ready(State(api): State<Api>) -> RouteResult {
    let (queue, mut reason) = match api.options.tasks.bus().health() {
        BusHealth::Available => ("ok", None),
        BusHealth::Unavailable { reason } => (Code::QueueUnavailable.name(), Some(reason)),
    };
    let space = if api.options.spaces.check_free_space().is_ok() { "ok" } else { "low" };
    let store = match api.options.tasks.store().ping().await {
        Ok(()) => "ok",
        Err(error) => {
            // The reply is public; the causes of the error are in the log.
            reason = Some(error.to_string());
            error.code().name()
        }
    };
    let has_keys = |provider: &Provider| if provider.is_ready() { "ok" } else { "missing" };
    let keys = api.options.provider.as_ref().map(has_keys);
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
