//! What came of a conductor's work.

use crate::notice::{Notice, RunOutcome};

/// What came of a conductor's work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many runs ended well.
    pub succeeded: usize,
    /// What did not: whose it was, and why.
    pub failed: Vec<(String, String)>,
    /// Who took the issues over, if somebody did. Then nothing more is known of them here.
    pub superseded: Option<String>,
}

impl Report {
    /// Takes note of what people are told.
    pub(super) fn hear(&mut self, notice: &Notice) {
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
