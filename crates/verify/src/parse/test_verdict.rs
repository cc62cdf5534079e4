//! Reports of test runs and their verdict.
//!
//! The order of the checks is the safety argument. A missing tool is recognised first, because its
//! exit status means nothing. Any failure in the report, or any build error, is `failed` with any
//! exit status. A command that was killed or timed out cannot pass. Only exit status 0 with a
//! complete report and at least one executed test is `passed`.

use crate::parse::{
    CouldNotRunReason, Counts, Failure, Finding, MAX_FAILURES, Outcome, ParseContext, TestReport,
    Verdict, missing_tool, runners, text,
};
use crate::plan::Invocation;

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
        (judge(&context, &parsed), parsed)
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

fn judge(context: &ParseContext<'_>, parsed: &TestResults) -> Verdict {
    let bad = parsed.counts.failed + parsed.counts.errors > 0
        || !parsed.failures.is_empty()
        || !parsed.build_errors.is_empty();
    if bad {
        return Verdict::Failed;
    }
    if let Some(reason) = context.interruption() {
        return Verdict::CouldNotRun { reason };
    }
    let could_not = |reason| Verdict::CouldNotRun { reason };
    let ran = parsed.counts.run() > 0;
    match context.exit() {
        Some(0) if parsed.unreadable && context.truncated => could_not(CouldNotRunReason::Cut),
        Some(0) if parsed.unreadable => could_not(CouldNotRunReason::NoReport),
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
