//! The table of routes and the router that is built from it.
//!
//! Each module under `routes/` lists its routes with path, handler, scope, parameters, replies and errors.
//! The table is the single source for the router, the worker's router, the `OpenAPI` document and
//! `docs/api.md`.

mod commands;
mod conductor;
mod console;
mod credentials;
mod files;
mod forks;
mod github;
mod health;
mod mcp;
mod metrics;
mod snapshots;
mod tasks;
mod tools;
mod tries;
mod workspaces;

pub(crate) use conductor::router as conductor_router;
pub(crate) use mcp::{mounted as mcp, route as mcp_route};
pub(crate) use tools::names as tool_names;

use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::middleware::{from_fn, from_fn_with_state};
use carrel_domain::Code;
use carrel_mcp::EmbeddedEndpoint;
use serde_json::json;

use crate::audit::audit;
use crate::host_check::check_host;
use crate::openapi::{COMMANDS, FILES, FORKS, Route, SNAPSHOTS, STORE, TRIES, WORKSPACES};
use crate::request_span::span_request;
use crate::response::ErrorResponse;
use crate::state::Api;
use crate::worker_proxy::forward::{MCP, forward, internal_path};

/// Returns all routes of the document, each with its tag and with the errors of its group.
pub(crate) fn table() -> Vec<Route> {
    let groups: [(_, _, &[&[Code]]); _] = [
        ("tasks", tasks::routes(), &[STORE]),
        ("workspaces", workspaces::routes(), &[STORE, WORKSPACES]),
        ("workspaces", credentials::routes(), &[STORE, WORKSPACES, &[Code::SecretUnknown]]),
        ("workspaces", forks::routes(), &[STORE, WORKSPACES, FILES, SNAPSHOTS, FORKS]),
        (
            "workspaces",
            tries::routes(),
            &[STORE, WORKSPACES, FILES, SNAPSHOTS, FORKS, COMMANDS, TRIES],
        ),
        ("files", files::routes(), &[STORE, WORKSPACES, FILES]),
        ("snapshots", snapshots::routes(), &[STORE, WORKSPACES, FILES, SNAPSHOTS]),
        ("commands", commands::routes(), &[STORE, WORKSPACES, FILES, COMMANDS]),
        ("commands", github::routes(), &[STORE, &[Code::WorkspaceNotFound, Code::Overloaded]]),
        ("tools", tools::routes(), &[]),
        ("server", health::routes(), &[]),
        ("server", metrics::routes(), &[STORE]),
        ("server", console::routes(), &[]),
        ("conductor", conductor::unavailable_routes(), &[&[Code::ConductorUnavailable]]),
    ];
    let described = groups.into_iter().flat_map(|(tag, routes, errors)| {
        routes.into_iter().map(move |route| route.tag(tag).errors(&errors.concat()))
    });
    described.collect()
}

/// Builds the public router. Routes that need a directory go through the worker proxy.
pub(crate) fn router(api: Api, mcp: EmbeddedEndpoint) -> Router {
    let forwarding = from_fn_with_state(api.clone(), forward);
    let routes = table().into_iter().map(Route::into_handler).map(|(path, handler)| {
        let is_forwarded = internal_path(path).is_some();
        (path, if is_forwarded { handler.layer(forwarding.clone()) } else { handler })
    });
    routes
        .fold(Router::new(), |router, (path, handler)| router.route(path, handler))
        .route(MCP, mcp_route(mcp).layer(forwarding))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(api.clone(), check_host))
        .layer(from_fn_with_state(api.clone(), audit))
        .layer(from_fn(span_request))
        .with_state(api)
}

pub(crate) async fn unknown(request: Request) -> ErrorResponse {
    let path: String = request.uri().path().chars().take(200).collect();
    ErrorResponse::new(Code::UnknownRoute, format!("no route {path}"), json!({ "path": path }))
}

pub(crate) async fn wrong_method(method: Method) -> ErrorResponse {
    let message = format!("the route does not take {method}");
    ErrorResponse::new(Code::MethodNotAllowed, message, json!({ "method": method.as_str() }))
}
