//! Sending spans to a collector.

use std::time::Duration;

use carrel_client::{Body, HttpClient, SendError, full_body, read_all};
use carrel_domain::{ByteSize, message_of};
use carrel_traces::{FinishedSpan, MAX_BATCH, SpanQueue, otlp, record_dropped, record_exported};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::outage::Outage;
use super::settings::Settings;

/// How long a span waits to be sent, unless there are enough for a request.
const EVERY: Duration = Duration::from_secs(5);

/// How long spans are tried again that the collector does not take.
const GIVE_UP: Duration = Duration::from_mins(1);

/// The shortest and the longest pause before they are tried again.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(20));

/// The longest pause that a collector may ask for.
const MAX_ASKED: Duration = Duration::from_mins(5);

/// What is read of an answer.
const MAX_ANSWER: ByteSize = ByteSize::kib(64);

/// Sends spans to a collector.
#[derive(Debug)]
pub(super) struct Exporter {
    settings: Settings,
    queue: SpanQueue,
    connections: HttpClient,
    stop: CancellationToken,
    outage: Outage,
    /// Requests that failed one after the other.
    failures: u32,
    /// When the collector may be asked again.
    rests_until: Option<Instant>,
}

/// Why a collector did not take spans.
struct Refusal {
    problem: String,
    /// When to try again; never if that would not help.
    again: Again,
}

enum Again {
    Never,
    Soon,
    After(Duration),
}

impl Exporter {
    pub(super) fn new(settings: Settings, queue: SpanQueue, stop: CancellationToken) -> Self {
        let (connections, outage) = (HttpClient::new(), Outage::default());
        Self { settings, queue, connections, stop, outage, failures: 0, rests_until: None }
    }

    /// Sends until it is told to stop, and then what is left. Whoever told it waits only so long.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                () = self.queue.full_batch() => {}
                () = tokio::time::sleep(EVERY) => {}
                () = self.stop.cancelled() => {}
            }
            let stops = self.stop.is_cancelled();
            loop {
                let batch = self.queue.take();
                if batch.is_empty() {
                    break;
                }
                let was_full = batch.len() == MAX_BATCH;
                self.deliver(&batch).await;
                if !was_full && !stops {
                    break;
                }
            }
            self.outage.tell_lost();
            if stops {
                return self.outage.tell_rest();
            }
        }
    }

    /// Sends spans, again and again for a while if need be.
    async fn deliver(&mut self, batch: &[FinishedSpan]) {
        let body = otlp::request(&self.settings.resource, env!("CARGO_PKG_VERSION"), batch);
        let (body, count) = (bytes::Bytes::from(body), batch.len() as u64);
        let until = Instant::now() + GIVE_UP;
        loop {
            self.rest().await;
            let refusal = match self.send(body.clone()).await {
                Ok(rejected) => {
                    self.failures = 0;
                    self.outage.ends(&self.settings.endpoint);
                    record_exported(count.saturating_sub(rejected));
                    return record_dropped(rejected);
                }
                Err(refusal) => refusal,
            };
            self.outage.begins(&self.settings.endpoint, &refusal.problem);
            let pause = match refusal.again {
                Again::Never => return record_dropped(count),
                Again::Soon => pause_after(self.failures),
                Again::After(pause) => pause,
            };
            self.failures = self.failures.saturating_add(1);
            let again = Instant::now() + pause;
            self.rests_until = Some(again);
            if self.stop.is_cancelled() || again > until {
                return record_dropped(count);
            }
        }
    }

    /// Leaves the collector alone for as long as it should be, unless there is no time for that.
    async fn rest(&mut self) {
        let Some(until) = self.rests_until.take() else { return };
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            () = self.stop.cancelled() => {}
        }
    }

    /// Sends a request, and returns how many of its spans the collector does not want.
    async fn send(&self, body: bytes::Bytes) -> Result<u64, Refusal> {
        let timeout = self.settings.timeout;
        let answer = self.connections.send(self.request(body), timeout).await;
        let answer = answer.map_err(|error| Refusal::unanswered(&error))?;
        let refusal = Refusal::of(&answer);
        let mut body = answer.into_body();
        let answer = read_all(&mut body, MAX_ANSWER, timeout).await;
        match refusal {
            Some(refusal) => Err(refusal),
            None => Ok(self.rejected(&answer.unwrap_or_default())),
        }
    }

    fn rejected(&self, answer: &[u8]) -> u64 {
        let Some((rejected, why)) = otlp::rejected(answer) else { return 0 };
        tracing::debug!(endpoint = %self.settings.endpoint, rejected, why, "spans were rejected");
        rejected
    }

    fn request(&self, body: bytes::Bytes) -> Request<Body> {
        let mut request = Request::new(full_body(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.settings.endpoint.clone();
        *request.headers_mut() = self.settings.headers.clone();
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
        request
    }
}

impl Refusal {
    fn unanswered(error: &SendError) -> Self {
        let again = match error {
            SendError::Connect(_) | SendError::Timeout { .. } | SendError::Interrupted(_) => {
                Again::Soon
            }
            SendError::TooLarge { .. }
            | SendError::NoRootCertificates
            | SendError::UnsupportedScheme => Again::Never,
        };
        Self { problem: message_of(error), again }
    }

    /// Returns nothing if the answer is a good one.
    fn of<B>(answer: &Response<B>) -> Option<Self> {
        let status = answer.status();
        let again = match status.as_u16() {
            200..=299 => return None,
            429 | 502 | 503 | 504 => asked_pause(answer).map_or(Again::Soon, Again::After),
            _ => Again::Never,
        };
        Some(Self { problem: format!("it answers {status}"), again })
    }
}

/// Returns how long a collector wants to be left alone.
fn asked_pause<B>(answer: &Response<B>) -> Option<Duration> {
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).clamp(PAUSES.0, MAX_ASKED))
}

fn pause_after(failures: u32) -> Duration {
    PAUSES.0.saturating_mul(1 << failures.min(10)).min(PAUSES.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_collector_is_left_alone_for_longer_and_longer() {
        let pauses: Vec<_> = (0..7).map(|failures| pause_after(failures).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 20, 20]);
        assert_eq!(pause_after(u32::MAX), PAUSES.1);
    }

    #[test]
    fn answers_mean_what_the_specification_says() {
        let again = |status: u16, after: Option<&str>| {
            let mut answer = Response::builder().status(status);
            if let Some(after) = after {
                answer = answer.header(RETRY_AFTER, after);
            }
            match Refusal::of(&answer.body(()).unwrap()).map(|refusal| refusal.again) {
                None => "well".to_owned(),
                Some(Again::Never) => "never".to_owned(),
                Some(Again::Soon) => "soon".to_owned(),
                Some(Again::After(pause)) => pause.as_secs().to_string(),
            }
        };
        for (status, after, expected) in [
            (200, None, "well"),
            (202, None, "well"),
            (301, None, "never"),
            (400, Some("5"), "never"),
            (401, None, "never"),
            (404, None, "never"),
            (429, None, "soon"),
            (429, Some("7"), "7"),
            (502, Some("0"), "1"),
            (503, Some("99999999999"), "300"),
            (503, Some("99999999999999999999999"), "soon"),
            (503, Some("soon"), "soon"),
            (504, Some("-1"), "soon"),
            (500, None, "never"),
        ] {
            assert_eq!(again(status, after), expected, "{status} {after:?}");
        }
    }
}
