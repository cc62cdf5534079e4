//! Text output of rustc and cargo, for commands without JSON messages: nextest, rustfmt, and errors
//! of cargo itself, such as an invalid manifest.

use crate::parse::finding::{Finding, Severity};
use crate::parse::outcome::ParseContext;
use crate::parse::text;

/// Starts of messages that only summarise others.
const SUMMARIES: [&str; 6] = [
    "could not compile ",
    "aborting due to ",
    "command `",
    "test failed, to rerun",
    "doctest failed, to rerun",
    "build failed",
];

/// Reads the errors from standard error, with their locations.
pub(crate) fn errors(context: &ParseContext<'_>) -> Vec<Finding> {
    let lines: Vec<&str> = context.stderr.lines().collect();
    let mut found: Vec<Finding> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((rule, message)) = error(line) else { continue };
        if SUMMARIES.iter().any(|start| message.starts_with(start)) {
            continue;
        }
        let location = lines.get(at + 1).and_then(|next| next.trim_start().strip_prefix("--> "));
        let finding =
            Finding::new(Severity::Error, text::truncated(&explained(message, &lines[at + 1..])))
                .rule(rule);
        let finding = match location.and_then(text::location) {
            Some((path, line, column)) => finding.at(context.file(path), Some(line), column),
            None => finding,
        };
        if !found.contains(&finding) {
            found.push(finding);
        }
    }
    found
}

/// Splits `error[E0308]: mismatched types` or `error: linking failed`.
fn error(line: &str) -> Option<(Option<String>, &str)> {
    let rest = line.strip_prefix("error")?;
    match rest.strip_prefix('[') {
        Some(coded) => {
            let (code, message) = coded.split_once("]: ")?;
            Some((Some(code.to_owned()), message))
        }
        None => Some((None, rest.strip_prefix(": ")?)),
    }
}

/// Adds the indented lines below an error of cargo itself, which contain its cause.
fn explained(message: &str, below: &[&str]) -> String {
    let cause = below.iter().skip_while(|line| line.trim().is_empty());
    let lines: Vec<&str> = cause
        .take_while(|line| line.starts_with("Caused by:") || line.starts_with("  "))
        .filter(|line| !line.trim_start().starts_with("--> "))
        .copied()
        .collect();
    let is_code = lines.iter().any(|line| line.trim_start().starts_with('|'));
    if lines.is_empty() || is_code {
        message.to_owned()
    } else {
        format!("{message}\n{}", lines.join("\n"))
    }
}
