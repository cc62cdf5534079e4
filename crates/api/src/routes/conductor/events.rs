//! The conductor's events as a stream.
//!
//! The conductor keeps its last events in memory, numbered from its start. A reader that was away too long
//! for them gets an event `missed` with the number of lost ones; a cursor from before a restart starts over.

use carrel_domain::TokenScope;
use std::collections::VecDeque;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use carrel_conductor::drive::Handle;
use carrel_http::sse;
use carrel_wire::ConductorEventsQuery;
use futures_util::stream::{self, Stream};
use serde_json::{Value, json};

use crate::conductor_api::{ConductorApi, check};
use crate::event_stream::{StreamLimits, frame_stream};
use crate::extract::{Authenticated, QueryParams};
use crate::response::{ErrorResponse, RouteResult};

const LAST_EVENT: &str = "last-event-id";

pub(super) async fn events(
    State(api): State<ConductorApi>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    QueryParams(params): QueryParams<ConductorEventsQuery>,
) -> RouteResult {
    check(&caller, TokenScope::Read)?;
    let seen = headers.get(LAST_EVENT).map(|value| value.to_str().ok()?.trim().parse().ok());
    let after = match seen {
        None => params.last_event_id.unwrap_or(0),
        Some(Some(number)) => number,
        Some(None) => {
            return Err(ErrorResponse::field("Last-Event-ID", "is the number of an event"));
        }
    };
    api.state()?;
    let permit = Box::new(api.stream()?);
    let expires = api.now().age(caller.expires_at);
    let limits = StreamLimits { stop: api.stop().clone(), expires, permit };
    Ok(frame_stream(follow(api.handle().clone(), after), limits))
}

struct Follower {
    handle: Handle,
    seen: u64,
    ready: VecDeque<Bytes>,
    started: bool,
}

/// Follows the events after a number. The first item after a gap tells how many were lost.
fn follow(handle: Handle, after: u64) -> impl Stream<Item = Option<Bytes>> + Send {
    let follower = Follower { handle, seen: after, ready: VecDeque::new(), started: false };
    stream::unfold(follower, |mut follower| async move {
        let frame = follower.next().await?;
        Some((Some(frame), follower))
    })
}

impl Follower {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            if std::mem::replace(&mut self.started, true) && !self.handle.changed().await {
                return None;
            }
            self.collect();
        }
    }

    fn collect(&mut self) {
        let state = self.handle.state();
        // A cursor of an earlier conductor is larger than any number here.
        let seen = if self.seen > state.notice_count { 0 } else { self.seen };
        let first = state.notices_after(seen).next().map_or(seen + 1, |told| told.number);
        if first > seen + 1 && seen > 0 {
            let missed = first - seen - 1;
            self.ready.push_back(frame(first - 1, "missed", &json!({ "missed": missed })));
        }
        for told in state.notices_after(seen) {
            let row = json!(**told);
            let kind = row["what"].as_str().unwrap_or("notice").to_owned();
            self.ready.push_back(frame(told.number, &kind, &row));
        }
        self.seen = state.notice_count;
    }
}

fn frame(number: u64, kind: &str, data: &Value) -> Bytes {
    sse::frame(number, Some(kind), data.to_string().as_bytes())
}
