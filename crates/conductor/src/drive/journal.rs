//! Translation between the state and the records of the write-ahead journal.
//!
//! The store keeps three things per tracker: each claimed issue as JSON, the ledger as JSON, and a row for
//! each run. [`split_effects`] turns the journal effects of a decision into records that are written in
//! one transaction; [`recover`] reads them back. An issue that an incompatible version wrote is skipped
//! with an error in the log: the tracker lists it again, and its workspace is found by its identifier.

use std::collections::{BTreeMap, BTreeSet};

use carrel_store::{Journal, JournalRecord, NewRun, StoreError};
use serde_json::json;
use tracing::error;

use crate::claimed_issue::RunId;
use crate::effect::Effect;
use crate::event::{AgentUpdate, Event, RunEnd};
use crate::rules::Rules;
use crate::state::State;
use carrel_tracker::IssueId;

use super::transcript::TranscriptWriter;

/// Reads the state that the last conductor of a scope left.
pub(super) async fn recover(
    journal: &dyn Journal,
    scope: &str,
    rules: Rules,
) -> Result<State, StoreError> {
    let mut issues = BTreeMap::new();
    for (issue, claimed) in journal.entries(scope).await? {
        match serde_json::from_value(claimed) {
            Ok(claimed) => {
                issues.insert(IssueId(issue), claimed);
            }
            Err(error) => {
                error!(issue_id = issue, %error, "A journaled issue cannot be read and is skipped");
            }
        }
    }
    let ledger = journal.ledger(scope).await?.map(serde_json::from_value).transpose();
    let ledger = ledger.unwrap_or_else(|error| {
        error!(%error, "The journaled ledger cannot be read; spending starts from zero");
        None
    });
    let last_run = RunId(journal.last_run(scope).await?.unwrap_or_default());
    Ok(State::begin(rules, issues, ledger.unwrap_or_default()).after_run(last_run))
}

/// Returns the record of a run that ended with its conductor.
pub(super) fn interrupted(run: u64) -> JournalRecord {
    JournalRecord::RunEnded { run, outcome: "interrupted".to_owned(), error: None }
}

/// Returns the record of an event in the row of its run.
pub(super) fn run_record(event: &Event) -> Option<JournalRecord> {
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

/// Returns the wire name of a run's result, and its error.
pub(super) fn outcome(end: &RunEnd) -> (&'static str, Option<String>) {
    match end {
        RunEnd::Completed => ("success", None),
        RunEnd::Failed(error) => ("failure", Some(error.clone())),
        RunEnd::RateLimited(_) => ("rate_limited", None),
        RunEnd::Blocked(reason) => ("blocked", Some(json!(reason).to_string())),
    }
}

/// Splits effects into journal records and the effects to perform after they are durable. An issue that
/// several decisions of a batch changed is written once, in its final state.
pub(super) fn split_effects(
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
            Effect::Dispatch(ref start) => {
                let transcript = transcripts.path(&start.issue.identifier, start.run);
                runs.push(JournalRecord::RunStarted(NewRun {
                    run: start.run.0,
                    issue: start.issue.id.0.clone(),
                    identifier: start.issue.identifier.clone(),
                    attempt: start.attempt.unwrap_or_default(),
                    transcript: Some(transcript.to_string_lossy().into_owned()),
                }));
            }
            _ => {}
        }
        doing.push(effect);
    }
    let issues = touched.into_iter().map(|id| match state.issues.get(&id) {
        Some(claimed) => JournalRecord::Save { issue: id.0, entry: json!(claimed) },
        None => JournalRecord::Delete { issue: id.0 },
    });
    (issues.chain(ledger).chain(runs).collect(), doing)
}
