//! Orders that cannot be carried out.

use crate::entry::{Block, Reason, Stage};
use crate::event::Order;
use crate::state::State;
use carrel_tracker::IssueId;

/// Why an order is not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such issue here.
    #[error("{0} is not among the issues that are worked on; it may not be in an active state")]
    Unknown(IssueId),
    /// The issue does not stand where the order needs it.
    #[error("{what} {why}")]
    Conflict {
        /// What people know the issue by.
        what: String,
        /// Where it stands instead, and what helps.
        why: &'static str,
    },
}

impl State {
    /// Says why an order cannot be carried out as things stand, if it cannot.
    pub fn refusal(&self, order: &Order) -> Option<Refused> {
        match order {
            Order::Refresh | Order::Pause | Order::Drain | Order::Resume => None,
            Order::Cancel(id) => self.conflict(id, not_cancelled),
            Order::RetryNow(id) => self.conflict(id, not_retried),
            Order::Unblock(id) => self.conflict(id, not_unblocked),
            Order::Answer(id, _) => self.conflict(id, not_answered),
        }
    }

    fn conflict(
        &self,
        id: &IssueId,
        refusal: fn(Option<&Stage>) -> Option<&'static str>,
    ) -> Option<Refused> {
        let entry = self.entries.get(id);
        if entry.is_none() && !self.waiting.contains_key(id) {
            return Some(Refused::Unknown(id.clone()));
        }
        let why = refusal(entry.map(|entry| &entry.stage))?;
        Some(Refused::Conflict { what: self.subject(id).identifier, why })
    }
}

const NOT_WORKED_ON: &str = "is not worked on; move it to an active state";
const FINISHED: &str = "is finished, and its workspace is being removed";
const AT_WORK: &str = "is being worked on; cancel it first";
const WAITS: &str = "waits for a place already";
const NOT_BLOCKED: &str = "is not blocked";

fn not_cancelled(stage: Option<&Stage>) -> Option<&'static str> {
    match stage {
        None
        | Some(
            Stage::Checking { .. }
            | Stage::Running(_)
            | Stage::Stopping { .. }
            | Stage::Retrying(_)
            | Stage::Blocked(_),
        ) => None,
        Some(Stage::Resting) => Some(NOT_WORKED_ON),
        Some(Stage::Cleaning { .. }) => Some(FINISHED),
    }
}

fn not_retried(stage: Option<&Stage>) -> Option<&'static str> {
    match stage {
        Some(Stage::Retrying(_) | Stage::Blocked(_) | Stage::Cleaning { due: Some(_), .. }) => None,
        None => Some(WAITS),
        Some(Stage::Checking { .. } | Stage::Running(_) | Stage::Stopping { .. }) => Some(AT_WORK),
        Some(Stage::Resting) => Some(NOT_WORKED_ON),
        Some(Stage::Cleaning { due: None, .. }) => Some(FINISHED),
    }
}

fn not_unblocked(stage: Option<&Stage>) -> Option<&'static str> {
    (!matches!(stage, Some(Stage::Blocked(_)))).then_some(NOT_BLOCKED)
}

fn not_answered(stage: Option<&Stage>) -> Option<&'static str> {
    let asked = Reason::is_question;
    let waits = matches!(stage, Some(Stage::Blocked(Block { reason, .. })) if asked(reason));
    (!waits).then_some("has no agent that asked anything")
}
