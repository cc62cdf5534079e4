//! Diagnostics of one line each, in the formats of GCC, Go, TypeScript and `MSBuild`.

use crate::parse::finding::{Finding, Severity};
use crate::parse::outcome::ParseContext;
use crate::parse::text;

const SEVERITIES: [(&str, Severity); 6] = [
    ("fatal error: ", Severity::Error),
    ("error: ", Severity::Error),
    ("warning: ", Severity::Warning),
    ("note: ", Severity::Info),
    ("info: ", Severity::Info),
    ("hint: ", Severity::Info),
];

/// Reads `path:line:column: error: message` from both output streams.
pub(crate) fn read(context: &ParseContext<'_>) -> Vec<Finding> {
    [read_text(context, &context.stderr), read_text(context, &context.stdout)].concat()
}

pub(crate) fn read_text(context: &ParseContext<'_>, output: &str) -> Vec<Finding> {
    output.lines().filter_map(|line| read_line(context, line)).collect()
}

fn read_line(context: &ParseContext<'_>, line: &str) -> Option<Finding> {
    let line = line.strip_prefix("vet: ").unwrap_or(line);
    let (location, rest) = line.split_once(": ")?;
    let (path, row, column) = text::location(location)?;
    if path.is_empty() || path.contains(' ') || crate::paths::extension(path).is_empty() {
        return None;
    }
    let marked =
        SEVERITIES.iter().find_map(|(mark, severity)| Some((rest.strip_prefix(mark)?, *severity)));
    let (message, severity) = marked.unwrap_or((rest, Severity::Error));
    let (message, rule) = flag(message);
    let finding = Finding::new(severity, text::truncated(message)).rule(rule);
    Some(finding.at(context.file(path), Some(row), column))
}

/// Splits the flag of a warning, such as `[-Wunused]`, from the end of a message.
fn flag(message: &str) -> (&str, Option<String>) {
    let split = message.strip_suffix(']').and_then(|rest| rest.rsplit_once(" [-"));
    match split {
        Some((message, flag)) => (message, Some(format!("-{flag}"))),
        None => (message, None),
    }
}

/// Reads `path(line,column): error CODE: message`.
pub(crate) fn read_parenthesised(context: &ParseContext<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for line in context.stdout.lines() {
        match read_parenthesised_line(context, line) {
            Some(finding) => findings.push(finding),
            // Indented lines continue the message.
            None if line.starts_with("  ") => {
                if let Some(last) = findings.last_mut() {
                    last.message = text::truncated(&format!("{}\n{line}", last.message));
                }
            }
            None => {}
        }
    }
    findings
}

fn read_parenthesised_line(context: &ParseContext<'_>, line: &str) -> Option<Finding> {
    let at_file = line.trim_start().split_once("): ").and_then(|(front, rest)| {
        let (path, numbers) = front.rsplit_once('(')?;
        let (row, column) = numbers.split_once(',')?;
        let column = column.split(',').next()?;
        Some((Some((path, row.parse::<u64>().ok()?, column.parse::<u64>().ok()?)), rest))
    });
    // An error of the configuration has no location.
    let (location, rest) = at_file.unwrap_or((None, line));
    let (severity, rest) = match rest.split_once(' ')? {
        ("error", rest) => (Severity::Error, rest),
        ("warning", rest) => (Severity::Warning, rest),
        _ => return None,
    };
    let (rule, message) = rest.split_once(": ")?;
    let is_code = rule.starts_with(|c: char| c.is_ascii_uppercase()) && !rule.contains(' ');
    if !is_code {
        return None;
    }
    let finding = Finding::new(severity, text::truncated(message)).rule(Some(rule.to_owned()));
    Some(match location {
        Some((path, row, column)) => finding.at(context.file(path), Some(row), Some(column)),
        None => finding,
    })
}
