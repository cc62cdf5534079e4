//! The API of a worker, for other servers of the same installation.
//!
//! It serves the routes that need a directory under `/workspaces/{id}` (without `/api`), `/mcp`, and
//! `/health`. Requests carry the internal token and, in a header, the caller that the forwarding server has
//! verified; the worker checks scopes and volume itself.

use std::path::PathBuf;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use carrel_mcp::EmbeddedEndpoint;
use carrel_service::{BusHealth, Slots};
use carrel_store::WorkerId;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;

use crate::audit::audit;
use crate::request_span::span_request;
use crate::response::ok;
use crate::routes::{mcp, mcp_route, table, unknown, wrong_method};
use crate::serve::serve_router;
use crate::state::Api;
use crate::worker_proxy::forward::{MCP, internal_path};

/// The facts about a worker that `/health` shows without authentication.
#[derive(Clone, Debug)]
pub struct WorkerHealth {
    /// The name of the worker.
    pub worker: WorkerId,
    /// The directory of its volume.
    pub volume: PathBuf,
    /// Its slots for tasks and requests.
    pub slots: Slots,
    /// The report of the sandbox, as `carrel doctor` prints it.
    pub sandbox: Value,
}

/// Serves a worker's API until its `stop` is cancelled, then lets open requests end for a moment.
pub async fn serve_worker(listener: TcpListener, api: Api, health: WorkerHealth) {
    let (stop, mcp) = (api.options.stop.clone(), mcp(&api));
    serve_router(listener, router(api, health, mcp.clone()), &stop, Some(&mcp)).await;
}

/// Builds the router: the routes that need a directory, `/mcp` and `/health`.
fn router(api: Api, health: WorkerHealth, mcp: EmbeddedEndpoint) -> Router {
    let health = Arc::new(health);
    let shown = {
        let api = api.clone();
        move || show(api.clone(), Arc::clone(&health))
    };
    let routes = table().into_iter().map(crate::openapi::Route::into_handler);
    let own = routes.filter_map(|(path, handler)| Some((internal_path(path)?, handler)));
    own.fold(Router::new(), |router, (path, handler)| router.route(&path, handler))
        .route("/health", get(shown))
        .route(MCP, mcp_route(mcp))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(api.clone(), audit))
        .layer(from_fn(span_request))
        .with_state(api)
}

async fn show(api: Api, health: Arc<WorkerHealth>) -> axum::response::Response {
    let tasks = &api.options.tasks;
    let store = tasks.store().ping().await.is_ok();
    let queue = tasks.bus().health() == BusHealth::Available;
    let word = |well| if well { "ok" } else { "away" };
    ok(&json!({
        "status": if store && queue { "healthy" } else { "degraded" },
        "worker_id": health.worker.0,
        "active_tasks": tasks.hub().running_tasks().len(),
        "concurrency": health.slots.total(),
        "volume_path": health.volume.display().to_string(),
        "store": word(store),
        "queue": word(queue),
        "sandbox": health.sandbox,
    }))
}
