//! A span that is over, and the fields that it is made from.

use std::fmt;
use std::time::{Duration, SystemTime};

use tracing::field::{Field, Visit};

use crate::context::TraceParent;

/// Bytes of a text in an attribute. What is longer is cut: a span is no place for contents.
const MAX_TEXT: usize = 256;

/// Whose part in a conversation a span is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Nobody else's.
    #[default]
    Internal,
    /// That of whoever answers.
    Server,
    /// That of whoever works off what was queued.
    Consumer,
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Number(i64),
    /// A number.
    Float(f64),
    /// Yes or no.
    Flag(bool),
}

/// A span that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// What others name it.
    pub context: TraceParent,
    /// The id of the span that it is a part of.
    pub parent: Option<u64>,
    /// What was done.
    pub name: String,
    /// Whose part it is.
    pub kind: Kind,
    /// When it began.
    pub began: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// Whether it went wrong.
    pub failed: bool,
    /// What else there is to know.
    pub attributes: Vec<(&'static str, Value)>,
}

/// What is known of a span that is not over.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub(crate) parent: Option<TraceParent>,
    pub(crate) name: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) failed: bool,
    pub(crate) attributes: Vec<(&'static str, Value)>,
}

impl Fields {
    fn set(&mut self, field: &Field, value: Value) {
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
                text.truncate(text.floor_char_boundary(MAX_TEXT));
                self.set(field, Value::Text(text));
            }
        }
    }
}

fn kind(word: &str) -> Kind {
    match word {
        "server" => Kind::Server,
        "consumer" => Kind::Consumer,
        _ => Kind::Internal,
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set_text(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set_text(field, value.to_owned());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, Value::Number(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, Value::Number(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, Value::Float(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, Value::Flag(value));
    }
}
