//! Between what the loop knows and what is on the disk.

use std::collections::{BTreeMap, BTreeSet};

use carrel_store::{Journal, JournalRecord, NewRun, StoreError};
use serde_json::json;
use tracing::error;

use crate::claimed_issue::{ClaimedIssue, RunId};
use crate::effect::Effect;
use crate::event::{AgentUpdate, Event, RunEnd};
use crate::state::{Ledger, State};
use carrel_tracker::IssueId;

use super::transcript::TranscriptWriter;

/// What was remembered.
#[derive(Debug)]
pub(super) struct RecoveredState {
    pub(super) issues: BTreeMap<IssueId, ClaimedIssue>,
    pub(super) ledger: Ledger,
    pub(super) last_run: RunId,
}

/// Reads what was remembered.
pub(super) async fn recall(
    journal: &dyn Journal,
    scope: &str,
) -> Result<RecoveredState, StoreError> {
    let mut entries = BTreeMap::new();
    for (issue, entry) in journal.entries(scope).await? {
        match serde_json::from_value(entry) {
            Ok(entry) => {
                entries.insert(IssueId(issue), entry);
            }
            // Its workspace is found again by its identifier.
            Err(error) => {
                error!(issue_id = issue, %error, "An entry cannot be read and is left out");
            }
        }
    }
    let ledger = journal.ledger(scope).await?.map(serde_json::from_value).transpose();
    let ledger = ledger.unwrap_or_else(|error| {
        error!(%error, "What was spent cannot be read and counts as nothing");
        None
    });
    let last_run = RunId(journal.last_run(scope).await?.unwrap_or_default());
    Ok(RecoveredState { issues: entries, ledger: ledger.unwrap_or_default(), last_run })
}

/// Returns what is to be noted about a run because of an event.
pub(super) fn of_event(event: &Event) -> Option<JournalRecord> {
    match event {
        Event::WorkspaceReady(run, workspace) => {
            let workspace = workspace.to_string_lossy().into_owned();
            Some(JournalRecord::RunWorkspace { run: run.0, workspace })
        }
        Event::AgentUpdated(run, AgentUpdate::SessionStarted { session, thread }) => {
            let (session, thread) = (session.clone(), thread.clone());
            Some(JournalRecord::RunSession { run: run.0, session, thread })
        }
        Event::RunEnded(run, end) => {
            let (outcome, error) = outcome(end);
            Some(JournalRecord::RunEnded { run: run.0, outcome: outcome.to_owned(), error })
        }
        _ => None,
    }
}

/// Returns how a run ended, in a word and in words.
pub(super) fn outcome(end: &RunEnd) -> (&'static str, Option<String>) {
    match end {
        RunEnd::Completed => ("success", None),
        RunEnd::Failed(error) => ("failure", Some(error.clone())),
        RunEnd::RateLimited(_) => ("rate_limited", None),
        RunEnd::Blocked(reason) => ("blocked", Some(json!(reason).to_string())),
    }
}

/// Splits effects into what is to be remembered and what is to be done after that.
pub(super) fn sort(
    state: &State,
    effects: Vec<Effect>,
    transcripts: &TranscriptWriter,
) -> (Vec<JournalRecord>, Vec<Effect>) {
    let mut touched = BTreeSet::new();
    let (mut runs, mut doing, mut ledger) = (Vec::new(), Vec::new(), None);
    for effect in effects {
        match effect {
            Effect::Save(id) | Effect::Erase(id) => {
                touched.insert(id);
                continue;
            }
            Effect::SaveLedger => {
                ledger = Some(JournalRecord::Ledger(json!(state.ledger)));
                continue;
            }
            Effect::Dispatch(ref start) => runs.push(JournalRecord::RunStarted(NewRun {
                run: start.run.0,
                issue: start.issue.id.0.clone(),
                identifier: start.issue.identifier.clone(),
                attempt: start.attempt.unwrap_or_default(),
                transcript: Some(
                    transcripts
                        .path(&start.issue.identifier, start.run)
                        .to_string_lossy()
                        .into_owned(),
                ),
            })),
            _ => {}
        }
        doing.push(effect);
    }
    let entries = touched.into_iter().map(|id| match state.issues.get(&id) {
        Some(entry) => JournalRecord::Save { issue: id.0, entry: json!(entry) },
        None => JournalRecord::Delete { issue: id.0 },
    });
    (entries.chain(ledger).chain(runs).collect(), doing)
}
