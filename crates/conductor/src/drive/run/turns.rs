//! One turn after the other.

use std::sync::Arc;
use std::time::Duration;

use carrel_agent::{Failure, FailureKind, Remains, Session};
use carrel_workspace::Workspace;
use serde_json::json;
use tracing::Instrument as _;

use super::ears::Ears;
use super::{Doing, Next, spans, words};
use crate::drive::trace;
use crate::entry::Trace;
use crate::event::{End, Event, News};

/// How long an agent that was told to stop may take to end its turn by itself.
const GRACE: Duration = Duration::from_secs(30);

impl Doing {
    /// Takes turns until there is no further one.
    pub(super) async fn turns(
        &mut self,
        session: &mut dyn Session,
        first: String,
        ears: &mut Ears,
        workspace: &Arc<Workspace>,
    ) -> End {
        let resumed = session.thread().is_some() && session.thread() == self.job.start.thread;
        let mut prompt = words::opening(&first, &self.job.start, resumed);
        let mut number = 1;
        loop {
            self.transcript.note("prompt", json!({ "text": prompt })).await;
            let span = spans::turn(number);
            let ended = self.turn(session, &prompt, ears).instrument(span.clone()).await;
            spans::turn_ended(&span, session.thread().as_deref(), &ended);
            drop(span);
            let answer = match ended {
                Ok(answer) => answer,
                Err(failure) => return self.failed(&failure, ears.session()).await,
            };
            self.transcript.note("answer", json!({ "text": answer })).await;
            ears.flush(&self.transcript).await;
            let left = left_behind(workspace, &answer).await;
            self.send(Event::Heard(self.job.start.run, News::TurnEnded(left))).await;
            match self.next(ears).await {
                Some(Next::Turn(turn)) => {
                    number = turn;
                    let most = self.job.setup.config().agent.max_turns;
                    let known = session.thread().is_some();
                    prompt = words::further(&first, &self.job.start.issue, turn, most, known);
                }
                Some(Next::Finish) => return End::Well,
                None => return End::Failed("stopped between two turns".to_owned()),
            }
        }
    }

    async fn turn(
        &mut self,
        session: &mut dyn Session,
        prompt: &str,
        ears: &mut Ears,
    ) -> Result<String, Failure> {
        let patience = async {
            self.job.stop.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        let turn = ears.during(&self.transcript, session.turn(prompt));
        tokio::select! {
            ended = turn => ended,
            () = patience => {
                // What it was about to start may be there all the same.
                self.remains = Remains::Something;
                let message = "it did not end its turn when it was told to".to_owned();
                Err(Failure { kind: FailureKind::Stopped, message })
            }
        }
    }

    /// Waits for what is to follow; nothing if the run is stopped.
    async fn next(&mut self, ears: &mut Ears) -> Option<Next> {
        let (orders, stop) = (&mut self.job.orders, &self.job.stop);
        let waiting = async {
            tokio::select! {
                () = stop.cancelled() => None,
                next = orders.recv() => next,
            }
        };
        ears.during(&self.transcript, waiting).await
    }
}

/// Looks at what a turn left behind.
async fn left_behind(workspace: &Arc<Workspace>, answer: &str) -> Option<Trace> {
    let (workspace, answer) = (Arc::clone(workspace), answer.to_owned());
    let look = move || trace::of(workspace.files(), &answer);
    tokio::task::spawn_blocking(look).await.ok().flatten()
}
