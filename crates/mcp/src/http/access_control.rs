//! Access control of a server of its own: host, origin, token.
//!
//! A browser lets any page send requests to `localhost`. The `Host` must be a name that the operator
//! allowed, against DNS rebinding, and an `Origin` must be the server itself or an allowed page. Only then
//! is the bearer token compared, in constant time, so that a page which was tricked into connecting learns
//! nothing about it.

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};

use super::{
    error_response::{self, ErrorResponse, Result},
    options::HttpOptions,
};

const CHALLENGE: HeaderValue = HeaderValue::from_static(r#"Bearer realm="carrel""#);

/// RFC 6750 wants an error code only if the request carried a token.
const CHALLENGE_INVALID_TOKEN: HeaderValue =
    HeaderValue::from_static(r#"Bearer realm="carrel", error="invalid_token""#);

/// Checks a request, host and origin before the token.
pub(crate) fn check(options: &HttpOptions, uri: &Uri, headers: &HeaderMap) -> Result<()> {
    let host = check_host(options, uri, headers)?;
    check_origin(options, headers, host)?;
    check_token(options, headers)
}

/// Returns the host of the request if it is an allowed one.
fn check_host<'a>(options: &HttpOptions, uri: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        // A request in absolute form may name the host in its target instead.
        (None, _) => uri.authority().map(axum::http::uri::Authority::as_str),
        (Some(_), Some(_)) => None,
    };
    host.filter(|host| options.allowed.allows_host(host))
        .ok_or_else(|| forbidden("this server does not accept that Host"))
}

fn check_origin(options: &HttpOptions, headers: &HeaderMap, host: &str) -> Result<()> {
    let allowed = |value: &HeaderValue| {
        value.to_str().is_ok_and(|origin| options.allowed.allows_origin(origin, host))
    };
    if headers.get_all(header::ORIGIN).iter().all(allowed) {
        Ok(())
    } else {
        Err(forbidden("pages of that Origin may not use this server"))
    }
}

fn check_token(options: &HttpOptions, headers: &HeaderMap) -> Result<()> {
    let Some(token) = &options.token else { return Ok(()) };
    let given = headers.get(header::AUTHORIZATION);
    if given.and_then(bearer).is_some_and(|given| token.matches(given)) {
        return Ok(());
    }
    let mut response =
        error_response::invalid_request(StatusCode::UNAUTHORIZED, "a bearer token is required");
    let challenge = if given.is_some() { CHALLENGE_INVALID_TOKEN } else { CHALLENGE };
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    Err(response.into())
}

fn bearer(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = value.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token.trim_ascii())
}

fn forbidden(message: &'static str) -> ErrorResponse {
    error_response::reject(StatusCode::FORBIDDEN, message)
}
