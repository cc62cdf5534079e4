//! Uploads: raw bodies that are streamed to disk.
//!
//! The body goes through a bounded channel to a blocking thread that writes a temporary file, so that a
//! client is slowed down to the speed of the disk and memory stays small. The file gets its name when all of
//! it has arrived. A client must keep up an average rate ([`MIN_UPLOAD_RATE`]) after the first minute, or the
//! upload ends with a timeout; it does not occupy a permit for work meanwhile.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::{HeaderMap, header};
use carrel_domain::TokenScope;
use carrel_tools::{Failure, Upload};
use carrel_wire::{FileQuery, WrittenFile};
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::required_path;
use crate::extract::{QueryParams, WorkspaceRequest};
use crate::limits::{BODY_READ_TIMEOUT, MIN_UPLOAD_RATE};
use crate::response::{ErrorResponse, Result, RouteResult};

const WAITING_PARTS: usize = 4;

pub(super) async fn put(
    request: WorkspaceRequest,
    QueryParams(params): QueryParams<FileQuery>,
    body: Body,
) -> RouteResult {
    let (api, caller, id) = (&request.api, &request.caller, request.id);
    caller.check(TokenScope::Write, id)?;
    let path = required_path(params)?;
    let space = api.open_workspace(caller, TokenScope::Write, id).await?;
    let _permit = api.upload_permit().await?;
    api.options.spaces.check_quota(&space).await?;
    let upload = space.upload(&path, declared(&request.headers)).await;
    let upload = receive(upload.map_err(ErrorResponse::of_failure)?, body).await?;
    let identity = [path.as_bytes(), b"\0", &upload.digest()].concat();
    let work = async move {
        let arrived = space.finish(upload).await.map_err(ErrorResponse::of_failure)?;
        Ok(json!(WrittenFile { written: true, path: arrived.path, size_bytes: arrived.bytes }))
    };
    request.run_once("write_raw", &identity, work).await
}

fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn receive(upload: Upload, body: Body) -> Result<Upload> {
    let (sender, parts) = mpsc::channel(WAITING_PARTS);
    let writing = tokio::task::spawn_blocking(move || write(upload, parts));
    // Without the end marker the thread drops the temporary file.
    let sent = send(body.into_data_stream(), sender).await;
    let written = writing.await.map_err(|_| ErrorResponse::internal())?;
    // The error of the disk comes first: it is the reason that chunks were not taken.
    match (written, sent) {
        (Err(failure), _) => Err(ErrorResponse::of_failure(failure)),
        (Ok(_), Err(failed)) => Err(failed),
        (Ok(Some(upload)), Ok(())) => Ok(upload),
        (Ok(None), Ok(())) => Err(ErrorResponse::internal()),
    }
}

enum Part {
    Bytes(Bytes),
    /// The end of the body, as opposed to a client that disconnected.
    End,
}

/// Writes chunks until the end marker. Returns `None` if the channel closed before it.
fn write(mut upload: Upload, mut parts: mpsc::Receiver<Part>) -> Result<Option<Upload>, Failure> {
    while let Some(part) = parts.blocking_recv() {
        match part {
            Part::Bytes(bytes) => upload.write(&bytes)?,
            Part::End => return Ok(Some(upload)),
        }
    }
    Ok(None)
}

async fn send(mut body: BodyDataStream, parts: mpsc::Sender<Part>) -> Result<()> {
    let started = Instant::now();
    let mut arrived = 0_u64;
    loop {
        let allowed = BODY_READ_TIMEOUT + Duration::from_secs(arrived / MIN_UPLOAD_RATE);
        let next = tokio::time::timeout_at(started + allowed, body.next());
        let part = match next.await {
            Err(_) => return Err(ErrorResponse::body_timeout()),
            Ok(None) => Part::End,
            Ok(Some(Err(_))) => {
                return Err(ErrorResponse::field("body", "ended before all of it had arrived"));
            }
            Ok(Some(Ok(bytes))) => {
                arrived += bytes.len() as u64;
                Part::Bytes(bytes)
            }
        };
        let is_end = matches!(part, Part::End);
        // The writer reports why it stopped.
        if parts.send(part).await.is_err() || is_end {
            return Ok(());
        }
    }
}
