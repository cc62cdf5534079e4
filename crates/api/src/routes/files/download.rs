//! Downloads: files of any size, whole or in part, as streams.
//!
//! The file is opened once: what a client gets is that file, even if another one takes its name meanwhile. It is read
//! as fast as the client takes it, a chunk at a time, so that memory stays small and the client occupies no permit for
//! work. A file that becomes shorter meanwhile ends the connection instead of the response, since the length was told
//! before: no client can take a part for the whole.
//!
//! The validator (`ETag`) changes with every write, so that a client which goes on with a part (`If-Range`) never mixes
//! two contents.

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use carrel_domain::{Code, TokenScope};
use carrel_fsroot::Metadata;
use carrel_wire::FileQuery;
use futures_util::stream;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::byte_range::Wanted;
use super::required_path;
use crate::extract::{QueryParams, WorkspaceRequest};
use crate::response::{ErrorResponse, RouteResult, bytes_response};

/// The bytes that are read at a time.
const CHUNK: u64 = 256 << 10;

/// The step of the coarsest clock for file times, with a margin: a file that changed less long ago may change again
/// without a new time.
const CLOCK_STEP: Duration = Duration::from_millis(20);

pub(super) async fn get(
    request: WorkspaceRequest,
    QueryParams(params): QueryParams<FileQuery>,
) -> RouteResult {
    let path = PathBuf::from(required_path(params)?);
    let space = request.api.open_workspace(&request.caller, TokenScope::Read, request.id).await?;
    let permit = request.api.download_permit().await?;
    let open = move || space.named_workspace().files().browse().open_file(&path);
    let opened = tokio::task::spawn_blocking(open).await;
    let (file, metadata) = opened.map_err(|_| ErrorResponse::internal())??;
    let tag = validator(&metadata, SystemTime::now());
    let size = metadata.size;
    if is_known(&request.headers, &tag) {
        let response = StatusCode::NOT_MODIFIED.into_response();
        return Ok(described(response, &tag));
    }
    let (status, part) = match wanted(&request.headers, &tag, size) {
        Wanted::Whole => (StatusCode::OK, 0..size),
        Wanted::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        Wanted::Unsatisfiable => {
            let message = format!("the file has {size} bytes");
            let refusal =
                ErrorResponse::new(Code::RangeNotSatisfiable, message, json!({ "size": size }));
            let mut response = refusal.into_response();
            set(&mut response, header::CONTENT_RANGE, &format!("bytes */{size}"));
            return Ok(response);
        }
    };
    let body = Body::from_stream(chunks(Download {
        file: Arc::new(file),
        part: part.clone(),
        _permit: permit,
    }));
    let mut response = bytes_response(status, "application/octet-stream", body);
    set(&mut response, header::CONTENT_LENGTH, &(part.end - part.start).to_string());
    if status == StatusCode::PARTIAL_CONTENT {
        let told = format!("bytes {}-{}/{size}", part.start, part.end - 1);
        set(&mut response, header::CONTENT_RANGE, &told);
    }
    Ok(described(response, &tag))
}

/// Returns the validator of a file: weak if the file could have changed since without showing it.
fn validator(metadata: &Metadata, now: SystemTime) -> String {
    let nanos = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let Metadata { identity, size, modified, changed, .. } = metadata;
    let tag =
        format!("\"{:x}-{size:x}-{:x}-{:x}\"", identity.inode, nanos(*modified), nanos(*changed));
    let newest = (*modified).max(*changed);
    let is_settled = now.duration_since(newest).is_ok_and(|age| age >= CLOCK_STEP);
    if is_settled { tag } else { format!("W/{tag}") }
}

/// Tells whether the client has this content already.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let mut known =
        headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known.any(|known| {
        known.trim() == "*" || known.split(',').any(|known| opaque(known) == opaque(tag))
    })
}

/// Returns what the client wants. It goes on with a part only if the content is still the one that it names.
fn wanted(headers: &HeaderMap, tag: &str, size: u64) -> Wanted {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let is_same = match headers.get(header::IF_RANGE) {
        None => true,
        Some(value) => !tag.starts_with("W/") && value.as_bytes().trim_ascii() == tag.as_bytes(),
    };
    if is_same { Wanted::of(text(header::RANGE), size) } else { Wanted::Whole }
}

fn described(mut response: Response, tag: &str) -> Response {
    set(&mut response, header::ETAG, tag);
    set(&mut response, header::ACCEPT_RANGES, "bytes");
    // What is kept has to be asked for again, with its validator.
    set(&mut response, header::CACHE_CONTROL, "private, no-cache");
    response
}

fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// A file that is being sent.
struct Download {
    file: Arc<File>,
    /// The bytes that are still to be read.
    part: Range<u64>,
    _permit: OwnedSemaphorePermit,
}

fn chunks(download: Download) -> impl stream::Stream<Item = Result<Bytes, Error>> + Send {
    stream::try_unfold(download, |mut download| async move {
        let (file, part) = (Arc::clone(&download.file), download.part.clone());
        if part.is_empty() {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || read_chunk(&file, part)).await;
        let chunk = read.map_err(Error::other)??;
        download.part.start += chunk.len() as u64;
        Ok(Some((chunk, download)))
    })
}

fn read_chunk(file: &File, part: Range<u64>) -> Result<Bytes, Error> {
    let length = usize::try_from((part.end - part.start).min(CHUNK)).map_err(Error::other)?;
    let mut bytes = vec![0; length];
    let read = file.read_at(&mut bytes, part.start)?;
    if read == 0 {
        return Err(Error::new(
            ErrorKind::UnexpectedEof,
            "the file became shorter while it was sent",
        ));
    }
    bytes.truncate(read);
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_client_goes_on_only_with_the_same_content() {
        let headers = |pairs: &[(HeaderName, &'static str)]| {
            let pairs =
                pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            pairs.collect::<HeaderMap>()
        };
        let part = headers(&[(header::RANGE, "bytes=5-")]);
        assert_eq!(wanted(&part, "\"a\"", 10), Wanted::Part(5..10));
        let same = headers(&[(header::RANGE, "bytes=5-"), (header::IF_RANGE, "\"a\"")]);
        assert_eq!(wanted(&same, "\"a\"", 10), Wanted::Part(5..10));
        assert_eq!(wanted(&same, "\"b\"", 10), Wanted::Whole);
        // A weak validator proves nothing about bytes, and a date is none of ours.
        let weak = headers(&[(header::RANGE, "bytes=5-"), (header::IF_RANGE, "W/\"a\"")]);
        assert_eq!(wanted(&weak, "W/\"a\"", 10), Wanted::Whole);
        let date = "Wed, 21 Oct 2015 07:28:00 GMT";
        let dated = headers(&[(header::RANGE, "bytes=5-"), (header::IF_RANGE, date)]);
        assert_eq!(wanted(&dated, "\"a\"", 10), Wanted::Whole);
    }

    #[test]
    fn known_contents_are_found_in_lists() {
        for (known, is_it) in [
            ("\"a\"", true),
            ("W/\"a\"", true),
            ("\"b\", \"a\"", true),
            ("*", true),
            ("\"b\"", false),
            ("a", false),
        ] {
            let headers =
                HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_static(known))]);
            assert_eq!(is_known(&headers, "\"a\""), is_it, "{known}");
        }
    }
}
