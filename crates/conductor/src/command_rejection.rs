//! Orders that cannot be carried out.

use crate::claimed_issue::{Block, BlockReason, Stage};
use crate::event::OperatorCommand;
use crate::state::State;
use carrel_tracker::IssueId;

/// Why an order is not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandRejection {
    /// There is no such issue here.
    #[error("{0} is not among the issues that are worked on; it may not be in an active state")]
    UnknownIssue(IssueId),
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
    pub fn reject(&self, order: &OperatorCommand) -> Option<CommandRejection> {
        match order {
            OperatorCommand::Refresh
            | OperatorCommand::Pause
            | OperatorCommand::Drain
            | OperatorCommand::Resume => None,
            OperatorCommand::Cancel(id) => self.conflict(id, not_cancelled),
            OperatorCommand::RetryNow(id) => self.conflict(id, not_retried),
            OperatorCommand::Unblock(id) => self.conflict(id, not_unblocked),
            OperatorCommand::Answer(id, _) => self.conflict(id, not_answered),
        }
    }

    fn conflict(
        &self,
        id: &IssueId,
        refusal: fn(Option<&Stage>) -> Option<&'static str>,
    ) -> Option<CommandRejection> {
        let entry = self.issues.get(id);
        if entry.is_none() && !self.waiting.contains_key(id) {
            return Some(CommandRejection::UnknownIssue(id.clone()));
        }
        let why = refusal(entry.map(|entry| &entry.stage))?;
        Some(CommandRejection::Conflict { what: self.issue_ref(id).identifier, why })
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
    let query = BlockReason::is_question;
    let waits = matches!(stage, Some(Stage::Blocked(Block { reason, .. })) if query(reason));
    (!waits).then_some("has no agent that asked anything")
}
