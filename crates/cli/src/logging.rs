//! Log lines on stderr: `LEVEL Sentence key=value …` for people, one JSON object each for programs.
//!
//! A failure is logged where it happens, and ends a command with an error that says the same. For people a
//! command that ends holds such lines back: a line that the error repeats is dropped, every other one shown
//! before it. With `-v` and with `--json` all lines are shown at once.

mod file;

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use carrel_config::environment;
use carrel_traces::SpanLayer;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry};

use crate::output::{Format, Invocation, printable};
use file::LogFile;

#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSettings<'a> {
    /// Logs at level `info` without `-v`.
    pub(crate) verbose: bool,
    /// Holds lines about failures back until the command ends.
    pub(crate) holds: bool,
    pub(crate) root: Option<&'a Path>,
}

/// Installs the subscriber. `-v` sets the level, else `CARREL_LOG`, else `LOG_LEVEL`.
pub(crate) fn start(
    cli: &Invocation,
    verbose: u8,
    logs: LogSettings<'_>,
    spans: Option<SpanLayer>,
) {
    let level = match verbose {
        0 if logs.verbose => "info",
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let setting = [environment::CARREL_LOG, environment::LOG_LEVEL]
        .into_iter()
        .find_map(|name| cli.environment.get_str(name))
        .filter(|_| verbose == 0)
        .unwrap_or(level);
    // A call that a client got wrong is answered; it is no event of the server.
    let setting = format!("rmcp=error,{setting}");
    let filter = EnvFilter::try_new(setting).unwrap_or_else(|_| EnvFilter::new(level));
    let file = logs.root.map(LogFile::open);
    let holds = logs.holds && verbose == 0 && cli.format == Format::Text;
    let lines = Lines { format: cli.format, holds, file };
    match spans {
        None => Registry::default().with(filter).with(lines).init(),
        // Each has a filter of its own: what is shown decides nothing about what is traced.
        Some(spans) => {
            let (lines, spans) = (
                lines.with_filter(filter),
                spans.with_filter(filter_fn(carrel_traces::is_carrel_span)),
            );
            Registry::default().with(lines).with(spans).init();
        }
    }
}

/// Set while the dashboard owns the terminal.
static OFF_THE_TERMINAL: AtomicBool = AtomicBool::new(false);

/// Keeps log lines off a terminal that shows the dashboard. They still go to the log file.
pub(crate) fn keep_off_the_terminal(off: bool) {
    OFF_THE_TERMINAL.store(off, Ordering::Relaxed);
}

pub(crate) fn is_off_the_terminal() -> bool {
    OFF_THE_TERMINAL.load(Ordering::Relaxed)
}

/// Lines about failures that wait for the end of the command.
static HELD: Mutex<Vec<HeldLine>> = Mutex::new(Vec::new());

struct HeldLine {
    text: String,
    /// The values that an error about the same failure repeats.
    causes: Vec<String>,
}

/// Shows the lines that were held back, except repetitions of the error of the command.
pub(crate) fn show_held(error: Option<&str>) {
    let held = std::mem::take(&mut *HELD.lock().unwrap_or_else(PoisonError::into_inner));
    let repeats = |line: &HeldLine| {
        error.is_some_and(|error| line.causes.iter().any(|cause| error.contains(cause.as_str())))
    };
    for line in held.iter().filter(|line| !repeats(line)) {
        let _ = io::stderr().lock().write_all(line.text.as_bytes());
    }
}

struct Lines {
    format: Format,
    holds: bool,
    file: Option<LogFile>,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = event.metadata().level().as_str();
        let mut line = match self.format {
            Format::Text => fields.text(level),
            Format::Json => fields.json(&level.to_ascii_lowercase()),
        };
        line.push('\n');
        let causes = if self.holds { fields.causes() } else { Vec::new() };
        if !causes.is_empty() {
            let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
            held.push(HeldLine { text: line, causes });
            return;
        }
        if !is_off_the_terminal() || !io::stderr().is_terminal() {
            // One write for each line, so that lines of several processes do not mix.
            let _ = io::stderr().lock().write_all(line.as_bytes());
        }
        if let Some(file) = &self.file {
            file.write(&fields.json(&level.to_ascii_lowercase()));
        }
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    values: Vec<(&'static str, Value)>,
}

impl Fields {
    /// Returns the values that identify a failure: its error, and the log of its hook.
    fn causes(&self) -> Vec<String> {
        let identifying = self.values.iter().filter(|(name, _)| matches!(*name, "error" | "log"));
        identifying.filter_map(|(_, value)| value.as_str().map(str::to_owned)).collect()
    }

    fn text(&self, level: &str) -> String {
        let mut line = format!("{level} {}", printable(&self.message));
        for (name, value) in &self.values {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            write!(line, " {name}={}", quoted(&text)).expect("writing to a string cannot fail");
        }
        line
    }

    fn json(&self, level: &str) -> String {
        let fields: Map<_, _> =
            self.values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        json!({ "level": level, "message": self.message, "fields": fields }).to_string()
    }

    fn push(&mut self, field: &Field, value: Value) {
        self.values.push((field.name(), value));
    }
}

/// Values that a reader could take for several words are put in quotes.
fn quoted(text: &str) -> String {
    let plain =
        !text.is_empty() && !text.contains([' ', '"', '=']) && !text.contains(char::is_control);
    if plain { text.to_owned() } else { format!("{text:?}") }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.push(field, format!("{value:?}").into());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_only_when_they_must_be() {
        for (value, line) in
            [("ABC-1", "ABC-1"), ("a b", "\"a b\""), ("", "\"\""), ("x\ny", "\"x\\ny\"")]
        {
            assert_eq!(quoted(value), line);
        }
    }

    #[test]
    fn a_line_is_the_sentence_and_then_the_fields_in_order() {
        let fields = Fields {
            message: "Workspace hook timed out".into(),
            values: vec![("hook", "after_create".into()), ("timeout_ms", 60000.into())],
        };
        assert_eq!(
            fields.text("WARN"),
            "WARN Workspace hook timed out hook=after_create timeout_ms=60000"
        );
        assert_eq!(
            fields.json("warn"),
            r#"{"level":"warn","message":"Workspace hook timed out","fields":{"hook":"after_create","timeout_ms":60000}}"#
        );
    }
}
