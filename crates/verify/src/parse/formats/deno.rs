//! Text output of Deno's type checker and formatter.

use crate::parse::finding::{Finding, Severity};
use crate::parse::outcome::ParseContext;
use crate::parse::text;

use super::formatters::unstyled;

/// Reads `TS2322 [ERROR]: message`, followed by code and `at file:///w/a.ts:1:7`.
pub(crate) fn check(context: &ParseContext<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for line in context.stderr.lines() {
        if let Some((rule, message)) = line.split_once(" [ERROR]: ") {
            let rule = Some(rule.trim().to_owned());
            findings.push(Finding::new(Severity::Error, text::truncated(message)).rule(rule));
        } else if let Some(finding) = findings.last_mut().filter(|finding| finding.file.is_none())
            && let Some((path, row, column)) =
                line.trim().strip_prefix("at ").and_then(text::location)
        {
            *finding = finding.clone().at(context.file(path), Some(row), column);
        }
    }
    findings
}

/// Reads `from /w/a.ts:` above each difference.
pub(super) fn format(context: &ParseContext<'_>) -> Vec<Finding> {
    let named = |line: &str| line.strip_prefix("from ")?.strip_suffix(':').map(str::to_owned);
    let files = context.stderr.lines().filter_map(named);
    files.map(|path| unstyled(context, &path, None)).collect()
}
