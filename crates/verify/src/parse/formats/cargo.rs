//! JSON messages of cargo: diagnostics of rustc and Clippy, one object on each line.

use serde_json::Value;

use crate::parse::{Finding, ParseContext, Severity, text};
use crate::paths;

use super::rustc;

#[derive(Debug, Default)]
pub(crate) struct CargoMessages {
    findings: Vec<Finding>,
    /// True if cargo reported `build-finished` without success.
    pub(crate) failed: bool,
    pub(crate) binaries: Vec<TestBinary>,
}

/// A test binary, with the package and the option that select it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestBinary {
    /// Name of the file, without its directory.
    pub(crate) file: String,
    pub(crate) package: String,
    /// Option such as `--lib` or `--test it`.
    pub(crate) target: String,
}

impl CargoMessages {
    /// Returns the errors without duplicates, since several targets of a package share files.
    pub(crate) fn errors(&self) -> Vec<Finding> {
        let is_error = |finding: &&Finding| finding.severity == Severity::Error;
        Finding::distinct(self.findings.iter().filter(is_error).cloned())
    }
}

/// Returns all findings; a failed build without an error is explained by cargo's text.
pub(crate) fn findings(context: &ParseContext<'_>) -> Vec<Finding> {
    let CargoMessages { mut findings, failed, .. } = read(context);
    if failed && findings.iter().all(|finding| finding.severity != Severity::Error) {
        findings.extend(rustc::errors(context));
    }
    findings
}

pub(crate) fn read(context: &ParseContext<'_>) -> CargoMessages {
    let mut messages = CargoMessages::default();
    // The output of test binaries follows the messages and could imitate them.
    let objects = context.stdout.lines().take_while(|line| !line.starts_with("running "));
    for line in objects.filter(|line| line.starts_with("{\"reason\":")) {
        let Ok(object) = serde_json::from_str::<Value>(line) else { continue };
        match object["reason"].as_str() {
            Some("compiler-message") => {
                messages.findings.extend(finding(context, &object["message"]));
            }
            Some("compiler-artifact") => messages.binaries.extend(binary(&object)),
            Some("build-finished") => messages.failed = object["success"] == Value::Bool(false),
            _ => {}
        }
    }
    messages
}

fn binary(artifact: &Value) -> Option<TestBinary> {
    let file = artifact["executable"].as_str().filter(|_| artifact["profile"]["test"] == true)?;
    let name = artifact["target"]["name"].as_str()?;
    let target = match artifact["target"]["kind"][0].as_str()? {
        kind @ ("bin" | "test" | "bench" | "example") => format!("--{kind} {name}"),
        _ => "--lib".to_owned(),
    };
    let package = package_name(artifact["package_id"].as_str()?)?;
    Some(TestBinary { file: paths::name(file).to_owned(), package, target })
}

/// Reads the name from `path+file:///w/one#1.0.0` or `path+file:///w/one#other@1.0.0`.
fn package_name(identifier: &str) -> Option<String> {
    let (source, rest) = identifier.rsplit_once('#')?;
    let name = match rest.split_once('@') {
        Some((name, _)) => name,
        None => paths::name(source.trim_end_matches('/')),
    };
    Some(name.to_owned())
}

fn finding(context: &ParseContext<'_>, message: &Value) -> Option<Finding> {
    let severity = match message["level"].as_str()? {
        "error" | "error: internal compiler error" => Severity::Error,
        "warning" => Severity::Warning,
        _ => return None,
    };
    let description = message["message"].as_str()?;
    let spans = message["spans"].as_array()?;
    let span = spans.iter().find(|span| span["is_primary"] == Value::Bool(true));
    // Summaries without a location repeat the messages before them.
    if span.is_none()
        && (description.starts_with("aborting due to")
            || description.contains(" warning") && description.ends_with("emitted"))
    {
        return None;
    }
    let label =
        span.and_then(|span| span["label"].as_str()).filter(|label| !description.contains(label));
    let message_with_label =
        label.map_or_else(|| description.to_owned(), |label| format!("{description}: {label}"));
    let finding = Finding::new(severity, text::truncated(&message_with_label))
        .rule(message["code"]["code"].as_str())
        .fixable(is_fixable(message))
        .url(url(message));
    let Some(span) = span else { return Some(finding) };
    let number = |key: &str| span[key].as_u64();
    let file = context.file(span["file_name"].as_str().unwrap_or_default());
    Some(
        finding
            .at(file, number("line_start"), number("column_start"))
            .until(number("line_end"), number("column_end")),
    )
}

fn children(message: &Value) -> impl Iterator<Item = &Value> {
    message["children"].as_array().into_iter().flatten()
}

fn is_fixable(message: &Value) -> bool {
    let mut spans =
        children(message).flat_map(|child| child["spans"].as_array().into_iter().flatten());
    spans.any(|span| span["suggestion_applicability"] == "MachineApplicable")
}

/// Returns the page that Clippy names in a help message.
fn url(message: &Value) -> Option<&str> {
    let mut remarks = children(message).filter_map(|child| child["message"].as_str());
    remarks.find_map(|remark| remark.strip_prefix("for further information visit "))
}
