//! The result of `carrel run --once`, collected from notices.

use crate::notice::{Notice, RunOutcome};

/// The result of a conductor, from which `carrel run` derives its exit status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Successful runs, and runs that were stopped because their issue was finished.
    pub succeeded: usize,
    /// Failures: the identifier of the issue, and the error.
    pub failed: Vec<(String, String)>,
    /// The conductor that acquired the tenure, if this one lost it. Later runs are unknown here.
    pub superseded: Option<String>,
}

impl Report {
    pub(super) fn record(&mut self, notice: &Notice) {
        match notice {
            Notice::RunEnded { issue, outcome, error, .. } => match outcome {
                RunOutcome::Success | RunOutcome::Stopped => self.succeeded += 1,
                RunOutcome::Failure
                | RunOutcome::Stall
                | RunOutcome::Blocked
                | RunOutcome::BudgetExceeded
                | RunOutcome::RateLimited
                | RunOutcome::Cancelled => {
                    let why = error.clone().unwrap_or_else(|| format!("{outcome:?}"));
                    self.failed.push((issue.identifier.clone(), why));
                }
            },
            Notice::TrackerFailed { error, .. } => {
                let failure = ("the tracker".to_owned(), error.clone());
                if !self.failed.contains(&failure) {
                    self.failed.push(failure);
                }
            }
            _ => {}
        }
    }
}
