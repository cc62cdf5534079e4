//! Runs of an issue and their transcripts.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use carrel_client::percent_encode;
use carrel_conductor::snapshot::SessionLog;
use carrel_domain::{Code, TokenScope};
use carrel_store::{RunFilter, RunRecord};
use futures_util::stream::{self, Stream};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tracing::warn;

use super::{IssueReference, MAX_RUNS};
use crate::conductor_api::{ConductorApi, check};
use crate::extract::Authenticated;
use crate::response::{ErrorResponse, RouteResult, ok};

pub(super) const TRANSCRIPT: &str = "application/x-ndjson";

const PIECE_BYTES: u64 = 64 << 10;

/// The last runs of an issue, also of one that is no longer claimed.
pub(super) struct RunHistory(Vec<RunRecord>);

impl FromRequestParts<ConductorApi> for RunHistory {
    type Rejection = ErrorResponse;

    async fn from_request_parts(
        parts: &mut Parts,
        api: &ConductorApi,
    ) -> Result<Self, ErrorResponse> {
        let reference = IssueReference::of(parts, api).await?;
        let claimed = reference.find(&*api.state()?);
        let filter = match (&claimed, reference.target()) {
            (Some(id), _) => of_issue(id.0.clone()),
            (None, (Some(id), _)) => of_issue(id.to_owned()),
            (None, (None, name)) => {
                RunFilter { identifier: Some(name.to_owned()), ..RunFilter::default() }
            }
        };
        let filter = RunFilter { limit: Some(MAX_RUNS), ..filter };
        let runs = api.handle().runs(filter).await?;
        if runs.is_empty() && claimed.is_none() {
            return Err(reference.unknown("no run is recorded"));
        }
        Ok(Self(runs))
    }
}

fn of_issue(id: String) -> RunFilter {
    RunFilter { issue: Some(id), ..RunFilter::default() }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "IssueRuns")]
pub(super) struct RunList {
    /// The runs, the latest first.
    runs: Vec<SessionLog>,
}

pub(super) async fn list(
    State(_): State<ConductorApi>,
    Authenticated(caller): Authenticated,
    RunHistory(runs): RunHistory,
) -> RouteResult {
    check(&caller, TokenScope::Read)?;
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

pub(super) async fn transcript(
    State(api): State<ConductorApi>,
    Authenticated(caller): Authenticated,
    RunHistory(runs): RunHistory,
    Path(pieces): Path<Vec<(String, String)>>,
) -> RouteResult {
    check(&caller, TokenScope::Read)?;
    let number = pieces.iter().find(|(name, _)| name == "run").map(|(_, text)| text.parse());
    let Some(Ok(number)) = number else { return Err(ErrorResponse::field("run", "is a number")) };
    let Some(run) = runs.into_iter().find(|run| run.run == number) else {
        return Err(missing(number, "the issue has no such run with_errors its last ones"));
    };
    let permit = api.stream()?;
    match api.handle().transcript(&run).await {
        Ok(Some((file, length))) => Ok(transcript_response(file, length, permit)),
        Ok(None) => Err(missing(number, "its transcript is not kept any more")),
        Err(error) => {
            warn!(%error, run = number, "a transcript cannot be read");
            Err(ErrorResponse::new(Code::Internal, "the transcript cannot be read", json!({})))
        }
    }
}

fn missing(run: u64, why: &str) -> ErrorResponse {
    ErrorResponse::new(
        Code::NotFound,
        format!("there is no transcript of run {run}: {why}"),
        json!({}),
    )
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
