//! JSON reports of linters for JavaScript and TypeScript.

use serde_json::Value;

use crate::parse::finding::{Finding, Severity};
use crate::parse::outcome::ParseContext;
use crate::parse::text;

use super::list;

fn owned(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn severity(name: &str) -> Severity {
    match name {
        "error" | "fatal" => Severity::Error,
        "warning" | "warn" => Severity::Warning,
        _ => Severity::Info,
    }
}

pub(super) fn eslint(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::json(&context.report())?;
    let mut findings = Vec::new();
    for file in report.as_array()? {
        let name = context.file(file["filePath"].as_str().unwrap_or_default());
        for message in list(&file["messages"]) {
            let severity =
                if message["severity"] == 2 { Severity::Error } else { Severity::Warning };
            let description = text::truncated(message["message"].as_str().unwrap_or_default());
            let number = |key: &str| message[key].as_u64();
            findings.push(
                Finding::new(severity, description)
                    .at(name.clone(), number("line"), number("column"))
                    .until(number("endLine"), number("endColumn"))
                    .rule(owned(&message["ruleId"]))
                    .fixable(message["fix"].is_object()),
            );
        }
    }
    Some(findings)
}

pub(super) fn biome(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::json(&context.stdout)?;
    let finding = |diagnostic: &Value| {
        let location = &diagnostic["location"];
        let name = owned(&location["path"])
            .or_else(|| owned(&location["path"]["file"]))
            .unwrap_or_default();
        // Findings about a whole file have line 0.
        let number =
            |end: &str, key: &str| location[end][key].as_u64().filter(|number| *number > 0);
        let description = owned(&diagnostic["message"])
            .or_else(|| owned(&diagnostic["description"]))
            .unwrap_or_default();
        let rule = owned(&diagnostic["category"]);
        let description = if rule.as_deref() == Some("format") {
            "the file is not in the project's style".to_owned()
        } else {
            description
        };
        Finding::new(
            severity(diagnostic["severity"].as_str().unwrap_or("error")),
            text::truncated(&description),
        )
        .at(context.file(&name), number("start", "line"), number("start", "column"))
        .until(number("end", "line"), number("end", "column"))
        .rule(rule)
    };
    Some(report["diagnostics"].as_array()?.iter().map(finding).collect())
}

pub(super) fn oxlint(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::json(&context.stdout)?;
    let finding = |diagnostic: &Value| {
        let span = &diagnostic["labels"][0]["span"];
        let name = diagnostic["filename"].as_str().unwrap_or_default();
        let description = diagnostic["message"].as_str().unwrap_or_default();
        Finding::new(
            severity(diagnostic["severity"].as_str().unwrap_or("error")),
            text::truncated(description),
        )
        .at(context.file(name), span["line"].as_u64(), span["column"].as_u64())
        .rule(owned(&diagnostic["code"]))
        .url(owned(&diagnostic["url"]))
    };
    Some(report["diagnostics"].as_array()?.iter().map(finding).collect())
}

pub(super) fn deno(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    let report = text::json(&context.stdout)?;
    let finding = |diagnostic: &Value| {
        let start = &diagnostic["range"]["start"];
        let end = &diagnostic["range"]["end"];
        // Columns are counted from 0.
        let column = |location: &Value| location["col"].as_u64().map(|column| column + 1);
        let name = context.file(diagnostic["filename"].as_str().unwrap_or_default());
        Finding::new(
            Severity::Error,
            text::truncated(diagnostic["message"].as_str().unwrap_or_default()),
        )
        .at(name, start["line"].as_u64(), column(start))
        .until(end["line"].as_u64(), column(end))
        .rule(owned(&diagnostic["code"]))
        .fixable(diagnostic["fixes"].as_array().is_some_and(|fixes| !fixes.is_empty()))
    };
    let broken = |error: &Value| {
        let name = context.file(error["file_path"].as_str().unwrap_or_default());
        Finding::new(
            Severity::Error,
            text::truncated(error["message"].as_str().unwrap_or_default()),
        )
        .at(name, None, None)
    };
    let findings = report["diagnostics"].as_array()?.iter().map(finding);
    Some(findings.chain(list(&report["errors"]).map(broken)).collect())
}
