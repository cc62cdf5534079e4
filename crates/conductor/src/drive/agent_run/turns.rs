//! The turns of a session.
//!
//! Each turn sends a prompt, awaits the agent's answer, reports the turn's effects and waits for the
//! conductor's decision. A stopped turn has [`STOP_GRACE`] to end, since some agents save their
//! conversation when they are interrupted; closing the session then kills what is left.

use std::sync::Arc;
use std::time::Duration;

use carrel_agent::{AgentFailure, FailureKind, Session, Teardown};
use carrel_workspace::Workspace;
use serde_json::json;
use tracing::{Instrument as _, warn};

use super::effect_observer::EffectObserver;
use super::event_reader::EventReader;
use super::{RunInProgress, TurnCommand, prompts, spans};
use crate::drive::SnapshotRequest;
use crate::event::{AgentUpdate, Event, RunEnd, TurnEffects};

/// The time that a stopped agent has to end its turn.
const STOP_GRACE: Duration = Duration::from_secs(30);

const STOPPED_BETWEEN: &str = "stopped between two turns";

impl RunInProgress {
    /// Runs turns until the conductor finishes the run, a turn fails or the run is stopped.
    pub(super) async fn turns(
        &mut self,
        session: &mut dyn Session,
        workspace: &Arc<Workspace>,
        first: String,
        reader: &mut EventReader,
        mut observer: EffectObserver,
    ) -> RunEnd {
        let resumed = session.thread().is_some() && session.thread() == self.job.dispatch.thread;
        let mut prompt = prompts::first_turn(&first, &self.job.dispatch, resumed);
        let mut number = 1;
        loop {
            let recording = self.take_snapshot(workspace, number);
            reader.read_while(&self.transcript, recording).await;
            self.transcript.note("prompt", json!({ "text": prompt })).await;
            let span = spans::turn(number);
            let ended = self.turn(session, &prompt, reader).instrument(span.clone()).await;
            spans::turn_ended(&span, session.thread().as_deref(), &ended);
            drop(span);
            let answer = match ended {
                Ok(answer) => answer,
                Err(failure) => return self.failed(&failure, reader.session.as_deref()).await,
            };
            self.transcript.note("answer", json!({ "text": answer })).await;
            reader.flush(&self.transcript).await;
            let Some(effects) = self.observe(&mut observer, reader).await else {
                return RunEnd::Failed(STOPPED_BETWEEN.to_owned());
            };
            self.transcript.note("effects", json!({ "text": effects.to_string() })).await;
            self.send(Event::AgentUpdated(self.job.dispatch.run, AgentUpdate::TurnEnded(effects)))
                .await;
            match self.next(reader).await {
                Some(TurnCommand::Turn(turn)) => {
                    number = turn;
                    let most = self.job.setup.config().agent.max_turns;
                    let known = session.thread().is_some();
                    prompt =
                        prompts::next_turn(&first, &self.job.dispatch.issue, turn, most, known);
                }
                Some(TurnCommand::Finish) => return RunEnd::Completed,
                None => return RunEnd::Failed(STOPPED_BETWEEN.to_owned()),
            }
        }
    }

    /// Takes a snapshot of the workspace before a turn. A failure costs the snapshot and not the turn.
    async fn take_snapshot(&self, workspace: &Arc<Workspace>, turn: u64) {
        let issue = self.job.dispatch.issue.identifier.clone();
        let (runner, workspace) = (Arc::clone(&self.job.runner), Arc::clone(workspace));
        let request = SnapshotRequest { runner, workspace, issue, turn };
        let taken = self.job.stop.run_until_cancelled((self.job.setup.snapshots)(request)).await;
        match taken.unwrap_or(Ok(None)) {
            Ok(Some(number)) => {
                self.transcript.note("snapshot", json!({ "turn": turn, "number": number })).await;
            }
            Ok(None) => {}
            Err(error) => warn!(turn, error, "no snapshot was taken before a turn"),
        }
    }

    async fn turn(
        &mut self,
        session: &mut dyn Session,
        prompt: &str,
        reader: &mut EventReader,
    ) -> Result<String, AgentFailure> {
        let grace_over = async {
            self.job.stop.cancelled().await;
            tokio::time::sleep(STOP_GRACE).await;
        };
        let turn = reader.read_while(&self.transcript, session.turn(prompt));
        tokio::select! {
            ended = turn => ended,
            () = grace_over => {
                // The abandoned turn may have been starting a process.
                self.teardown = Teardown::Incomplete;
                let message = "the agent did not end its turn when it was stopped".to_owned();
                Err(AgentFailure { kind: FailureKind::Stopped, message })
            }
        }
    }

    /// Returns the effects of a turn; `None` if the run is stopped meanwhile.
    async fn observe(
        &self,
        observer: &mut EffectObserver,
        reader: &mut EventReader,
    ) -> Option<TurnEffects> {
        let observing = self.job.stop.run_until_cancelled(observer.effects());
        reader.read_while(&self.transcript, observing).await
    }

    /// Waits for the conductor's decision; `None` if the run is stopped.
    async fn next(&mut self, reader: &mut EventReader) -> Option<TurnCommand> {
        let (commands, stop) = (&mut self.job.commands, &self.job.stop);
        let waiting = async {
            tokio::select! {
                () = stop.cancelled() => None,
                next = commands.recv() => next,
            }
        };
        reader.read_while(&self.transcript, waiting).await
    }
}
