//! Extractors: authentication, JSON bodies, queries and path parameters.
//!
//! Axum's own extractors reject with plain text. These reject with the error envelope of the API, so that
//! every error has one shape.
//!
//! Bodies are bounded three times: by size, by the time until they have arrived, and by the memory of all
//! bodies together. The last is a semaphore that counts MiB; its permit is released with the last reference
//! to the bytes.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::{AUTHORIZATION, COOKIE, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use carrel_domain::{Code, Timestamp, TokenScope, TokenScopes, WorkspaceId};
use carrel_store::Workspace;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use crate::audit;
use crate::auth::{
    CONSOLE_HEADER, Caller, Coverage, INTERNAL_TOKEN_HEADER, PresentedToken, RequestPage,
    WORKSPACE_HEADER, check_cookie_request,
};
use crate::host_check::HostRules;
use crate::idempotency::{IdempotentRequest, KeyScope, WorkResult};
use crate::limits::{
    BODY_READ_TIMEOUT, MAX_BUFFERED_MEBIBYTES, MAX_JSON_BODY, MIN_COUNTED_BODY, PERMIT_WAIT,
};
use crate::response::{ErrorResponse, Result, RouteResult};
use crate::state::{Api, AuthMode};
use crate::worker_proxy::forward::{CALLER_HEADER, decode_caller};

pub(crate) struct Authenticated(pub(crate) Caller);

impl FromRequestParts<Api> for Authenticated {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let headers = &parts.headers;
        if let AuthMode::Internal(token) = &api.options.auth_mode {
            token.check(headers.get_all(INTERNAL_TOKEN_HEADER))?;
            let caller = internal_caller(headers)?;
            audit::record_caller(&caller);
            return Ok(Self(caller));
        }
        let presented = presented(headers)?;
        let caller = api.verify(presented.token()).await?;
        audit::record_caller(&caller);
        check_presented(presented, parts, &api.options.host_rules)?;
        Ok(Self(caller))
    }
}

/// Returns the token in `Authorization` or in the session cookie.
pub(crate) fn presented(headers: &HeaderMap) -> Result<PresentedToken<'_>> {
    Ok(PresentedToken::find(headers.get_all(AUTHORIZATION), headers.get_all(COOKIE))?)
}

/// Rejects a mutation with the session cookie that a page of another origin may have triggered.
pub(crate) fn check_presented(
    presented: PresentedToken<'_>,
    parts: &Parts,
    rules: &HostRules,
) -> Result<()> {
    if let PresentedToken::Cookie(_) = presented {
        let Parts { method, uri, headers, extensions, .. } = parts;
        let page = match rules.check_origin(uri, extensions, headers) {
            _ if !headers.contains_key(ORIGIN) => RequestPage::Unknown,
            Ok(()) => RequestPage::Own,
            Err(_) => RequestPage::Foreign,
        };
        let console = headers.get(CONSOLE_HEADER).and_then(|value| value.to_str().ok());
        check_cookie_request(method.as_str(), page, console)?;
    }
    Ok(())
}

/// Returns the caller that another server has verified and forwarded; the server itself if it names none.
fn internal_caller(headers: &HeaderMap) -> Result<Caller> {
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

fn workspace_header(headers: &HeaderMap) -> Result<Option<WorkspaceId>> {
    let Some(value) = headers.get(WORKSPACE_HEADER) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let id = text.parse().map_err(|error| {
        ErrorResponse::field(WORKSPACE_HEADER, format!("is the id of a workspace: {error}"))
    })?;
    Ok(Some(id))
}

/// Returns the workspace of the body, the query or the header. Two that differ are an error.
pub(crate) fn named_workspace(
    named: Option<WorkspaceId>,
    headers: &HeaderMap,
) -> Result<Option<WorkspaceId>> {
    match (named, workspace_header(headers)?) {
        (Some(named), Some(header)) if named != header => {
            let rule = format!("is another workspace than {WORKSPACE_HEADER} names");
            Err(ErrorResponse::field("workspace_id", &rule))
        }
        (named, header) => Ok(named.or(header)),
    }
}

/// Returns the number of entries of a page, from 1 to `max`.
pub(crate) fn page_size(
    field: &str,
    requested: Option<u32>,
    default: u32,
    max: u32,
) -> Result<u32> {
    let size = requested.unwrap_or(default);
    let fits = (1..=max).contains(&size);
    fits.then_some(size)
        .ok_or_else(|| ErrorResponse::field(field, format!("is a number from 1 to {max}")))
}

/// Returns the cursor of an event stream: `Last-Event-ID`, or the parameter of clients that cannot send it.
pub(crate) fn last_event(headers: &HeaderMap, query: Option<u64>) -> Result<u64> {
    let Some(value) = headers.get("last-event-id") else { return Ok(query.unwrap_or(0)) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| ErrorResponse::field("Last-Event-ID", "is the number of an event"))
}

/// A JSON body, parsed and as bytes. Idempotency compares the bytes.
pub(crate) struct Json<T>(pub(crate) T, pub(crate) Bytes);

impl<T: DeserializeOwned> FromRequest<Api> for Json<T> {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, api: &Api) -> Result<Self> {
        let bytes = read_body(request.into_body(), api).await?;
        Ok(Self(parse(&bytes)?, bytes))
    }
}

pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    // Serde would fill the fields from a list, one after the other.
    if bytes.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        return Err(ErrorResponse::field("body", "is a JSON object"));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        // A syntax error has no field to name.
        let field = if matches!(path.as_str(), "." | "?") { "body" } else { &path };
        ErrorResponse::field(field, format!("is not as expected: {}", without_value(error.inner())))
    })?;
    reader.end().map_err(|error| {
        ErrorResponse::field("body", format!("has more than one value: {error}"))
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
pub(crate) async fn read_body(body: Body, api: &Api) -> Result<Bytes> {
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
        Err(_) => Err(ErrorResponse::body_timeout()),
    }
}

/// Acquires the memory for a body, waiting for a moment.
async fn body_permit(api: &Api, length: u64) -> Result<Option<OwnedSemaphorePermit>> {
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

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let Query(value) = Query::<T>::try_from_uri(&parts.uri).map_err(|error| {
            ErrorResponse::field("query", format!("is not as expected: {error}"))
        })?;
        Ok(Self(value))
    }
}

/// The first parameter of the path, parsed as an id.
pub(crate) struct PathId<T>(pub(crate) T);

impl<T: FromStr<Err: Display>> FromRequestParts<Api> for PathId<T> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        path_id(parts, api).await.map(|(id, _)| Self(id))
    }
}

/// Returns the first parameter of the path as an id, and the second one as it is.
async fn path_id<T: FromStr<Err: Display>>(parts: &mut Parts, api: &Api) -> Result<(T, String)> {
    let Path(found) = Path::<Vec<(String, String)>>::from_request_parts(parts, api)
        .await
        .map_err(|_| ErrorResponse::field("path", "is text"))?;
    let mut found = found.into_iter().map(|(_, text)| text);
    let id = found.next().unwrap_or_default().parse();
    let id = id.map_err(|error| ErrorResponse::field("id", format!("is an id: {error}")))?;
    Ok((id, found.next().unwrap_or_default()))
}

/// A request about the workspace that its path names. Its caller is verified, and not yet authorized.
pub(crate) struct WorkspaceRequest {
    pub(crate) api: Api,
    pub(crate) caller: Caller,
    pub(crate) id: WorkspaceId,
    /// The parameter of the path after the workspace; empty if there is none.
    pub(crate) name: String,
    pub(crate) headers: HeaderMap,
}

impl FromRequestParts<Api> for WorkspaceRequest {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, api).await?;
        let (id, name) = path_id(parts, api).await?;
        Ok(Self { api: api.clone(), caller, id, name, headers: parts.headers.clone() })
    }
}

impl WorkspaceRequest {
    /// Returns the workspace after checking scope, coverage and rate limit.
    pub(crate) async fn workspace(&self, scope: TokenScope) -> Result<Workspace> {
        self.api.workspace(&self.caller, scope, Some(self.id)).await
    }

    /// Runs `work`, or returns the stored reply of the first request with the same idempotency key.
    pub(crate) fn run_once<'a>(
        &'a self,
        route: &'static str,
        body: &'a [u8],
        work: impl Future<Output = WorkResult> + Send + 'a,
    ) -> BoxFuture<'a, RouteResult> {
        let (scope, status) = (KeyScope::Workspace(self.id), StatusCode::OK);
        let (api, headers) = (&self.api, &self.headers);
        IdempotentRequest { api, scope, route, headers, body, status }.run_once(work)
    }
}
