//! Text output of rustc and cargo, for commands without JSON messages: nextest, rustfmt, and errors
//! of cargo itself, such as an invalid manifest.

use crate::parse::{Finding, ParseContext, text};

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
    let read = |(at, line): (usize, &&str)| {
        let (rule, message) = error(line)?;
        if SUMMARIES.iter().any(|start| message.starts_with(start)) {
            return None;
        }
        let below = &lines[at + 1..];
        let location = below.first().and_then(|next| next.trim_start().strip_prefix("--> "));
        let finding = Finding::error(&explained(message, below)).rule(rule);
        Some(match location.and_then(text::location) {
            Some((path, line, column)) => finding.at(context.file(path), Some(line), column),
            None => finding,
        })
    };
    Finding::distinct(lines.iter().enumerate().filter_map(read))
}

/// Splits `error[E0308]: mismatched types` or `error: linking failed`.
fn error(line: &str) -> Option<(Option<&str>, &str)> {
    let rest = line.strip_prefix("error")?;
    match rest.strip_prefix('[') {
        Some(coded) => coded.split_once("]: ").map(|(code, message)| (Some(code), message)),
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
