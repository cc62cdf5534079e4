//! Finished spans, and the visitor that collects the fields of open ones.

use std::fmt;
use std::time::{Duration, SystemTime};

use tracing::field::{Field, Visit};

use crate::trace_parent::TraceParent;

/// Bytes of text in one attribute; longer text is cut. Attributes describe work, they do not carry its
/// contents.
const MAX_TEXT_BYTES: usize = 256;

/// The role of a span in an exchange, by the names and numbers of OpenTelemetry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside the process.
    #[default]
    Internal = 1,
    /// The handling of a request.
    Server = 2,
    /// The processing of a queued task.
    Consumer = 5,
}

/// The value of an attribute, in the types that OTLP has.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// Text of at most 256 bytes.
    Text(String),
    /// An integer; larger unsigned ones are clamped to `i64::MAX`.
    Number(i64),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Flag(bool),
}

/// A span that has ended, as it is exported.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedSpan {
    /// The span's own trace id, span id and sampling decision.
    pub context: TraceParent,
    /// The id of the parent span; `None` for the root of a trace.
    pub parent: Option<u64>,
    /// The static name of the span, or its `otel.name`.
    pub name: String,
    /// The role of the span.
    pub kind: SpanKind,
    /// The wall-clock time of its start.
    pub started_at: SystemTime,
    /// The time between start and end by the monotonic clock.
    pub duration: Duration,
    /// True if `otel.status_code` was recorded as `ERROR`.
    pub failed: bool,
    /// The other fields, each with the value recorded last.
    pub attributes: Vec<(&'static str, AttributeValue)>,
}

/// The fields of an open span, collected by visiting them.
#[derive(Debug, Default)]
pub(crate) struct SpanFields {
    pub(crate) parent: Option<TraceParent>,
    pub(crate) name: Option<String>,
    pub(crate) kind: SpanKind,
    pub(crate) failed: bool,
    pub(crate) attributes: Vec<(&'static str, AttributeValue)>,
}

impl SpanFields {
    fn set(&mut self, field: &Field, value: AttributeValue) {
        let name = field.name();
        match self.attributes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.attributes.push((name, value)),
        }
    }

    fn set_text(&mut self, field: &Field, mut text: String) {
        match field.name() {
            "otel.parent" => self.parent = text.parse().ok(),
            "otel.name" => self.name = Some(text),
            "otel.kind" => self.kind = kind(&text),
            "otel.status_code" => self.failed = text == "ERROR",
            _ => {
                text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
                self.set(field, AttributeValue::Text(text));
            }
        }
    }
}

fn kind(word: &str) -> SpanKind {
    match word {
        "server" => SpanKind::Server,
        "consumer" => SpanKind::Consumer,
        _ => SpanKind::Internal,
    }
}

impl Visit for SpanFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set_text(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set_text(field, value.to_owned());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, AttributeValue::Number(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, AttributeValue::Number(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, AttributeValue::Float(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, AttributeValue::Flag(value));
    }
}
