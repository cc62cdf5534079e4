//! What finished commands said.
//!
//! The rules that keep a report from being green by accident:
//!
//! - A build that fails is a failure with build errors.
//! - A tool that is missing could not run, and the report says how to get it.
//! - A command that was killed or ran out of time did not pass, whatever it printed before.
//! - A run without a single test did not pass.
//! - A file whose tests were never reported did not pass, even if it ended well.
//! - A failure that is not understood is still a failure, with the text as its explanation.
//!
//! All names of files are relative to the workspace and have forward slashes.

mod artifacts;
mod check_verdict;
mod finding;
mod formats;
mod missing_tool;
mod outcome;
mod report;
mod runners;
mod test_verdict;
mod text;
mod unreported_tests;

pub use artifacts::{MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, project_artifacts};
pub use check_verdict::{format_check, lint, typecheck};
pub use finding::{Finding, Severity};
pub use outcome::{ArtifactFile, Outcome, Termination};
pub use report::{
    CheckReport, CouldNotRunReason, Counts, Failure, LintReport, MAX_FAILURES, MAX_FINDINGS,
    MAX_MESSAGE_BYTES, TestReport, TypecheckReport, Verdict,
};
pub use test_verdict::tests;
pub use unreported_tests::check_unreported_files;

use crate::plan::Invocation;
use outcome::ParseContext;

/// Judges a command that has no report of its own: an installation, a script, a formatter that writes.
pub fn command(invocation: &Invocation, outcome: &Outcome<'_>) -> Verdict {
    let context = ParseContext::new(invocation, outcome);
    match missing_tool::reason(&context).or_else(|| context.interruption()) {
        Some(reason) => Verdict::CouldNotRun { reason },
        None if context.succeeded() => Verdict::Passed,
        None => Verdict::Failed,
    }
}
