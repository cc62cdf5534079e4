//! The JSON report of `PHPStan`. Errors without a file, such as a broken configuration, become
//! findings without a location.

use serde_json::Value;

use crate::parse::finding::{Finding, Severity};
use crate::parse::outcome::ParseContext;
use crate::parse::text;

use super::list;

pub(super) fn read(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::json(&context.stdout)?;
    let files = report["files"].as_object();
    let mut findings: Vec<Finding> = Vec::new();
    for (file, entry) in files.into_iter().flatten() {
        for message in list(&entry["messages"]) {
            let description = text::truncated(message["message"].as_str().unwrap_or_default());
            findings.push(
                Finding::new(Severity::Error, description)
                    .at(context.file(file), message["line"].as_u64(), None)
                    .rule(message["identifier"].as_str().map(str::to_owned)),
            );
        }
    }
    let general = list(&report["errors"]).filter_map(Value::as_str);
    findings.extend(
        general.map(|description| Finding::new(Severity::Error, text::truncated(description))),
    );
    report["totals"].is_object().then_some(findings)
}
