//! The one page.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use carrel_domain::{Code, Secret};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::auth::{AuthError, Grant, RejectReason, begin_session, end_session};
use crate::extract::{Authenticated, QueryParams};
use crate::openapi::{Route, document};
use crate::response::{ErrorResponse, RouteResult, bytes_response};
use crate::state::Api;

const PAGE: &str = include_str!("console.html");

/// The page that shows the document of the API.
const REFERENCE: &str = include_str!("api_reference.html");

/// What the page may load: itself.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Every route of this module.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/", page)
            .name("show_page", "The page")
            .description(
                "Shows a page for people. The link that is printed at the start begins a session.",
            )
            .public()
            .query::<PageParams>()
            .bytes("text/html", "The page.")
            .no_content(303, "The session has begun.")
            .errors(&[Code::Unauthenticated]),
        Route::get("/docs", reference)
            .name("show_reference", "The API for people")
            .description("Shows the document of the API as a page that loads nothing else.")
            .public()
            .bytes("text/html", "The page."),
        Route::get("/openapi.json", openapi)
            .name("show_document", "The API for programs")
            .description("Returns the document of the API: OpenAPI 3.1.")
            .public()
            .json::<Map<String, Value>>(200, "The document."),
        Route::delete("/api/session", end)
            .name("end_session", "End the session")
            .description("Ends the session of a browser. A token stays as good as it was.")
            .no_content(204, "It is over.")
            .errors(&[Code::Forbidden]),
    ]
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct PageParams {
    /// The one-time token of the link.
    token: Option<String>,
}

/// Shows the page. The link that was printed at the start begins a session and is worth nothing then.
pub(super) async fn page(
    State(api): State<Api>,
    QueryParams(params): QueryParams<PageParams>,
) -> RouteResult {
    let Some(token) = params.token else { return Ok(shown(PAGE)) };
    let redeemed = api.inner.console.as_ref().and_then(|link| link.redeem(&token, api.now()));
    let caller = redeemed.ok_or_else(|| AuthError::unauthenticated(RejectReason::Expired))?;
    let session = api.inner.authority.issue(&Grant::session(&caller), api.now());
    let session = session.map_err(|_| AuthError::unauthenticated(RejectReason::Claims))?;
    let cookie = begin_session(&session, api.inner.transport);
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::from_static("/"));
    headers.insert(header::SET_COOKIE, sensitive(&cookie)?);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}

fn sensitive(cookie: &Secret) -> Result<HeaderValue, ErrorResponse> {
    let mut value = HeaderValue::from_str(cookie.expose())
        .map_err(|_| AuthError::unauthenticated(RejectReason::Claims))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Shows the document of the API to people.
pub(super) async fn reference() -> RouteResult {
    Ok(shown(REFERENCE))
}

/// Returns the document of the API.
pub(super) async fn openapi(State(api): State<Api>) -> RouteResult {
    let make = || Bytes::from(document(&api.inner.hosts).to_string());
    let text = api.inner.document.get_or_init(make).clone();
    Ok(bytes_response(StatusCode::OK, "application/json", text))
}

fn shown(page: &'static str) -> Response {
    let mut response = bytes_response(StatusCode::OK, "text/html; charset=utf-8", page);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Ends the session of the browser.
pub(super) async fn end(State(api): State<Api>, Authenticated(_): Authenticated) -> RouteResult {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let cookie = HeaderValue::from_str(&end_session(api.inner.transport));
    response.headers_mut().extend(cookie.ok().map(|cookie| (header::SET_COOKIE, cookie)));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_page_loads_anything_from_elsewhere() {
        for page in [PAGE, REFERENCE] {
            for word in ["http:", "https:", "src=", "<link", "@import", "url(", "import("] {
                assert!(!page.contains(word), "{word}");
            }
        }
    }
}
