//! Access control of a server of its own: host, origin, token.
//!
//! A browser lets any page send requests to `localhost`. The `Host` must be a name that the operator
//! allowed, against DNS rebinding, and an `Origin` must be the server itself or an allowed page. Only then
//! is the bearer token compared, in constant time, so that a page which was tricked into connecting learns
//! nothing about it.

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};

use carrel_http::requested_host;

use super::{
    error_response::{self, Result},
    options::{Authentication, HttpOptions},
};

const CHALLENGE: HeaderValue = HeaderValue::from_static(r#"Bearer realm="carrel""#);

/// RFC 6750 wants an error code only if the request carried a token.
const CHALLENGE_INVALID_TOKEN: HeaderValue =
    HeaderValue::from_static(r#"Bearer realm="carrel", error="invalid_token""#);

/// Checks a request, host and origin before the token.
pub(crate) fn check(options: &HttpOptions, uri: &Uri, headers: &HeaderMap) -> Result<()> {
    let allowed = options.allowed.check(requested_host(uri, headers), headers, None);
    allowed.map_err(|error| error_response::reject(StatusCode::FORBIDDEN, &error.to_string()))?;
    check_token(options, headers)
}

fn check_token(options: &HttpOptions, headers: &HeaderMap) -> Result<()> {
    let Authentication::Bearer(token) = &options.authentication else { return Ok(()) };
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
