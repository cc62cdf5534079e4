//! Diagnostics in lines of text, in the formats of GCC, Go, TypeScript, `MSBuild`, Deno, the JVM and
//! Python tools.

use crate::parse::{Finding, ParseContext, Severity, text};

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
    // A warning ends with its flag, such as `[-Wunused]`.
    let flagged = message.strip_suffix(']').and_then(|rest| rest.rsplit_once(" [-"));
    let rule = flagged.map(|(_, flag)| format!("-{flag}"));
    let message = flagged.map_or(message, |(message, _)| message);
    let finding = Finding::new(severity, text::truncated(message)).rule(rule.as_deref());
    Some(finding.at(context.file(path), Some(row), column))
}

/// Reads `path(line,column): error CODE: message`.
pub(crate) fn parenthesised(context: &ParseContext<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for line in context.stdout.lines() {
        match parenthesised_line(context, line) {
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

fn parenthesised_line(context: &ParseContext<'_>, line: &str) -> Option<Finding> {
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
    let finding = Finding::new(severity, text::truncated(message)).rule(Some(rule));
    Some(match location {
        Some((path, row, column)) => finding.at(context.file(path), Some(row), Some(column)),
        None => finding,
    })
}

/// Reads `TS2322 [ERROR]: message` of Deno, followed by code and `at file:///w/a.ts:1:7`.
pub(crate) fn deno(context: &ParseContext<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for line in context.stderr.lines() {
        if let Some((rule, message)) = line.split_once(" [ERROR]: ") {
            findings.push(Finding::error(message).rule(Some(rule.trim())));
        } else if let Some(finding) = findings.last_mut().filter(|finding| finding.file.is_none())
            && let Some((path, row, column)) =
                line.trim().strip_prefix("at ").and_then(text::location)
        {
            *finding = finding.clone().at(context.file(path), Some(row), column);
        }
    }
    findings
}

/// Reads `e: file:///w/src/A.kt:3:5 message` of the Kotlin compiler.
pub(super) fn kotlin(context: &ParseContext<'_>) -> Vec<Finding> {
    let read = |line: &str| {
        let (location, message) = line.strip_prefix("e: ")?.split_once(' ')?;
        let (path, row, column) = text::location(location)?;
        Some(Finding::error(message).at(context.file(path), Some(row), column))
    };
    context.stderr.lines().chain(context.stdout.lines()).filter_map(read).collect()
}

/// Reads `[ERROR] /w/src/A.java:[3,5] message` of Maven, which prints its errors twice.
pub(super) fn maven(context: &ParseContext<'_>) -> Vec<Finding> {
    let read = |line: &str| {
        let (path, rest) = line.strip_prefix("[ERROR] ")?.split_once(":[")?;
        let (numbers, message) = rest.split_once("] ")?;
        let (row, column) = numbers.split_once(',')?;
        let finding = Finding::error(message);
        Some(finding.at(context.file(path), row.parse().ok(), column.parse().ok()))
    };
    Finding::distinct(context.stdout.lines().filter_map(read))
}

/// Reads `sample.py:9:12:9:17: error: message  [return-value]` of mypy. A note at the place of the finding
/// before it explains that finding, and is added to its message.
pub(crate) fn mypy(context: &ParseContext<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for finding in context.stdout.lines().filter_map(|line| mypy_line(context, line)) {
        match findings.last_mut() {
            Some(last)
                if finding.severity == Severity::Info
                    && (&last.file, last.line) == (&finding.file, finding.line) =>
            {
                let message = format!("{}\n  note: {}", last.message, finding.message);
                last.message = text::truncated(&message);
            }
            Some(_) | None => findings.push(finding),
        }
    }
    findings
}

fn mypy_line(context: &ParseContext<'_>, line: &str) -> Option<Finding> {
    let marks = [
        (": error: ", Severity::Error),
        (": warning: ", Severity::Warning),
        (": note: ", Severity::Info),
    ];
    let found = marks.iter().find_map(|(mark, severity)| Some((line.split_once(mark)?, *severity)));
    let ((location, rest), severity) = found?;
    let (message, rule) = match rest.strip_suffix(']').and_then(|rest| rest.rsplit_once("  [")) {
        Some((message, rule)) => (message, Some(rule)),
        None => (rest, None),
    };
    let mut numbers = Vec::new();
    let mut path = location;
    while let Some((front, number)) =
        path.rsplit_once(':').and_then(|(f, n)| Some((f, n.parse::<u64>().ok()?)))
    {
        numbers.insert(0, number);
        path = front;
    }
    let number = |at: usize| numbers.get(at).copied();
    // mypy reports the last column inclusively.
    let end_column = number(3).map(|column| column + 1);
    Some(
        Finding::new(severity, text::truncated(message))
            .at(context.file(path), number(0), number(1))
            .until(number(2), end_column)
            .rule(rule),
    )
}

/// Reads `sample.py:4:1: E302 expected 2 blank lines` of flake8.
pub(crate) fn flake8(context: &ParseContext<'_>) -> Vec<Finding> {
    let read = |line: &str| {
        let (location, rest) = line.split_once(": ")?;
        let (path, row, column) = text::location(location)?;
        let (rule, message) = rest.split_once(' ')?;
        let severity =
            if rule.starts_with(['E', 'F']) { Severity::Error } else { Severity::Warning };
        let finding = Finding::new(severity, text::truncated(message)).rule(Some(rule));
        Some(finding.at(context.file(path), Some(row), column))
    };
    context.stdout.lines().filter_map(read).collect()
}
