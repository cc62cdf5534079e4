//! Reports of linters, type checkers and formatters.
//!
//! Findings decide together with the exit status: errors fail a check even with exit status 0,
//! since some tools always return 0, and warnings fail it only for Clippy, whose lints are warnings
//! by default. A tool that fails without any finding did not judge the project, so it could not
//! run; for a project's own script or a plain compiler the output becomes the finding.

use crate::parse::{
    CheckReport, CouldNotRunReason, Finding, MAX_FINDINGS, Outcome, ParseContext, Severity,
    Verdict, formats, missing_tool, text,
};
use crate::plan::{Invocation, ReportFormat};
use crate::tool::ProjectTool;

/// Reads the report of a linter, a type checker, or a formatter in check mode, which has one
/// finding for each file to format.
pub fn check(invocation: &Invocation, outcome: &Outcome<'_>) -> CheckReport {
    let context = ParseContext::new(invocation, outcome);
    let parsed = formats::read(&context);
    let unreadable = parsed.is_none();
    let mut findings = parsed.unwrap_or_default();
    let verdict = judge(&context, &mut findings, unreadable);
    order(&mut findings);
    let total = findings.len();
    findings.truncate(MAX_FINDINGS);
    CheckReport { verdict, omitted: total - findings.len(), findings }
}

fn judge(context: &ParseContext<'_>, findings: &mut Vec<Finding>, unreadable: bool) -> Verdict {
    let could_not = |reason| Verdict::CouldNotRun { reason };
    if findings.is_empty()
        && let Some(reason) = missing_tool::reason(context)
    {
        return could_not(reason);
    }
    if let Some(reason) = context.interruption() {
        return could_not(reason);
    }
    let bad = findings.iter().any(|finding| counts(context, finding));
    match context.exit() {
        Some(0) if bad => Verdict::Failed,
        Some(0) if unreadable && context.truncated => could_not(CouldNotRunReason::Cut),
        Some(0) if unreadable => could_not(CouldNotRunReason::NoReport),
        Some(0) => Verdict::Passed,
        _ if !findings.is_empty() => Verdict::Failed,
        exit => unexplained(context, findings, exit.unwrap_or_default()),
    }
}

/// The verdict on a failed command without findings: that of a script is the project's failure,
/// that of a tool its own.
fn unexplained(context: &ParseContext<'_>, findings: &mut Vec<Finding>, exit: i32) -> Verdict {
    let output = text::tail(context).unwrap_or_default();
    match context.invocation.report {
        ReportFormat::Text | ReportFormat::Lines => {
            let output = if output.is_empty() { format!("exit status {exit}") } else { output };
            findings.push(Finding::new(Severity::Error, output));
            Verdict::Failed
        }
        _ => {
            Verdict::CouldNotRun { reason: CouldNotRunReason::ToolFailed { exit, message: output } }
        }
    }
}

/// Returns true if a finding fails the check. Clippy reports nearly all lints as warnings; in other
/// tools the project chose between warnings and errors.
fn counts(context: &ParseContext<'_>, finding: &Finding) -> bool {
    match finding.severity {
        Severity::Error => true,
        Severity::Warning => context.invocation.tool == ProjectTool::Clippy,
        Severity::Info => false,
    }
}

fn order(findings: &mut Vec<Finding>) {
    findings.sort_by(|a, b| {
        (&a.file, a.line, a.column, &a.rule).cmp(&(&b.file, b.line, b.column, &b.rule))
    });
    // Several targets of one package report the same finding.
    findings.dedup();
}
