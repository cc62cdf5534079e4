//! The JSON report of `RuboCop`, whose conventions and refactorings count as warnings.

use serde_json::Value;

use crate::parse::finding::{Finding, Severity};
use crate::parse::outcome::ParseContext;
use crate::parse::text;

use super::list;

pub(super) fn read(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
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
            let location = &offense["location"];
            let number = |key: &str| location[key].as_u64();
            findings.push(
                Finding::new(
                    severity,
                    text::truncated(offense["message"].as_str().unwrap_or_default()),
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
