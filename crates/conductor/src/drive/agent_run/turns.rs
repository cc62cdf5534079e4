//! One turn after the other.

use std::sync::Arc;
use std::time::Duration;

use carrel_agent::{AgentFailure, FailureKind, Session, Teardown};
use carrel_workspace::Workspace;
use serde_json::json;
use tracing::Instrument as _;

use super::event_reader::EventReader;
use super::{RunInProgress, TurnCommand, prompts, spans};
use crate::claimed_issue::TurnFingerprint;
use crate::drive::turn_fingerprint;
use crate::event::{AgentUpdate, Event, RunEnd};

/// How long an agent that was told to stop may take to end its turn by itself.
const GRACE: Duration = Duration::from_secs(30);

impl RunInProgress {
    /// Takes turns until there is no further one.
    pub(super) async fn turns(
        &mut self,
        session: &mut dyn Session,
        first: String,
        reader: &mut EventReader,
        workspace: &Arc<Workspace>,
    ) -> RunEnd {
        let resumed = session.thread().is_some() && session.thread() == self.job.start.thread;
        let mut prompt = prompts::opening(&first, &self.job.start, resumed);
        let mut number = 1;
        loop {
            self.transcript.note("prompt", json!({ "text": prompt })).await;
            let span = spans::turn(number);
            let ended = self.turn(session, &prompt, reader).instrument(span.clone()).await;
            spans::turn_ended(&span, session.thread().as_deref(), &ended);
            drop(span);
            let answer = match ended {
                Ok(answer) => answer,
                Err(failure) => return self.failed(&failure, reader.session()).await,
            };
            self.transcript.note("answer", json!({ "text": answer })).await;
            reader.flush(&self.transcript).await;
            let left = left_behind(workspace, &answer).await;
            self.send(Event::AgentUpdated(self.job.start.run, AgentUpdate::TurnEnded(left))).await;
            match self.next(reader).await {
                Some(TurnCommand::Turn(turn)) => {
                    number = turn;
                    let most = self.job.setup.config().agent.max_turns;
                    let known = session.thread().is_some();
                    prompt = prompts::further(&first, &self.job.start.issue, turn, most, known);
                }
                Some(TurnCommand::Finish) => return RunEnd::Completed,
                None => return RunEnd::Failed("stopped between two turns".to_owned()),
            }
        }
    }

    async fn turn(
        &mut self,
        session: &mut dyn Session,
        prompt: &str,
        reader: &mut EventReader,
    ) -> Result<String, AgentFailure> {
        let patience = async {
            self.job.stop.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        let turn = reader.during(&self.transcript, session.turn(prompt));
        tokio::select! {
            ended = turn => ended,
            () = patience => {
                // What it was about to start may be there all the same.
                self.remains = Teardown::Incomplete;
                let message = "it did not end its turn when it was told to".to_owned();
                Err(AgentFailure { kind: FailureKind::Stopped, message })
            }
        }
    }

    /// Waits for what is to follow; nothing if the run is stopped.
    async fn next(&mut self, reader: &mut EventReader) -> Option<TurnCommand> {
        let (orders, stop) = (&mut self.job.orders, &self.job.stop);
        let waiting = async {
            tokio::select! {
                () = stop.cancelled() => None,
                next = orders.recv() => next,
            }
        };
        reader.during(&self.transcript, waiting).await
    }
}

/// Looks at what a turn left behind.
async fn left_behind(workspace: &Arc<Workspace>, answer: &str) -> Option<TurnFingerprint> {
    let (workspace, answer) = (Arc::clone(workspace), answer.to_owned());
    let look = move || turn_fingerprint::of(workspace.files(), &answer);
    tokio::task::spawn_blocking(look).await.ok().flatten()
}
