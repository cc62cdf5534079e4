//! Every route there is.

mod conductor;
mod credentials;
mod files;
mod github;
mod mcp;
mod page;
mod system;
mod tasks;
mod tools;
mod work;
mod workspaces;

pub(crate) use conductor::router as conductor_router;
pub(crate) use mcp::{mounted as mcp, route as mcp_route};
pub(crate) use tools::names as tool_names;

use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::middleware::{from_fn, from_fn_with_state};
use carrel_domain::Code;
use carrel_mcp::Mounted;
use serde_json::json;

use crate::answer::Failed;
use crate::forward::{MCP, forward, internal_path};
use crate::observe::observe;
use crate::openapi::Route;
use crate::state::Api;
use crate::trace::trace;

/// Returns every route.
pub(crate) fn table() -> Vec<Route> {
    let groups = [
        ("tasks", tasks::routes()),
        ("workspaces", workspaces::routes()),
        ("workspaces", credentials::routes()),
        ("files", files::routes()),
        ("commands", work::routes()),
        ("commands", github::routes()),
        ("tools", tools::routes()),
        ("server", system::routes()),
        ("server", page::routes()),
        ("conductor", conductor::away()),
    ];
    let named = |(tag, routes): (_, Vec<Route>)| routes.into_iter().map(move |one| one.among(tag));
    groups.into_iter().flat_map(named).collect()
}

/// Returns the router.
pub(crate) fn router(api: Api, mcp: Mounted) -> Router {
    let passing = from_fn_with_state(api.clone(), forward);
    let routes = table().into_iter().map(Route::into_handler).map(|(path, handler)| {
        let far = internal_path(path).is_some();
        (path, if far { handler.layer(passing.clone()) } else { handler })
    });
    routes
        .fold(Router::new(), |router, (path, handler)| router.route(path, handler))
        .route(MCP, mcp_route(mcp).layer(passing))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(api.clone(), observe))
        .layer(from_fn(trace))
        .with_state(api)
}

pub(crate) async fn unknown(request: Request) -> Failed {
    let path: String = request.uri().path().chars().take(200).collect();
    Failed::new(Code::UnknownRoute, format!("no route {path}"), json!({ "path": path }))
}

pub(crate) async fn wrong_method(method: Method) -> Failed {
    let message = format!("the route does not take {method}");
    Failed::new(Code::MethodNotAllowed, message, json!({ "method": method.as_str() }))
}
