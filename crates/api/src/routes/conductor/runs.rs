//! Runs of an issue and their transcripts.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use carrel_client::percent_encode;
use carrel_conductor::snapshot::SessionLog;
use carrel_domain::{Code, TokenScope};
use carrel_store::{RunFilter, RunRecord};
use futures_util::stream::{self, Stream};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use tracing::warn;

use super::{IssueRequest, MAX_RUNS};
use crate::conductor_api::check;
use crate::response::{ErrorResponse, Result, RouteResult, ok};

pub(super) const TRANSCRIPT: &str = "application/x-ndjson";

const PIECE_BYTES: u64 = 64 << 10;

/// Returns the last runs of an issue, also of one that is no longer claimed.
async fn history(request: &IssueRequest) -> Result<Vec<RunRecord>> {
    let claimed = request.find()?;
    let (issue, identifier) = match (&claimed, request.target()) {
        (Some(id), _) => (Some(id.0.clone()), None),
        (None, (Some(id), _)) => (Some(id.to_owned()), None),
        (None, (None, name)) => (None, Some(name.to_owned())),
    };
    let limit = Some(MAX_RUNS);
    let filter = RunFilter { issue, identifier, limit, ..RunFilter::default() };
    let runs = request.api.options.handle.runs(filter).await?;
    if runs.is_empty() && claimed.is_none() {
        return Err(request.unknown("no run is recorded"));
    }
    Ok(runs)
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "IssueRuns")]
pub(super) struct RunList {
    /// The runs, the latest first.
    runs: Vec<SessionLog>,
}

pub(super) async fn list(request: IssueRequest) -> RouteResult {
    let runs = history(&request).await?;
    check(&request.caller, TokenScope::Read)?;
    Ok(ok(&RunList { runs: runs.into_iter().map(log).collect() }))
}

pub(super) fn log(run: RunRecord) -> SessionLog {
    let at = || format!("/api/v1/issue/runs/{}?id={}", run.run, percent_encode(&run.issue));
    SessionLog {
        url: run.transcript.is_some().then(at),
        run: run.run,
        attempt: run.attempt,
        started_at: run.started_at,
        ended_at: run.ended_at,
        outcome: run.outcome,
        error: run.error,
        session_id: run.session,
        path: run.transcript,
    }
}

pub(super) async fn transcript(request: IssueRequest) -> RouteResult {
    let runs = history(&request).await?;
    check(&request.caller, TokenScope::Read)?;
    let number = request.path.get("run").map(|text| text.parse());
    let Some(Ok(number)) = number else { return Err(ErrorResponse::field("run", "is a number")) };
    let Some(run) = runs.into_iter().find(|run| run.run == number) else {
        return Err(missing(number, "the issue has no such run among its last ones"));
    };
    let permit = request.api.stream()?;
    match request.api.options.handle.transcript(&run).await {
        Ok(Some((file, length))) => Ok(transcript_response(file, length, permit)),
        Ok(None) => Err(missing(number, "its transcript is not kept any more")),
        Err(error) => {
            warn!(%error, run = number, "a transcript cannot be read");
            Err(ErrorResponse::plain(Code::Internal, "the transcript cannot be read"))
        }
    }
}

fn missing(run: u64, why: &str) -> ErrorResponse {
    let message = format!("there is no transcript of run {run}: {why}");
    ErrorResponse::plain(Code::NotFound, message)
}

fn transcript_response(file: File, length: u64, permit: OwnedSemaphorePermit) -> Response {
    let body = Body::from_stream(pieces(file, length, permit));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(TRANSCRIPT)),
        (header::CONTENT_LENGTH, HeaderValue::from(length)),
    ];
    (headers, body).into_response()
}

fn pieces(
    file: File,
    length: u64,
    permit: OwnedSemaphorePermit,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::try_unfold((file, 0, permit), move |(file, offset, permit)| async move {
        let wanted_bytes = (length - offset).min(PIECE_BYTES);
        let read = move || {
            let mut bytes = vec![0; usize::try_from(wanted_bytes).unwrap_or_default()];
            let count = file.read_at(&mut bytes, offset)?;
            bytes.truncate(count);
            Ok::<_, io::Error>((file, bytes))
        };
        let (file, bytes) = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
        if bytes.is_empty() {
            return Ok(None);
        }
        let offset = offset + bytes.len() as u64;
        Ok(Some((Bytes::from(bytes), (file, offset, permit))))
    })
}
