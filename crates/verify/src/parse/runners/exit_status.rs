//! Runners without a known report: the exit status decides.

use crate::parse::{Failure, ParseContext, TestResults, text};

/// Counts the command as one test, since it is unknown whether it ran any.
pub(super) fn read(context: &ParseContext<'_>) -> TestResults {
    let mut parsed = TestResults::default();
    match context.exit() {
        None => {}
        Some(0) => parsed.counts.passed = 1,
        Some(status) => {
            parsed.counts.failed = 1;
            parsed.failures.push(Failure {
                name: context.invocation.argv.join(" "),
                file: None,
                line: None,
                message: text::tail(context).unwrap_or_else(|| format!("exit status {status}")),
                diff: None,
                rerun: None,
            });
        }
    }
    parsed
}
