//! JSON reports of linters and type checkers.
//!
//! They list diagnostics with the same parts under different names; each reader names them, and
//! decides about the severity and what is special about its tool.

use serde_json::Value;

use crate::parse::{Finding, ParseContext, Severity, text};

use super::compiler_lines;
use super::formatters::NOT_IN_STYLE;

/// A diagnostic in a report, and the file that it is about.
struct Diagnostic<'a> {
    severity: Severity,
    file: &'a str,
    value: &'a Value,
}

impl Diagnostic<'_> {
    /// Creates a finding from the parts of the diagnostic.
    ///
    /// `parts` are the JSON pointers of message, line, column, end line, end column, rule and web
    /// page, separated by spaces; `-` stands for a part that the tool does not report. `first` is
    /// added to the four numbers, for tools that count from 0.
    fn finding(&self, context: &ParseContext<'_>, parts: &str, first: [u64; 4]) -> Finding {
        let parts: Vec<_> = parts.split(' ').map(|part| self.value.pointer(part)).collect();
        let text = |at: usize| parts.get(at).copied().flatten().and_then(Value::as_str);
        let number = |at: usize| {
            let number = parts.get(at).copied().flatten().and_then(Value::as_u64)?;
            Some(number.saturating_add(first[at - 1]))
        };
        Finding::new(self.severity, text::truncated(text(0).unwrap_or_default()))
            .at(context.file(self.file), number(1), number(2))
            .until(number(3), number(4))
            .rule(text(5))
            .url(text(6))
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn severity(name: &str, other: Severity) -> Severity {
    match name {
        "error" | "fatal" => Severity::Error,
        "warning" | "warn" => Severity::Warning,
        "info" => Severity::Info,
        _ => other,
    }
}

pub(crate) fn eslint(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::document(context, &context.report())?;
    let mut findings = Vec::new();
    for file in report.as_array()? {
        for value in list(&file["messages"]) {
            let severity = if value["severity"] == 2 { Severity::Error } else { Severity::Warning };
            let found = Diagnostic { severity, file: text_of(&file["filePath"]), value };
            let parts = "/message /line /column /endLine /endColumn /ruleId";
            let finding = found.finding(context, parts, [0; 4]);
            findings.push(finding.fixable(value["fix"].is_object()));
        }
    }
    Some(findings)
}

pub(crate) fn biome(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::document(context, &context.stdout)?;
    let read = |value: &Value| {
        let path = &value["location"]["path"];
        let file = path.as_str().unwrap_or_else(|| text_of(&path["file"]));
        let severity = severity(value["severity"].as_str().unwrap_or("error"), Severity::Info);
        let message = if value["message"].is_string() { "/message" } else { "/description" };
        let range = "/location/start/line /location/start/column \
                     /location/end/line /location/end/column";
        let parts = format!("{message} {range} /category");
        let mut finding = Diagnostic { severity, file, value }.finding(context, &parts, [0; 4]);
        let Finding { line, column, end_line, end_column, .. } = &mut finding;
        for number in [line, column, end_line, end_column] {
            // Findings about a whole file have line 0.
            *number = number.filter(|number| *number > 0);
        }
        if value["category"] == "format" {
            NOT_IN_STYLE.clone_into(&mut finding.message);
        }
        finding
    };
    Some(report["diagnostics"].as_array()?.iter().map(read).collect())
}

pub(crate) fn oxlint(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::document(context, &context.stdout)?;
    let read = |value: &Value| {
        let severity = severity(value["severity"].as_str().unwrap_or("error"), Severity::Info);
        let found = Diagnostic { severity, file: text_of(&value["filename"]), value };
        let parts = "/message /labels/0/span/line /labels/0/span/column - - /code /url";
        found.finding(context, parts, [0; 4])
    };
    Some(report["diagnostics"].as_array()?.iter().map(read).collect())
}

pub(crate) fn deno(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::document(context, &context.stdout)?;
    let severity = Severity::Error;
    let read = |value: &Value| {
        let found = Diagnostic { severity, file: text_of(&value["filename"]), value };
        let parts = "/message /range/start/line /range/start/col /range/end/line /range/end/col \
                     /code";
        let fixes = value["fixes"].as_array();
        let finding = found.finding(context, parts, [0, 1, 0, 1]);
        finding.fixable(fixes.is_some_and(|fixes| !fixes.is_empty()))
    };
    let broken = |value: &Value| {
        let found = Diagnostic { severity, file: text_of(&value["file_path"]), value };
        found.finding(context, "/message", [0; 4])
    };
    let findings = report["diagnostics"].as_array()?.iter().map(read);
    Some(findings.chain(list(&report["errors"]).map(broken)).collect())
}

pub(crate) fn ruff(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::document(context, &context.report())?;
    let read = |value: &Value| {
        let severity = severity(text_of(&value["severity"]), Severity::Error);
        let found = Diagnostic { severity, file: text_of(&value["filename"]), value };
        let parts = "/message /location/row /location/column /end_location/row \
                     /end_location/column /code /url";
        let mut finding = found.finding(context, parts, [0; 4]);
        // Older versions report syntax errors without a code.
        finding.rule.get_or_insert_with(|| "invalid-syntax".to_owned());
        finding.fixable(value["fix"].is_object())
    };
    Some(report.as_array()?.iter().map(read).collect())
}

pub(crate) fn pylint(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::document(context, &context.stdout)?;
    let read = |value: &Value| {
        let severity = severity(text_of(&value["type"]), Severity::Info);
        let found = Diagnostic { severity, file: text_of(&value["path"]), value };
        let parts = "/message /line /column /endLine /endColumn /symbol";
        found.finding(context, parts, [0, 1, 0, 1])
    };
    Some(report.as_array()?.iter().map(read).collect())
}

pub(crate) fn pyright(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::document(context, &context.stdout)?;
    let read = |value: &Value| {
        let severity = severity(text_of(&value["severity"]), Severity::Info);
        let found = Diagnostic { severity, file: text_of(&value["file"]), value };
        let parts = "/message /range/start/line /range/start/character /range/end/line \
                     /range/end/character /rule";
        found.finding(context, parts, [1; 4])
    };
    Some(report["generalDiagnostics"].as_array()?.iter().map(read).collect())
}

/// Reads the report of `RuboCop`, whose conventions and refactorings count as warnings.
pub(crate) fn rubocop(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::document(context, &context.report())?;
    let mut findings = Vec::new();
    for file in report["files"].as_array()? {
        for value in list(&file["offenses"]) {
            let severity = severity(text_of(&value["severity"]), Severity::Warning);
            let found = Diagnostic { severity, file: text_of(&file["path"]), value };
            let parts = "/message /location/start_line /location/start_column \
                         /location/last_line /location/last_column /cop_name";
            let finding = found.finding(context, parts, [0, 0, 0, 1]);
            findings.push(finding.fixable(value["correctable"] == Value::Bool(true)));
        }
    }
    Some(findings)
}

/// Reads the report of `PHPStan`. Errors without a file, such as a broken configuration, become
/// findings without a location.
pub(crate) fn phpstan(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::document(context, &context.stdout)?;
    let mut findings: Vec<Finding> = Vec::new();
    for (file, entry) in report["files"].as_object().into_iter().flatten() {
        let read = |value| {
            let found = Diagnostic { severity: Severity::Error, file, value };
            found.finding(context, "/message /line - - - /identifier", [0; 4])
        };
        findings.extend(list(&entry["messages"]).map(read));
    }
    findings.extend(list(&report["errors"]).filter_map(Value::as_str).map(Finding::error));
    report["totals"].is_object().then_some(findings)
}

/// Reads `main.go:3:2: message (linter)` of golangci-lint, whose option for JSON differs between
/// major versions; JSON is accepted if the project's own settings select it.
pub(crate) fn golangci(context: &ParseContext<'_>) -> Vec<Finding> {
    if let Some(report) =
        text::document(context, &context.stdout).filter(|report| report["Issues"].is_array())
    {
        return list(&report["Issues"]).map(|issue| golangci_issue(context, issue)).collect();
    }
    let mut findings = compiler_lines::read_text(context, &context.stdout);
    for finding in &mut findings {
        // The linter is in the last parentheses; earlier ones belong to the message.
        let split = finding.message.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
        if let Some((message, rule)) = split {
            finding.rule = Some(rule.to_owned());
            finding.message = message.to_owned();
        }
    }
    findings
}

fn golangci_issue(context: &ParseContext<'_>, value: &Value) -> Finding {
    let severity = if value["Severity"] == "warning" { Severity::Warning } else { Severity::Error };
    let found = Diagnostic { severity, file: text_of(&value["Pos"]["Filename"]), value };
    let finding = found.finding(context, "/Text /Pos/Line /Pos/Column - - /FromLinter", [0; 4]);
    Finding { column: finding.column.filter(|column| *column > 0), ..finding }
        .fixable(!value["Replacement"].is_null() || !value["SuggestedFixes"].is_null())
}
