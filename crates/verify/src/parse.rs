//! Reports of finished commands: counts, failures, findings and a verdict.
//!
//! The verdict must never be `passed` by accident, because an agent stops working when it reads it.
//! It is derived from the exit status and the report together, and both have to agree:
//!
//! - A build that fails is `failed`, with the compiler's errors.
//! - A tool that is missing is `could_not_run`, with a hint how to install it. Launchers and shells
//!   report a missing program in many ways; `missing_tool` knows their messages.
//! - A command that was killed or timed out never passes, even if its output looks complete.
//! - Exit status 0 without a readable report is `could_not_run`, and so is a run without a single
//!   test. A report that is malformed or truncated counts as unreadable.
//! - Exit status 0 with failures in the report is `failed`.
//! - A failing exit status with only passed tests is `failed`: coverage, leaks or a crash at the
//!   end.
//! - A file that ended without reporting its tests is counted as broken
//!   ([`check_unreported_files`]).
//! - A process that ended before the results of its tests is a failure, also with exit status 0. The
//!   test that ended it is named if the report tells it, or by a second run of the part with one test
//!   at a time ([`unnamed_parts`]); a test that has a result is never blamed.
//! - A failure that cannot be parsed is still a failure, with the end of the output as its
//!   explanation.
//!
//! Tools write their report to a file outside of the workspace where they can, so that tests cannot
//! write to it by printing. File names in reports are relative to the workspace, with forward
//! slashes. All texts are bounded.

mod artifacts;
mod finding;
mod formats;
mod missing_tool;
mod outcome;
mod read_only;
mod report;
mod report_reader;
mod runners;
mod running_test;
mod text;
mod unreported_tests;
mod verdict;

pub use artifacts::{MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, project_artifacts};
pub use finding::{Finding, Severity};
pub use outcome::{ArtifactFile, Outcome, Termination};
pub use report::{
    CheckReport, CouldNotRunReason, Counts, Failure, MAX_FAILURES, MAX_FINDINGS, MAX_MESSAGE_BYTES,
    TestReport, Verdict,
};
pub use report_reader::ReportFormat;
pub use running_test::{name_running_test, unnamed_parts};
pub use text::DROPPED_OUTPUT;
pub use unreported_tests::check_unreported_files;
pub use verdict::{check, tests};

use crate::plan::Invocation;
pub(crate) use outcome::ParseContext;
use report::ENDED_EARLY;
use report_reader::ReportReader;
use verdict::TestResults;

/// Returns the verdict on a command without a report, by its exit status: an installation, a
/// script, a formatter that writes.
pub fn command(invocation: &Invocation, outcome: &Outcome<'_>) -> Verdict {
    let context = ParseContext::new(invocation, outcome);
    match missing_tool::reason(&context).or_else(|| context.interruption()) {
        Some(reason) => Verdict::CouldNotRun { reason },
        None if context.succeeded() => Verdict::Passed,
        None => Verdict::Failed,
    }
}
