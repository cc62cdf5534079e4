//! Conversion of the template engine's reports into one sentence and a position.
//!
//! The engine prints the faulty line with a marker below it; only position and reason are kept, because
//! the line may be as long as the template.

use super::TemplateError;
use crate::diagnostic::Position;

const MAX_EXCERPT_CHARS: usize = 60;

/// Returns the error of a template at a position within it. `start` is where the template begins in its file.
pub(super) fn located(
    reason: String,
    source: &str,
    local: Position,
    start: Position,
) -> TemplateError {
    let line = source.lines().nth(local.line - 1).unwrap_or_default();
    let position = local.within(start);
    TemplateError::Parse { reason, excerpt: shortened(line), position }
}

/// Returns the engine's reason in one line, with the first fact it gives.
pub(super) fn reason(error: &liquid::Error) -> String {
    let report = error.to_string();
    let lines: Vec<&str> = report.lines().map(str::trim).collect();
    let headline = lines.iter().find_map(|line| line.strip_prefix("= "));
    let first = lines.first().map_or("", |line| line.trim_start_matches("liquid:"));
    let reason = headline.unwrap_or(first).trim().to_owned();
    match lines.iter().find(|line| is_requested(line)) {
        Some(fact) => format!("{reason} ({})", shortened(fact)),
        None => reason,
    }
}

fn is_requested(line: &str) -> bool {
    (line.starts_with("requested") || line.starts_with("name=")) && line.contains('=')
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_EXCERPT_CHARS).collect()
}

/// Returns the position in the engine's report; the start of the template if it has none.
pub(super) fn position(error: &liquid::Error) -> Position {
    report_position(&error.to_string()).unwrap_or(Position::START)
}

/// Finds ` --> line:column` in a report.
fn report_position(report: &str) -> Option<Position> {
    let (_, rest) = report.split_once("--> ")?;
    let (line, column) = rest.lines().next()?.split_once(':')?;
    let line = line.trim().parse().ok()?;
    let column = column.trim().parse().ok()?;
    (line > 0 && column > 0).then_some(Position { line, column })
}
