//! Reports of linters and type checkers for Python.

use serde_json::Value;

use crate::parse::finding::{Finding, Severity};
use crate::parse::outcome::ParseContext;
use crate::parse::text;

fn owned(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

pub(super) fn ruff(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::json(&context.report())?;
    let finding = |item: &Value| {
        let start = &item["location"];
        let end = &item["end_location"];
        let severity = match item["severity"].as_str() {
            Some("warning") => Severity::Warning,
            Some("info") => Severity::Info,
            _ => Severity::Error,
        };
        Finding::new(severity, text::truncated(item["message"].as_str().unwrap_or_default()))
            .at(
                context.file(item["filename"].as_str().unwrap_or_default()),
                start["row"].as_u64(),
                start["column"].as_u64(),
            )
            .until(end["row"].as_u64(), end["column"].as_u64())
            // Older versions report syntax errors without a code.
            .rule(owned(&item["code"]).or_else(|| Some("invalid-syntax".to_owned())))
            .fixable(item["fix"].is_object())
            .url(owned(&item["url"]))
    };
    Some(report.as_array()?.iter().map(finding).collect())
}

pub(super) fn pylint(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::json(&context.stdout)?;
    let finding = |item: &Value| {
        let severity = match item["type"].as_str() {
            Some("error" | "fatal") => Severity::Error,
            Some("warning") => Severity::Warning,
            _ => Severity::Info,
        };
        // Columns are counted from 0.
        let column = |key: &str| item[key].as_u64().map(|column| column + 1);
        Finding::new(severity, text::truncated(item["message"].as_str().unwrap_or_default()))
            .at(
                context.file(item["path"].as_str().unwrap_or_default()),
                item["line"].as_u64(),
                column("column"),
            )
            .until(item["endLine"].as_u64(), column("endColumn"))
            .rule(owned(&item["symbol"]))
    };
    Some(report.as_array()?.iter().map(finding).collect())
}

pub(super) fn pyright(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::json(&context.stdout)?;
    let finding = |item: &Value| {
        let severity = match item["severity"].as_str() {
            Some("error") => Severity::Error,
            Some("warning") => Severity::Warning,
            _ => Severity::Info,
        };
        // Lines and characters are counted from 0.
        let number =
            |end: &str, key: &str| item["range"][end][key].as_u64().map(|number| number + 1);
        Finding::new(severity, text::truncated(item["message"].as_str().unwrap_or_default()))
            .at(
                context.file(item["file"].as_str().unwrap_or_default()),
                number("start", "line"),
                number("start", "character"),
            )
            .until(number("end", "line"), number("end", "character"))
            .rule(owned(&item["rule"]))
    };
    Some(report["generalDiagnostics"].as_array()?.iter().map(finding).collect())
}

/// Reads `sample.py:9:12:9:17: error: message  [return-value]`.
pub(super) fn mypy(context: &ParseContext<'_>) -> Vec<Finding> {
    context.stdout.lines().filter_map(|line| mypy_line(context, line)).collect()
}

fn mypy_line(context: &ParseContext<'_>, line: &str) -> Option<Finding> {
    let marks = [
        (": error: ", Severity::Error),
        (": warning: ", Severity::Warning),
        (": note: ", Severity::Info),
    ];
    let found = marks.iter().find_map(|(mark, severity)| Some((line.split_once(mark)?, *severity)));
    let ((location, rest), severity) = found?;
    let (message, rule) = match rest.strip_suffix(']').and_then(|rest| rest.rsplit_once("  [")) {
        Some((message, rule)) => (message, Some(rule.to_owned())),
        None => (rest, None),
    };
    let mut numbers = Vec::new();
    let mut path = location;
    while let Some((front, number)) =
        path.rsplit_once(':').and_then(|(f, n)| Some((f, n.parse::<u64>().ok()?)))
    {
        numbers.insert(0, number);
        path = front;
    }
    let number = |at: usize| numbers.get(at).copied();
    // mypy reports the last column inclusively.
    let end_column = number(3).map(|column| column + 1);
    Some(
        Finding::new(severity, text::truncated(message))
            .at(context.file(path), number(0), number(1))
            .until(number(2), end_column)
            .rule(rule),
    )
}

/// Reads `sample.py:4:1: E302 expected 2 blank lines`.
pub(super) fn flake8(context: &ParseContext<'_>) -> Vec<Finding> {
    let read = |line: &str| {
        let (location, rest) = line.split_once(": ")?;
        let (path, row, column) = text::location(location)?;
        let (rule, message) = rest.split_once(' ')?;
        let severity =
            if rule.starts_with(['E', 'F']) { Severity::Error } else { Severity::Warning };
        let finding = Finding::new(severity, text::truncated(message)).rule(Some(rule.to_owned()));
        Some(finding.at(context.file(path), Some(row), column))
    };
    context.stdout.lines().filter_map(read).collect()
}
