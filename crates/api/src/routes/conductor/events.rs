//! The conductor's events as a stream.
//!
//! The conductor keeps its last events in memory, numbered from its start. A reader that was away too long
//! for them gets an event `missed` with the number of lost ones; a cursor from before a restart starts over.

use axum::body::Bytes;
use axum::extract;
use axum::http::HeaderMap;
use carrel_conductor::State;
use carrel_conductor::drive::Handle;
use carrel_domain::TokenScope;
use carrel_http::sse;
use carrel_wire::ConductorEventsQuery;
use futures_util::stream::{self, Stream, StreamExt as _};
use serde_json::{Value, json};

use crate::conductor_api::{ConductorApi, check};
use crate::event_stream::{StreamLimits, frame_stream};
use crate::extract::{Authenticated, QueryParams, last_event};
use crate::response::RouteResult;

pub(super) async fn events(
    extract::State(api): extract::State<ConductorApi>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    QueryParams(params): QueryParams<ConductorEventsQuery>,
) -> RouteResult {
    check(&caller, TokenScope::Read)?;
    let after = last_event(&headers, params.last_event_id)?;
    api.state()?;
    let permit = Box::new(api.stream()?);
    let expires = api.now().age(caller.expires_at);
    let limits = StreamLimits { stop: api.options.stop.clone(), expires, permit };
    Ok(frame_stream(follow(api.options.handle.clone(), after), limits))
}

/// Follows the events after a number. The first item after a gap tells how many were lost.
fn follow(handle: Handle, after: u64) -> impl Stream<Item = Option<Bytes>> + Send {
    let batches = stream::unfold((handle, after, false), async |(mut handle, seen, started)| {
        if started && !handle.changed().await {
            return None;
        }
        let (frames, seen) = frames_after(&handle.state(), seen);
        Some((stream::iter(frames), (handle, seen, true)))
    });
    batches.flatten().map(Some)
}

/// Returns the events after a number, and the number of the last one.
fn frames_after(state: &State, seen: u64) -> (Vec<Bytes>, u64) {
    // A cursor of an earlier conductor is larger than any number here.
    let seen = if seen > state.notice_count { 0 } else { seen };
    let first = state.notices_after(seen).next().map_or(seen + 1, |told| told.number);
    let mut frames = Vec::new();
    if first > seen + 1 && seen > 0 {
        let missed = first - seen - 1;
        frames.push(frame(first - 1, "missed", &json!({ "missed": missed })));
    }
    frames.extend(state.notices_after(seen).map(|told| {
        let row = json!(**told);
        frame(told.number, row["what"].as_str().unwrap_or("notice"), &row)
    }));
    (frames, state.notice_count)
}

fn frame(number: u64, kind: &str, data: &Value) -> Bytes {
    sse::frame(number, Some(kind), data.to_string().as_bytes())
}
