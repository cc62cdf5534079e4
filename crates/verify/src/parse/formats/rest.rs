//! The reports of linters of the other ecosystems.

use serde_json::Value;

use crate::parse::context::Context;
use crate::parse::finding::{Finding, Severity};
use crate::parse::text;

use super::lines;

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// `main.go:3:2: message (linter)`, or the JSON of somebody who asked for it.
pub(super) fn golangci(context: &Context<'_>) -> Vec<Finding> {
    if let Some(issues) = text::json(&context.stdout).filter(|report| report["Issues"].is_array()) {
        return list(&issues["Issues"]).map(|issue| golangci_issue(context, issue)).collect();
    }
    let mut findings = lines::read_text(context, &context.stdout);
    for finding in &mut findings {
        // The linter is the last word in brackets; brackets before it belong to the message.
        let split = finding.message.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
        if let Some((message, rule)) =
            split.map(|(message, rule)| (message.to_owned(), rule.to_owned()))
        {
            (finding.message, finding.rule) = (message, Some(rule));
        }
    }
    findings
}

fn golangci_issue(context: &Context<'_>, issue: &Value) -> Finding {
    let place = &issue["Pos"];
    let severity = if issue["Severity"] == "warning" { Severity::Warning } else { Severity::Error };
    let name = context.file(place["Filename"].as_str().unwrap_or_default());
    Finding::new(severity, text::bounded(issue["Text"].as_str().unwrap_or_default()))
        .at(name, place["Line"].as_u64(), place["Column"].as_u64().filter(|column| *column > 0))
        .rule(issue["FromLinter"].as_str().map(str::to_owned))
        .fixable(!issue["Replacement"].is_null() || !issue["SuggestedFixes"].is_null())
}

pub(super) fn rubocop(context: &Context<'_>) -> Option<Vec<Finding>> {
    let report = text::json(&context.report())?;
    let mut findings = Vec::new();
    for file in report["files"].as_array()? {
        let name = context.file(file["path"].as_str().unwrap_or_default());
        for offense in list(&file["offenses"]) {
            let severity = match offense["severity"].as_str() {
                Some("error" | "fatal") => Severity::Error,
                Some("info") => Severity::Info,
                _ => Severity::Warning,
            };
            let place = &offense["location"];
            let number = |key: &str| place[key].as_u64();
            findings.push(
                Finding::new(
                    severity,
                    text::bounded(offense["message"].as_str().unwrap_or_default()),
                )
                .at(name.clone(), number("start_line"), number("start_column"))
                .until(number("last_line"), number("last_column").map(|column| column + 1))
                .rule(offense["cop_name"].as_str().map(str::to_owned))
                .fixable(offense["correctable"] == Value::Bool(true)),
            );
        }
    }
    Some(findings)
}

pub(super) fn phpstan(context: &Context<'_>) -> Option<Vec<Finding>> {
    let report = text::json(&context.stdout)?;
    let files = report["files"].as_object();
    let mut findings: Vec<Finding> = Vec::new();
    for (file, entry) in files.into_iter().flatten() {
        for message in list(&entry["messages"]) {
            let said = text::bounded(message["message"].as_str().unwrap_or_default());
            findings.push(
                Finding::new(Severity::Error, said)
                    .at(context.file(file), message["line"].as_u64(), None)
                    .rule(message["identifier"].as_str().map(str::to_owned)),
            );
        }
    }
    let general = list(&report["errors"]).filter_map(Value::as_str);
    findings.extend(general.map(|said| Finding::new(Severity::Error, text::bounded(said))));
    report["totals"].is_object().then_some(findings)
}

/// `e: file:///w/src/A.kt:3:5 message`
pub(super) fn kotlin(context: &Context<'_>) -> Vec<Finding> {
    let read = |line: &str| {
        let (place, message) = line.strip_prefix("e: ")?.split_once(' ')?;
        let (path, row, column) = text::place(place)?;
        let finding = Finding::new(Severity::Error, text::bounded(message));
        Some(finding.at(context.file(path), Some(row), column))
    };
    let lines = context.stderr.lines().chain(context.stdout.lines());
    lines.filter_map(read).collect()
}

/// `[ERROR] /w/src/A.java:[3,5] message`
pub(super) fn maven(context: &Context<'_>) -> Vec<Finding> {
    let read = |line: &str| {
        let rest = line.strip_prefix("[ERROR] ")?;
        let (path, rest) = rest.split_once(":[")?;
        let (numbers, message) = rest.split_once("] ")?;
        let (row, column) = numbers.split_once(',')?;
        let finding = Finding::new(Severity::Error, text::bounded(message));
        Some(finding.at(context.file(path), row.parse().ok(), column.parse().ok()))
    };
    let mut findings: Vec<Finding> = Vec::new();
    // Maven repeats its errors at the end.
    for finding in context.stdout.lines().filter_map(read) {
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    findings
}
