//! Extractors: authentication, JSON bodies, queries and path parameters.
//!
//! Axum's own extractors reject with plain text. These reject with the error envelope of the API, so that
//! every error has one shape.
//!
//! Bodies are bounded three times: by size, by the time until they have arrived, and by the memory of all
//! bodies together. The last is a semaphore that counts MiB; its permit is released with the last reference
//! to the bytes.

use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use carrel_domain::{Code, Timestamp, TokenScopes, WorkspaceId};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use crate::audit;
use crate::auth::{
    CONSOLE_HEADER, Caller, Coverage, INTERNAL_TOKEN_HEADER, PresentedToken, WORKSPACE_HEADER,
    check_cookie_request,
};
use crate::limits::{
    BODY_READ_TIMEOUT, MAX_BUFFERED_MEBIBYTES, MAX_JSON_BODY, MIN_COUNTED_BODY, PERMIT_WAIT,
};
use crate::response::ErrorResponse;
use crate::state::{Api, AuthMode};
use crate::worker_proxy::forward::{CALLER_HEADER, decode_caller};

pub(crate) struct Authenticated(pub(crate) Caller);

impl FromRequestParts<Api> for Authenticated {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ErrorResponse> {
        let headers = &parts.headers;
        if let AuthMode::Internal(token) = &api.inner.auth_mode {
            token.check(headers.get_all(INTERNAL_TOKEN_HEADER))?;
            return Ok(Self(internal_caller(headers)?));
        }
        let presented = presented(headers)?;
        let caller = api.verify(presented.token()).await?;
        audit::record_caller(&caller);
        check_presented(presented, parts)?;
        Ok(Self(caller))
    }
}

/// Returns the token in `Authorization` or in the session cookie.
pub(crate) fn presented(headers: &HeaderMap) -> Result<PresentedToken<'_>, ErrorResponse> {
    Ok(PresentedToken::find(headers.get_all(AUTHORIZATION), headers.get_all(COOKIE))?)
}

/// Rejects a mutation with the session cookie that a page of another origin may have triggered.
pub(crate) fn check_presented(
    presented: PresentedToken<'_>,
    parts: &Parts,
) -> Result<(), ErrorResponse> {
    if let PresentedToken::Cookie(_) = presented {
        let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let console = text(HeaderName::from_static(CONSOLE_HEADER));
        check_cookie_request(parts.method.as_str(), text(ORIGIN), text(HOST), console)?;
    }
    Ok(())
}

/// Returns the caller that another server has verified and forwarded; the server itself if it names none.
fn internal_caller(headers: &HeaderMap) -> Result<Caller, ErrorResponse> {
    let Some(forwarded) = headers.get(CALLER_HEADER) else {
        return Ok(Caller {
            subject: Some("internal".to_owned()),
            coverage: Coverage::All,
            scopes: TokenScopes::ALL,
            expires_at: Timestamp::from_millis(i64::MAX),
        });
    };
    decode_caller(forwarded).ok_or_else(|| {
        ErrorResponse::field(CALLER_HEADER, "is a caller that a server of Carrel has encoded")
    })
}

fn workspace_header(headers: &HeaderMap) -> Result<Option<WorkspaceId>, ErrorResponse> {
    let Some(value) = headers.get(WORKSPACE_HEADER) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let id = text.parse().map_err(|error| {
        ErrorResponse::field(WORKSPACE_HEADER, &format!("is the id of a workspace: {error}"))
    })?;
    Ok(Some(id))
}

/// Returns the workspace of the body, the query or the header. Two that differ are an error.
pub(crate) fn named_workspace(
    named: Option<WorkspaceId>,
    headers: &HeaderMap,
) -> Result<Option<WorkspaceId>, ErrorResponse> {
    match (named, workspace_header(headers)?) {
        (Some(named), Some(header)) if named != header => {
            let rule = format!("is another workspace than {WORKSPACE_HEADER} names");
            Err(ErrorResponse::field("workspace_id", &rule))
        }
        (named, header) => Ok(named.or(header)),
    }
}

/// A JSON body, parsed and as bytes. Idempotency compares the bytes.
pub(crate) struct Json<T>(pub(crate) T, pub(crate) Bytes);

impl<T: DeserializeOwned> FromRequest<Api> for Json<T> {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ErrorResponse> {
        let bytes = read_body(request.into_body(), api).await?;
        Ok(Self(parse(&bytes)?, bytes))
    }
}

pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ErrorResponse> {
    // Serde would fill the fields from a list, one after the other.
    if bytes.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        return Err(ErrorResponse::field("body", "is a JSON object"));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        // A syntax error has no field to name.
        let field = if matches!(path.as_str(), "." | "?") { "body" } else { &path };
        ErrorResponse::field(
            field,
            &format!("is not as expected: {}", without_value(error.inner())),
        )
    })?;
    reader.end().map_err(|error| {
        ErrorResponse::field("body", &format!("has more than one value: {error}"))
    })?;
    Ok(value)
}

/// Returns the error without the value that was found: it may be a secret in the wrong field, and clients log
/// the message.
fn without_value(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let expected = text.starts_with("invalid ").then(|| text.rsplit_once(", expected ")).flatten();
    expected.map(|(_, expected)| format!("expected {expected}")).unwrap_or(text)
}

/// Reads a body within its limits. Without a `Content-Length` it counts as one of the largest size.
pub(crate) async fn read_body(body: Body, api: &Api) -> Result<Bytes, ErrorResponse> {
    let limit = MAX_JSON_BODY.as_u64();
    let too_large = || {
        let message = format!("the body is larger than {MAX_JSON_BODY}");
        ErrorResponse::new(Code::TooLarge, message, json!({ "limit_bytes": limit }))
    };
    let declared = body.size_hint().exact();
    if declared.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let permit = body_permit(api, declared.unwrap_or(limit)).await?;
    let reading = axum::body::to_bytes(body, usize::try_from(limit).unwrap_or(usize::MAX));
    match tokio::time::timeout(BODY_READ_TIMEOUT, reading).await {
        // The permit is released with the last reference to the bytes.
        Ok(Ok(bytes)) => Ok(Bytes::from_owner(Buffered { bytes, _permit: permit })),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => {
            Err(ErrorResponse::new(Code::Timeout, "the body did not arrive in time", json!({})))
        }
    }
}

/// Acquires the memory for a body, waiting for a moment.
async fn body_permit(
    api: &Api,
    length: u64,
) -> Result<Option<OwnedSemaphorePermit>, ErrorResponse> {
    if length <= MIN_COUNTED_BODY.as_u64() {
        return Ok(None);
    }
    let mebibytes = u32::try_from(length.div_ceil(1 << 20)).unwrap_or(u32::MAX);
    let waiting = Arc::clone(&api.inner.bodies).acquire_many_owned(mebibytes);
    let permit = tokio::time::timeout(PERMIT_WAIT, waiting).await;
    permit.ok().and_then(Result::ok).map(Some).ok_or_else(|| {
        let detail = json!({ "limit_mebibytes": MAX_BUFFERED_MEBIBYTES });
        ErrorResponse::new(Code::Overloaded, "too many large bodies arrive at once", detail)
    })
}

/// A body and its share of the memory for bodies.
struct Buffered {
    bytes: Bytes,
    _permit: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Buffered {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

pub(crate) struct QueryParams<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ErrorResponse> {
        let Query(value) = Query::<T>::try_from_uri(&parts.uri).map_err(|error| {
            ErrorResponse::field("query", &format!("is not as expected: {error}"))
        })?;
        Ok(Self(value))
    }
}

pub(crate) fn path_segment(parts: Vec<(String, String)>, name: &str) -> String {
    let found = parts.into_iter().find(|(key, _)| key == name);
    found.map(|(_, word)| word).unwrap_or_default()
}

/// The first parameter of the path, parsed as an id.
pub(crate) struct PathId<T>(pub(crate) T);

impl<T> FromRequestParts<Api> for PathId<T>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ErrorResponse> {
        let Path(found) = Path::<Vec<(String, String)>>::from_request_parts(parts, api)
            .await
            .map_err(|_| ErrorResponse::field("path", "is text"))?;
        let text = found.into_iter().next().map(|(_, text)| text).unwrap_or_default();
        let id = text
            .parse()
            .map_err(|error: T::Err| ErrorResponse::field("id", &format!("is an id: {error}")))?;
        Ok(Self(id))
    }
}
