//! Readers for the output of compilers, linters, type checkers and formatters.

pub(crate) mod cargo;
pub(crate) mod compiler_lines;
pub(crate) mod formatters;
pub(crate) mod json_linters;
pub(crate) mod node_crash;
pub(crate) mod rustc;

use crate::parse::{Finding, ParseContext, ReportReader, Severity};

/// Reads the findings; `None` if a report that the tool should have written cannot be parsed.
pub(crate) fn read(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    match context.invocation.report.reader() {
        ReportReader::Document(read) => read(context),
        ReportReader::Text(read) => Some(read(context)),
        ReportReader::Tests(_) => Some(compiler_errors(context)),
        ReportReader::ExitStatus => Some(Vec::new()),
    }
}

/// Reads compiler errors from the output of a build tool.
pub(crate) fn compiler_errors(context: &ParseContext<'_>) -> Vec<Finding> {
    let found = compiler_lines::read(context).into_iter().chain(compiler_lines::maven(context));
    let found = found.chain(compiler_lines::kotlin(context));
    found.filter(|finding| finding.severity == Severity::Error).collect()
}
