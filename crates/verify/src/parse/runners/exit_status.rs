//! Runners without a known report: the exit status decides.

use crate::parse::outcome::ParseContext;
use crate::parse::report::{Counts, Failure};
use crate::parse::test_verdict::TestResults;
use crate::parse::text;

/// Counts the command as one test, since it is unknown whether it ran any.
pub(super) fn read(context: &ParseContext<'_>) -> TestResults {
    let Some(status) = context.exit() else { return TestResults::default() };
    if status == 0 {
        return TestResults {
            counts: Counts { passed: 1, ..Counts::default() },
            ..TestResults::default()
        };
    }
    let failure = Failure {
        name: context.invocation.argv.join(" "),
        file: None,
        line: None,
        message: text::tail(context).unwrap_or_else(|| format!("exit status {status}")),
        diff: None,
        rerun: None,
    };
    let counts = Counts { failed: 1, ..Counts::default() };
    TestResults { counts, failures: vec![failure], ..TestResults::default() }
}
