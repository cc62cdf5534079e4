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
mod check;
mod context;
mod finding;
mod formats;
mod missing;
mod report;
mod runners;
mod silent;
mod test;
mod text;

pub use artifacts::{MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, project_artifacts};
pub use check::{format_check, lint, typecheck};
pub use context::{ArtifactFile, Outcome, Termination};
pub use finding::{Finding, Severity};
pub use report::{
    CheckReport, CouldNotRunReason, Counts, Failure, LintReport, MAX_FAILURES, MAX_FINDINGS,
    MAX_MESSAGE_BYTES, TestReport, TypecheckReport, Verdict,
};
pub use silent::check_unreported_files;
pub use test::tests;

use crate::plan::Invocation;
use context::Context;

/// Judges a command that has no report of its own: an installation, a script, a formatter that writes.
pub fn command(invocation: &Invocation, outcome: &Outcome<'_>) -> Verdict {
    let context = Context::new(invocation, outcome);
    match missing::reason(&context).or_else(|| context.broken_off()) {
        Some(reason) => Verdict::CouldNotRun { reason },
        None if context.succeeded() => Verdict::Passed,
        None => Verdict::Failed,
    }
}
