//! The one page.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use carrel_domain::Secret;
use serde::Deserialize;

use crate::answer::{Answered, Failed, bytes_answer};
use crate::auth::{AuthError, Grant, Reason, begin_session, end_session};
use crate::extract::{Params, Who};
use crate::state::Api;

const PAGE: &str = include_str!("page.html");

/// What the page may load: itself.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(Deserialize)]
pub(super) struct PageParams {
    token: Option<String>,
}

/// Shows the page. The link that was printed at the start begins a session and is worth nothing then.
pub(super) async fn page(State(api): State<Api>, Params(params): Params<PageParams>) -> Answered {
    let Some(token) = params.token else { return Ok(shown()) };
    let redeemed = api.inner.console.as_ref().and_then(|link| link.redeem(&token, api.now()));
    let caller = redeemed.ok_or_else(|| AuthError::unauthenticated(Reason::Expired))?;
    let session = api.inner.authority.issue(&Grant::session(&caller), api.now());
    let session = session.map_err(|_| AuthError::unauthenticated(Reason::Claims))?;
    let cookie = begin_session(&session, api.inner.transport);
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::from_static("/"));
    headers.insert(header::SET_COOKIE, sensitive(&cookie)?);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}

fn sensitive(cookie: &Secret) -> Result<HeaderValue, Failed> {
    let mut value = HeaderValue::from_str(cookie.expose())
        .map_err(|_| AuthError::unauthenticated(Reason::Claims))?;
    value.set_sensitive(true);
    Ok(value)
}

fn shown() -> Response {
    let mut response = bytes_answer(StatusCode::OK, "text/html; charset=utf-8", PAGE);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Ends the session of the browser.
pub(super) async fn end(State(api): State<Api>, Who(_): Who) -> Answered {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let cookie = HeaderValue::from_str(&end_session(api.inner.transport));
    response.headers_mut().extend(cookie.ok().map(|cookie| (header::SET_COOKIE, cookie)));
    Ok(response)
}
