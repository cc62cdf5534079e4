//! Errors with which Node ends before a runner can write its report, such as syntax errors.
//!
//! The location is the first position in user code: files of dependencies and of Node itself are
//! skipped.

use crate::parse::{Finding, ParseContext, text};

pub(crate) fn crash(context: &ParseContext<'_>) -> Option<Finding> {
    crash_in(context, &context.stderr)
}

/// Reads `●  process.exit called with "0"` of Jest, with the place of the call.
pub(crate) fn exit_call(context: &ParseContext<'_>) -> Option<Finding> {
    let start = context.stderr.find("process.exit called with ")?;
    let rest = &context.stderr[start..];
    let message = rest.lines().next()?;
    Some(Finding::error(message).at_line(text::stack_location(context, rest)))
}

/// Reads `path:line`, followed by code and `SyntaxError: message`.
pub(crate) fn crash_in(context: &ParseContext<'_>, output: &str) -> Option<Finding> {
    let is_error = |line: &&str| {
        line.split_once(": ").is_some_and(|(kind, _)| {
            kind.ends_with("Error") && kind.chars().all(|c| c.is_ascii_alphanumeric())
        })
    };
    let mut lines =
        output.lines().map(str::trim).map(|line| line.strip_prefix("error: ").unwrap_or(line));
    let message = lines.find(is_error)?;
    let location = output.lines().find_map(|line| {
        let (path, row, _) = text::location(line.trim().rsplit(' ').next()?)?;
        let file = context.file(path);
        (path.contains('/') && ParseContext::is_user_code(&file)).then_some((file, row))
    });
    let location = location.or_else(|| text::stack_location(context, output));
    Some(Finding::error(message).at_line(location))
}

/// Reads the position of `Unexpected token (1:10)`.
pub(crate) fn syntax_location(message: &str) -> Option<(u64, u64)> {
    message.lines().filter(|line| line.contains("Error")).find_map(|line| {
        let inner = line.trim_end().strip_suffix(')')?.rsplit_once('(')?.1;
        let (row, column) = inner.split_once(':')?;
        Some((row.parse().ok()?, column.parse().ok()?))
    })
}
