//! Operator commands that do not apply to the current state.

use crate::claimed_issue::{Block, BlockReason, Stage};
use crate::event::OperatorCommand;
use crate::state::State;
use carrel_tracker::IssueId;

/// The reason for which an operator command is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandRejection {
    /// The issue is neither claimed nor waiting.
    #[error("{0} is not an issue of this conductor; it may not be in an active state")]
    UnknownIssue(IssueId),
    /// The issue is in a stage to which the command does not apply.
    #[error("{what} {why}")]
    Conflict {
        /// The identifier of the issue.
        what: String,
        /// Its current stage, and the command that applies instead.
        why: &'static str,
    },
}

impl State {
    /// Returns the rejection of a command, or `None` if it applies.
    ///
    /// [`crate::decide`] ignores a command that is rejected here, so the caller of the loop can send both the
    /// same verdict: the state that was checked is the state that is decided on.
    pub fn reject(&self, command: &OperatorCommand) -> Option<CommandRejection> {
        match command {
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
        let claimed = self.issues.get(id);
        if claimed.is_none() && !self.waiting.contains_key(id) {
            return Some(CommandRejection::UnknownIssue(id.clone()));
        }
        let why = refusal(claimed.map(|claimed| &claimed.stage))?;
        Some(CommandRejection::Conflict { what: self.issue_ref(id).identifier, why })
    }
}

const NOT_CLAIMED: &str = "is not claimed; move it to an active state";
const FINISHED: &str = "is finished, and its workspace is being removed";
const HAS_AGENT: &str = "has an agent; cancel it first";
const WAITS: &str = "already waits for a slot";
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
        Some(Stage::Resting) => Some(NOT_CLAIMED),
        Some(Stage::Cleaning { .. }) => Some(FINISHED),
    }
}

fn not_retried(stage: Option<&Stage>) -> Option<&'static str> {
    match stage {
        Some(Stage::Retrying(_) | Stage::Blocked(_) | Stage::Cleaning { due: Some(_), .. }) => None,
        None => Some(WAITS),
        Some(Stage::Checking { .. } | Stage::Running(_) | Stage::Stopping { .. }) => {
            Some(HAS_AGENT)
        }
        Some(Stage::Resting) => Some(NOT_CLAIMED),
        Some(Stage::Cleaning { due: None, .. }) => Some(FINISHED),
    }
}

fn not_unblocked(stage: Option<&Stage>) -> Option<&'static str> {
    (!matches!(stage, Some(Stage::Blocked(_)))).then_some(NOT_BLOCKED)
}

fn not_answered(stage: Option<&Stage>) -> Option<&'static str> {
    let query = BlockReason::is_question;
    let waits = matches!(stage, Some(Stage::Blocked(Block { reason, .. })) if query(reason));
    (!waits).then_some("has no question to answer")
}
