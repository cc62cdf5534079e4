//! Outputs of [`crate::decide`]: everything that happens outside the state.

use std::path::PathBuf;

use crate::claimed_issue::RunId;
use crate::notice::Notice;
use crate::state::QueryId;
use carrel_tracker::{Issue, IssueId};

/// An action that the drive loop performs.
///
/// Contract of the loop: `Save`, `Erase` and `SaveLedger` of a decision are durable before any other
/// effect of it begins. Each `Poll`, `Read` and `Clean` leads to exactly one event with its result, and
/// each `Dispatch` to exactly one [`crate::Event::RunEnded`], also after a panic.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Request the issues in active states from the tracker. The result is [`crate::Event::Polled`].
    Poll(QueryId),
    /// Request issues by id from the tracker. The result is [`crate::Event::Read`].
    Read(QueryId, Vec<IssueId>),
    /// Start a run: workspace, hooks, agent and the first turn.
    Dispatch(Box<Dispatch>),
    /// Start another turn of a run, in the same conversation.
    NextTurn {
        /// The run that waits between two turns.
        run: RunId,
        /// The number of the turn.
        turn: u64,
    },
    /// End a run that waits between two turns. Its end counts as a success.
    Finish(RunId),
    /// End the agent of a run and every process that it started: first by the protocol's interrupt, so that
    /// the conversation is recorded, then by a signal.
    Stop(RunId),
    /// Remove the workspace of an issue, at its recorded path if there is one. The result is
    /// [`crate::Event::Cleaned`].
    Clean(Box<Issue>, Option<PathBuf>),
    /// Write an issue to the journal as it is in the state after all decisions of the batch.
    Save(IssueId),
    /// Delete an issue from the journal.
    Erase(IssueId),
    /// Write [`crate::State::ledger`] to the journal.
    SaveLedger,
    /// Log a notice and publish it to subscribers. Nothing depends on it.
    Notify(Notice),
}

/// The start of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispatch {
    /// The number of the run.
    pub run: RunId,
    /// The issue as it was read immediately before the dispatch.
    pub issue: Issue,
    /// The number of the retry; `None` for the first run.
    pub attempt: Option<u32>,
    /// The conversation to resume.
    pub thread: Option<String>,
    /// The operator's answer to the question that blocked the issue.
    pub answer: Option<String>,
    /// The workspace of earlier runs, which may be below a root that the workflow file no longer names.
    pub workspace: Option<PathBuf>,
}
