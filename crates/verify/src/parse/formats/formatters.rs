//! Formatters in check mode: one finding for each file to format.

use crate::parse::{Finding, ParseContext, Severity, text};

pub(super) const NOT_IN_STYLE: &str = "the file is not in the project's style";

fn unstyled(context: &ParseContext<'_>, path: &str, line: Option<u64>) -> Finding {
    let finding = Finding::new(Severity::Warning, NOT_IN_STYLE).fixable(true);
    finding.rule(Some("format")).at(context.file(path), line, None)
}

/// Reads `Diff in /w/src/lib.rs:3:`, printed for each difference.
pub(crate) fn rustfmt(context: &ParseContext<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for line in context.stdout.lines() {
        let Some(rest) = line.strip_prefix("Diff in ") else { continue };
        // Older versions write ` at line 3:`.
        let rest = rest.trim_end_matches(':').replace(" at line ", ":");
        let Some((path, row, _)) = text::location(&rest) else { continue };
        let finding = unstyled(context, path, Some(row));
        if findings.iter().all(|known| known.file != finding.file) {
            findings.push(finding);
        }
    }
    [findings, super::rustc::errors(context)].concat()
}

/// Reads `[warn] a.js` and `[error] b.js: SyntaxError: message (1:11)`.
pub(crate) fn prettier(context: &ParseContext<'_>) -> Vec<Finding> {
    let lines = context.stderr.lines().chain(context.stdout.lines());
    lines.into_iter().filter_map(|line| prettier_line(context, line)).collect()
}

fn prettier_line(context: &ParseContext<'_>, line: &str) -> Option<Finding> {
    if let Some(path) = line.strip_prefix("[warn] ") {
        let end = path.rsplit(' ').next().unwrap_or_default();
        let is_file = !path.contains(' ') || (end.contains('.') && !end.ends_with('.'));
        return (is_file && !path.ends_with("forgot to run Prettier?"))
            .then(|| unstyled(context, path, None));
    }
    let (path, message) = line.strip_prefix("[error] ")?.split_once(": ")?;
    let location = super::node_crash::syntax_location(message);
    let (row, column) = location.unzip();
    Some(Finding::error(message).at(context.file(path), row, column))
}

/// Reads `would reformat a.py` and `error: cannot parse: b.py:1:6`.
pub(crate) fn black(context: &ParseContext<'_>) -> Vec<Finding> {
    let read = |line: &str| {
        if let Some(path) = line.strip_prefix("would reformat ") {
            return Some(unstyled(context, path, None));
        }
        let rest = line.strip_prefix("error: cannot ")?;
        let rest = rest.strip_prefix("parse: ").or_else(|| rest.strip_prefix("format "))?;
        let path = rest.split(": ").next()?;
        let (path, row) =
            text::location(path).map_or((path, None), |(path, row, _)| (path, Some(row)));
        Some(Finding::error("the file cannot be parsed").at(context.file(path), row, None))
    };
    context.stderr.lines().filter_map(read).collect()
}

/// Reads `Would reformat: a.py`, or a message with a location on the next line.
pub(crate) fn ruff_format(context: &ParseContext<'_>) -> Vec<Finding> {
    let lines: Vec<&str> = context.stdout.lines().chain(context.stderr.lines()).collect();
    let read = |(at, line): (usize, &&str)| {
        if let Some(path) = line.strip_prefix("Would reformat: ") {
            return Some(unstyled(context, path, None));
        }
        let (rule, message) = line.split_once(": ")?;
        let location = lines.get(at + 1)?.trim_start().strip_prefix("--> ")?;
        let (path, row, column) = text::location(location)?;
        if rule == "unformatted" {
            return Some(unstyled(context, path, Some(row)));
        }
        let finding = Finding::error(message).rule(Some(rule));
        Some(finding.at(context.file(path), Some(row), column))
    };
    lines.iter().enumerate().filter_map(read).collect()
}

/// Reads one file name per line. gofmt exits with 0 anyway, so the findings are errors.
pub(crate) fn file_list(context: &ParseContext<'_>) -> Vec<Finding> {
    let files = context.stdout.lines().filter(|line| !line.trim().is_empty());
    let listed =
        files.map(|path| Finding { severity: Severity::Error, ..unstyled(context, path, None) });
    listed.chain(super::compiler_lines::read_text(context, &context.stderr)).collect()
}

/// Reads `from /w/a.ts:` above each difference.
pub(crate) fn deno(context: &ParseContext<'_>) -> Vec<Finding> {
    let named = |line: &str| {
        let path = line.strip_prefix("from ")?.strip_suffix(':')?;
        Some(unstyled(context, path, None))
    };
    context.stderr.lines().filter_map(named).collect()
}
