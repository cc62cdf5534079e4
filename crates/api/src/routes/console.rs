//! The console page, the reference page and the `OpenAPI` document.
//!
//! The pages are embedded in the binary and load nothing from elsewhere; a test and the content security
//! policy see to it. The console calls the same API as every client, with the session cookie.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use carrel_domain::{Code, Secret};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::auth::{AuthError, Grant, RejectReason, begin_session, end_session};
use crate::extract::{Authenticated, QueryParams};
use crate::openapi::{Access, Route, document};
use crate::response::{Result, RouteResult, bytes_response};
use crate::state::Api;

const PAGE: &str = include_str!("console.html");

const REFERENCE: &str = include_str!("api_reference.html");

/// The content security policy: inline script and style, requests to this server, nothing else.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/", page)
            .name("show_page", "The page", Access::Public)
            .description(
                "Serves the console page. The link that the server prints at its start begins a session.",
            )
            .query::<PageParams>()
            .bytes("text/html", "The page.")
            .no_content(303, "The session has started.")
            .errors(&[Code::Unauthenticated]),
        Route::get("/docs", reference)
            .name("show_reference", "API reference", Access::Public)
            .description("Serves the API reference as a page without external resources.")
            .bytes("text/html", "The page."),
        Route::get("/openapi.json", openapi)
            .name("show_document", "OpenAPI document", Access::Public)
            .description("Returns the OpenAPI 3.1 document.")
            .json::<Map<String, Value>>(200, "The document."),
        Route::delete("/api/session", end)
            .name("end_session", "End the session", Access::Token)
            .description("Ends the session of a browser. Tokens are not affected.")
            .no_content(204, "The session has ended.")
            .errors(&[Code::Forbidden]),
    ]
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct PageParams {
    /// The one-time token of the link.
    token: Option<String>,
}

/// Serves the page. A valid one-time token starts a session and redirects, so that the token leaves the
/// address bar.
pub(super) async fn page(
    State(api): State<Api>,
    QueryParams(params): QueryParams<PageParams>,
    parts: Parts,
) -> RouteResult {
    let Some(token) = params.token else { return Ok(html(PAGE)) };
    let redeemed = api.options.console.as_ref().and_then(|link| link.redeem(&token, api.now()));
    let caller = redeemed.ok_or_else(|| AuthError::unauthenticated(RejectReason::Expired))?;
    let session = api.options.authority.issue(&Grant::session(&caller), api.now());
    let session = session.map_err(|_| AuthError::unauthenticated(RejectReason::Claims))?;
    let cookie = begin_session(&session, api.transport(&parts));
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::from_static("/"));
    headers.insert(header::SET_COOKIE, sensitive(&cookie)?);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}

fn sensitive(cookie: &Secret) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(cookie.expose())
        .map_err(|_| AuthError::unauthenticated(RejectReason::Claims))?;
    value.set_sensitive(true);
    Ok(value)
}

pub(super) async fn reference() -> RouteResult {
    Ok(html(REFERENCE))
}

pub(super) async fn openapi(State(api): State<Api>) -> RouteResult {
    let make = || Bytes::from(document(&api.options.hosts).to_string());
    let text = api.inner.document.get_or_init(make).clone();
    Ok(bytes_response(StatusCode::OK, "application/json", text))
}

fn html(page: &'static str) -> Response {
    let mut response = bytes_response(StatusCode::OK, "text/html; charset=utf-8", page);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

pub(super) async fn end(
    State(api): State<Api>,
    Authenticated(_): Authenticated,
    parts: Parts,
) -> RouteResult {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let cookie = HeaderValue::from_str(&end_session(api.transport(&parts)));
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
