//! Findings of golangci-lint. Its option for JSON differs between major versions, so the text
//! format is read; JSON is accepted if the project's own settings select it.

use serde_json::Value;

use crate::parse::finding::{Finding, Severity};
use crate::parse::outcome::ParseContext;
use crate::parse::text;

use super::{compiler_lines, list};

/// Reads `main.go:3:2: message (linter)`, or JSON.
pub(super) fn read(context: &ParseContext<'_>) -> Vec<Finding> {
    if let Some(issues) = text::json(&context.stdout).filter(|report| report["Issues"].is_array()) {
        return list(&issues["Issues"]).map(|issue| golangci_issue(context, issue)).collect();
    }
    let mut findings = compiler_lines::read_text(context, &context.stdout);
    for finding in &mut findings {
        // The linter is in the last parentheses; earlier ones belong to the message.
        let split = finding.message.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
        if let Some((message, rule)) =
            split.map(|(message, rule)| (message.to_owned(), rule.to_owned()))
        {
            (finding.message, finding.rule) = (message, Some(rule));
        }
    }
    findings
}

fn golangci_issue(context: &ParseContext<'_>, issue: &Value) -> Finding {
    let location = &issue["Pos"];
    let severity = if issue["Severity"] == "warning" { Severity::Warning } else { Severity::Error };
    let name = context.file(location["Filename"].as_str().unwrap_or_default());
    Finding::new(severity, text::truncated(issue["Text"].as_str().unwrap_or_default()))
        .at(
            name,
            location["Line"].as_u64(),
            location["Column"].as_u64().filter(|column| *column > 0),
        )
        .rule(issue["FromLinter"].as_str().map(str::to_owned))
        .fixable(!issue["Replacement"].is_null() || !issue["SuggestedFixes"].is_null())
}
