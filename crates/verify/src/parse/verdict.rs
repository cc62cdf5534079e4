//! The verdicts on test runs, and on linters, type checkers and formatters.
//!
//! The order of the checks is the safety argument. A missing tool is recognised first, because its
//! exit status means nothing. Any failure in the report of a test run, or any build error, is
//! `failed` with any exit status. A command that was killed or timed out cannot pass. Only exit
//! status 0 with a complete report and at least one executed test is `passed`.
//!
//! Findings decide together with the exit status: errors fail a check even with exit status 0,
//! since some tools always return 0, and warnings fail it only for Clippy, whose lints are warnings
//! by default. A tool that fails without any finding did not judge the project, so it could not
//! run; for a project's own script or a plain compiler the output becomes the finding.

use crate::parse::{
    CheckReport, CouldNotRunReason, Counts, Failure, Finding, MAX_FAILURES, MAX_FINDINGS, Outcome,
    ParseContext, Severity, TestReport, Verdict, formats, missing_tool, read_only, runners, text,
};
use crate::plan::{Invocation, ReportFormat};
use crate::tool::ProjectTool;

#[derive(Debug, Default)]
pub(crate) struct TestResults {
    pub(crate) counts: Counts,
    pub(crate) failures: Vec<Failure>,
    pub(crate) build_errors: Vec<Finding>,
    /// The runner reported that no test matches.
    pub(crate) no_tests: bool,
    /// Files that exited successfully without reporting a test.
    pub(crate) silent: Vec<String>,
    /// The report is missing, malformed or incomplete.
    pub(crate) unreadable: bool,
}

impl TestResults {
    /// Records that the runner ended without a report, and the error with which it did.
    pub(crate) fn crashed(&mut self, error: Option<Finding>) {
        self.build_errors.extend(error);
        self.unreadable = true;
    }
}

/// Reads the report of a test run and returns the verdict.
pub fn tests(invocation: &Invocation, outcome: &Outcome<'_>) -> TestReport {
    let context = ParseContext::new(invocation, outcome);
    let (verdict, parsed) = if let Some(reason) = missing_tool::reason(&context) {
        (Verdict::CouldNotRun { reason }, TestResults::default())
    } else {
        let parsed = runners::read(&context);
        (judge_tests(&context, &parsed), parsed)
    };
    let explained = match &verdict {
        Verdict::Failed => !parsed.failures.is_empty() || !parsed.build_errors.is_empty(),
        // The reasons contain the output of a failed tool, and the name of a missing one.
        Verdict::Passed
        | Verdict::CouldNotRun {
            reason:
                CouldNotRunReason::ToolFailed { .. }
                | CouldNotRunReason::ToolMissing { .. }
                | CouldNotRunReason::NoTests,
        } => true,
        Verdict::CouldNotRun { .. } => false,
    };
    let detail = if explained { None } else { text::tail(&context) };
    let TestResults { counts, mut failures, mut build_errors, mut silent, .. } = parsed;
    let total = failures.len() + build_errors.len();
    failures.truncate(MAX_FAILURES);
    build_errors.truncate(MAX_FAILURES);
    silent.truncate(MAX_FAILURES);
    let omitted = total - failures.len() - build_errors.len();
    TestReport { verdict, counts, failures, build_errors, silent, omitted, detail }
}

fn judge_tests(context: &ParseContext<'_>, parsed: &TestResults) -> Verdict {
    let bad = parsed.counts.failed + parsed.counts.errors > 0
        || !parsed.failures.is_empty()
        || !parsed.build_errors.is_empty();
    if bad {
        return Verdict::Failed;
    }
    if let Some(reason) = context.interruption() {
        return could_not(reason);
    }
    let ran = parsed.counts.run() > 0;
    match context.exit() {
        Some(0) if parsed.unreadable => no_report(context),
        Some(0) if ran => Verdict::Passed,
        Some(0) => could_not(CouldNotRunReason::NoTests),
        _ if parsed.no_tests && !ran => could_not(CouldNotRunReason::NoTests),
        // All tests passed but the runner failed: coverage, leaks, a crash at the end.
        _ if ran => Verdict::Failed,
        exit => could_not(CouldNotRunReason::ToolFailed {
            exit: exit.unwrap_or_default(),
            message: text::tail(context).unwrap_or_default(),
        }),
    }
}

fn could_not(reason: CouldNotRunReason) -> Verdict {
    Verdict::CouldNotRun { reason }
}

/// The verdict on a command that succeeded without a readable report.
fn no_report(context: &ParseContext<'_>) -> Verdict {
    let truncated = context.truncated;
    could_not(if truncated { CouldNotRunReason::Cut } else { CouldNotRunReason::NoReport })
}

/// Reads the report of a linter, a type checker, or a formatter in check mode, which has one
/// finding for each file to format.
pub fn check(invocation: &Invocation, outcome: &Outcome<'_>) -> CheckReport {
    let context = ParseContext::new(invocation, outcome);
    let parsed = formats::read(&context);
    let unreadable = parsed.is_none();
    let mut findings = parsed.unwrap_or_default();
    let verdict = judge_findings(&context, &mut findings, unreadable);
    order(&mut findings);
    let total = findings.len();
    findings.truncate(MAX_FINDINGS);
    let incomplete = context.truncated && verdict == Verdict::Failed;
    CheckReport { verdict, omitted: total - findings.len(), findings, incomplete }
}

fn judge_findings(
    context: &ParseContext<'_>,
    findings: &mut Vec<Finding>,
    unreadable: bool,
) -> Verdict {
    if findings.is_empty()
        && let Some(reason) = missing_tool::reason(context)
    {
        return could_not(reason);
    }
    if let Some(reason) = context.interruption() {
        return could_not(reason);
    }
    if let Some(reason) = read_only::reason(context, !findings.is_empty()) {
        findings.clear();
        return could_not(reason);
    }
    let bad = findings.iter().any(|finding| counts(context, finding));
    match context.exit() {
        Some(0) if bad => Verdict::Failed,
        // The part of a report that was dropped may contain errors.
        Some(0) if unreadable || context.truncated => no_report(context),
        Some(0) => Verdict::Passed,
        _ if !findings.is_empty() => Verdict::Failed,
        _ if context.truncated => no_report(context),
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
        _ => could_not(CouldNotRunReason::ToolFailed { exit, message: output }),
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
