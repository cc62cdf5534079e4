//! Every route there is.

mod files;
mod github;
mod page;
mod system;
mod tasks;
mod tools;
mod work;
mod workspaces;

use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::routing::{delete, get, post};
use carrel_domain::Code;
use serde_json::json;

use crate::answer::Failed;
use crate::state::Api;

/// Returns the router.
pub(crate) fn router(api: Api) -> Router {
    let workspace = Router::new()
        .route("/", get(workspaces::show).delete(workspaces::remove))
        .route("/usage", get(workspaces::usage))
        .route("/files", get(files::list))
        .route("/files/content", get(files::content))
        .route("/files/grep", get(files::grep))
        .route("/files/write", post(files::write))
        .route("/files/raw", get(files::raw))
        .route("/exec", post(work::exec))
        .route("/git", post(work::git))
        .route("/github/clone", post(github::clone))
        .route("/tools/{name}", post(tools::call));
    let routes = Router::new()
        .route("/api/tasks/submit", post(tasks::submit))
        .route("/api/tasks", get(tasks::list))
        .route("/api/tasks/{id}", get(tasks::show))
        .route("/api/tasks/{id}/cancel", post(tasks::cancel))
        .route("/api/tasks/{id}/events", get(tasks::events))
        .route("/api/tasks/{id}/events/ticket", post(tasks::ticket))
        .route("/api/workspaces", get(workspaces::list).post(workspaces::create))
        .nest("/api/workspaces/{id}", workspace)
        .route("/api/tools", get(tools::list))
        .route("/api/session", delete(page::end))
        .route("/healthz", get(system::alive))
        .route("/readyz", get(system::ready))
        .route("/metrics", get(system::metrics))
        .route("/", get(page::page));
    routes.fallback(unknown).method_not_allowed_fallback(wrong_method).with_state(api)
}

async fn unknown(request: Request) -> Failed {
    let path: String = request.uri().path().chars().take(200).collect();
    Failed::new(Code::UnknownRoute, format!("no route {path}"), json!({ "path": path }))
}

async fn wrong_method(method: Method) -> Failed {
    let message = format!("the route does not take {method}");
    Failed::new(Code::MethodNotAllowed, message, json!({ "method": method.as_str() }))
}
