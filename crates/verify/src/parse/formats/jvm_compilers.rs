//! Compiler errors in the output of Maven and of the Kotlin compiler. They are build errors of a
//! test run, whose report does not contain them.

use crate::parse::finding::{Finding, Severity};
use crate::parse::outcome::ParseContext;
use crate::parse::text;

/// Reads `e: file:///w/src/A.kt:3:5 message`.
pub(super) fn kotlin(context: &ParseContext<'_>) -> Vec<Finding> {
    let read = |line: &str| {
        let (location, message) = line.strip_prefix("e: ")?.split_once(' ')?;
        let (path, row, column) = text::location(location)?;
        let finding = Finding::new(Severity::Error, text::truncated(message));
        Some(finding.at(context.file(path), Some(row), column))
    };
    let lines = context.stderr.lines().chain(context.stdout.lines());
    lines.filter_map(read).collect()
}

/// Reads `[ERROR] /w/src/A.java:[3,5] message`.
pub(super) fn maven(context: &ParseContext<'_>) -> Vec<Finding> {
    let read = |line: &str| {
        let rest = line.strip_prefix("[ERROR] ")?;
        let (path, rest) = rest.split_once(":[")?;
        let (numbers, message) = rest.split_once("] ")?;
        let (row, column) = numbers.split_once(',')?;
        let finding = Finding::new(Severity::Error, text::truncated(message));
        Some(finding.at(context.file(path), row.parse().ok(), column.parse().ok()))
    };
    let mut findings: Vec<Finding> = Vec::new();
    // Maven prints its errors twice.
    for finding in context.stdout.lines().filter_map(read) {
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    findings
}
