//! The OTLP exporter: batches of spans, sent as `http/json`, with back-off.
//!
//! A batch is sent every five seconds or when it is full. A collector that answers 429, 502, 503 or 504 is
//! retried with doubling back-off, or after its `Retry-After`, for a minute; then the batch is dropped and
//! counted. Spans never wait in memory beyond the queue's bound, and work never waits for them.

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

/// The longest time that a span waits in an incomplete batch.
const EXPORT_INTERVAL: Duration = Duration::from_secs(5);

/// The time after which a batch that the collector refuses is dropped.
const RETRY_LIMIT: Duration = Duration::from_mins(1);

/// The first and the longest back-off.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(20));

const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

/// Bounds the part of a response that is read.
const MAX_RESPONSE: ByteSize = ByteSize::kib(64);

#[derive(Debug)]
pub(super) struct Exporter {
    settings: Settings,
    queue: SpanQueue,
    connections: HttpClient,
    stop: CancellationToken,
    outage: Outage,
    failures: u32,
    retry_at: Option<Instant>,
}

struct ExportError {
    problem: String,
    retry: Retry,
}

enum Retry {
    Never,
    Backoff,
    After(Duration),
}

impl Exporter {
    pub(super) fn new(settings: Settings, queue: SpanQueue, stop: CancellationToken) -> Self {
        let (connections, outage) = (HttpClient::new(), Outage::default());
        Self { settings, queue, connections, stop, outage, failures: 0, retry_at: None }
    }

    /// Sends until `stop` is cancelled, and then the rest of the queue. The caller bounds that time.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                () = self.queue.full_batch() => {}
                () = tokio::time::sleep(EXPORT_INTERVAL) => {}
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

    /// Sends a batch with retries, and records whether it was exported or dropped.
    async fn deliver(&mut self, batch: &[FinishedSpan]) {
        let body = otlp::request(&self.settings.resource, env!("CARGO_PKG_VERSION"), batch);
        let (body, count) = (bytes::Bytes::from(body), batch.len() as u64);
        let until = Instant::now() + RETRY_LIMIT;
        loop {
            self.back_off().await;
            let error = match self.send(body.clone()).await {
                Ok(rejected) => {
                    self.failures = 0;
                    self.outage.ends(&self.settings.endpoint);
                    record_exported(count.saturating_sub(rejected));
                    return record_dropped(rejected);
                }
                Err(error) => error,
            };
            self.outage.begins(&self.settings.endpoint, &error.problem);
            let pause = match error.retry {
                Retry::Never => return record_dropped(count),
                Retry::Backoff => pause_after(self.failures),
                Retry::After(pause) => pause,
            };
            self.failures = self.failures.saturating_add(1);
            let retry_at = Instant::now() + pause;
            self.retry_at = Some(retry_at);
            if self.stop.is_cancelled() || retry_at > until {
                return record_dropped(count);
            }
        }
    }

    async fn back_off(&mut self) {
        let Some(until) = self.retry_at.take() else { return };
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            () = self.stop.cancelled() => {}
        }
    }

    /// Sends a request, and returns the number of spans that the collector rejected.
    async fn send(&self, body: bytes::Bytes) -> Result<u64, ExportError> {
        let timeout = self.settings.timeout;
        let answer = self.connections.send(self.request(body), timeout).await;
        let answer = answer.map_err(|error| ExportError::unanswered(&error))?;
        let error = ExportError::of(&answer);
        let mut body = answer.into_body();
        let answer = read_all(&mut body, MAX_RESPONSE, timeout).await;
        match error {
            Some(error) => Err(error),
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

impl ExportError {
    fn unanswered(error: &SendError) -> Self {
        let retry = match error {
            SendError::Connect(_) | SendError::Timeout { .. } | SendError::Interrupted(_) => {
                Retry::Backoff
            }
            SendError::TooLarge { .. }
            | SendError::NoRootCertificates
            | SendError::UnsupportedScheme => Retry::Never,
        };
        Self { problem: message_of(error), retry }
    }

    /// Returns none for a response of success.
    fn of<B>(answer: &Response<B>) -> Option<Self> {
        let status = answer.status();
        let retry = match status.as_u16() {
            200..=299 => return None,
            429 | 502 | 503 | 504 => retry_after(answer).map_or(Retry::Backoff, Retry::After),
            _ => Retry::Never,
        };
        Some(Self { problem: format!("it answers {status}"), retry })
    }
}

/// Returns the `Retry-After` of a response, in its form of seconds.
fn retry_after<B>(answer: &Response<B>) -> Option<Duration> {
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).clamp(BACKOFF.0, MAX_RETRY_AFTER))
}

fn pause_after(failures: u32) -> Duration {
    BACKOFF.0.saturating_mul(1 << failures.min(10)).min(BACKOFF.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_collector_is_left_alone_for_longer_and_longer() {
        let pauses: Vec<_> = (0..7).map(|failures| pause_after(failures).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 20, 20]);
        assert_eq!(pause_after(u32::MAX), BACKOFF.1);
    }

    #[test]
    fn answers_mean_what_the_specification_says() {
        let again = |status: u16, after: Option<&str>| {
            let mut answer = Response::builder().status(status);
            if let Some(after) = after {
                answer = answer.header(RETRY_AFTER, after);
            }
            match ExportError::of(&answer.body(()).unwrap()).map(|error| error.retry) {
                None => "well".to_owned(),
                Some(Retry::Never) => "never".to_owned(),
                Some(Retry::Backoff) => "soon".to_owned(),
                Some(Retry::After(pause)) => pause.as_secs().to_string(),
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
