//! Beginning what the loop wants done, each thing in a task of its own.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{Identifier, message_of};
use carrel_tracker::{Issue, IssueId, TrackerError, TrackerErrorKind};
use carrel_workspace::{Error, Remove, Target, Workspaces};
use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::agent_run::{RunJob, TurnCommand};
use super::conductor::Conductor;
use super::event_loop::Message;
use super::setup::Setup;
use crate::claimed_issue::RunId;
use crate::effect::{Dispatch, Effect};
use crate::event::Event;
use crate::state::QueryId;

/// How long a tracker may take to answer everything that one question needs.
const PATIENCE: Duration = Duration::from_mins(5);

/// A run that is not over.
#[derive(Debug)]
pub(super) struct ActiveRun {
    pub(super) issue: IssueId,
    pub(super) stop: CancellationToken,
    orders: mpsc::Sender<TurnCommand>,
}

impl Conductor {
    /// Begins something.
    pub(super) fn act(&mut self, effect: Effect) {
        match effect {
            Effect::Poll(query) => self.poll(query),
            Effect::Read(query, ids) => self.read(query, ids),
            Effect::Dispatch(start) => self.start(*start),
            Effect::NextTurn { run, turn } => self.tell(run, TurnCommand::Turn(turn)),
            Effect::Finish(run) => self.tell(run, TurnCommand::Finish),
            Effect::Stop(run) => {
                if let Some(active) = self.active.get(&run) {
                    active.stop.cancel();
                }
            }
            Effect::Clean(issue, workspace) => self.clean(*issue, workspace),
            Effect::Save(_) | Effect::Erase(_) | Effect::SaveLedger | Effect::Notify(_) => {}
        }
    }

    fn poll(&mut self, query: QueryId) {
        let setup = Arc::clone(&self.setup);
        let polled = async move {
            let states = &setup.config().tracker.active_states;
            let found = in_time(setup.tracker.by_states(states)).await;
            Message::Event(Event::Polled(query, found))
        };
        let lost = Message::Event(Event::Polled(query, Err(broken())));
        let task = told(self.inbox.clone(), lost, polled);
        self.questions.spawn(task);
    }

    fn read(&mut self, query: QueryId, ids: Vec<IssueId>) {
        let setup = Arc::clone(&self.setup);
        let lost = Message::Event(Event::Read(query, ids.clone(), Err(broken())));
        let read = async move {
            let found = in_time(setup.tracker.by_ids(&ids)).await;
            Message::Event(Event::Read(query, ids, found))
        };
        let task = told(self.inbox.clone(), lost, read);
        self.questions.spawn(task);
    }

    fn start(&mut self, start: Dispatch) {
        let (run, issue) = (start.run, start.issue.id.clone());
        let (orders, queue) = mpsc::channel(2);
        let stop = CancellationToken::new();
        let job = RunJob {
            settle: self.unsettled.contains(&issue),
            start,
            setup: Arc::clone(&self.setup),
            transcripts: self.transcripts.clone(),
            runner: Arc::clone(&self.runner),
            clock: Arc::clone(&self.clock),
            inbox: self.inbox.clone(),
            orders: queue,
            stop: stop.clone(),
        };
        self.active.insert(run, ActiveRun { issue, stop, orders });
        let worked = async move {
            let (end, remains) = job.run().await;
            Message::Over(run, end, remains)
        };
        let task = told(self.inbox.clone(), Message::Broke(run), worked);
        self.works.spawn(task);
    }

    fn tell(&mut self, run: RunId, next: TurnCommand) {
        if let Some(active) = self.active.get(&run) {
            // One that does not listen any more is about to be over.
            let _ = active.orders.try_send(next);
        }
    }

    fn clean(&mut self, issue: Issue, workspace: Option<PathBuf>) {
        let setup = Arc::clone(&self.setup);
        let id = issue.id.clone();
        let failed = Err("the removal broke off: a defect in Carrel".to_owned());
        let lost = Message::Event(Event::Cleaned(id.clone(), failed));
        let cleaned = async move {
            let cleaned = clean(&setup, &issue, workspace).await;
            Message::Event(Event::Cleaned(id, cleaned))
        };
        let task = told(self.inbox.clone(), lost, cleaned);
        self.works.spawn(task);
    }
}

/// Does something and tells what came of it, whatever happens.
async fn told(
    inbox: mpsc::Sender<Message>,
    lost: Message,
    work: impl Future<Output = Message> + Send,
) {
    let message = AssertUnwindSafe(work).catch_unwind().await.unwrap_or(lost);
    // The conductor listens as long as it wants to know.
    let _ = inbox.send(message).await;
}

async fn in_time(
    query: impl Future<Output = Result<Vec<Issue>, TrackerError>>,
) -> Result<Vec<Issue>, TrackerError> {
    let late = |_| {
        Err(TrackerError::new(TrackerErrorKind::Request, "the tracker takes too long to answer"))
    };
    tokio::time::timeout(PATIENCE, query).await.unwrap_or_else(late)
}

fn broken() -> TrackerError {
    TrackerError::new(
        TrackerErrorKind::Response,
        "the question to the tracker broke off: a defect in Carrel",
    )
}

/// Removes the workspace of an issue where it is remembered to be. One that is not there is gone.
async fn clean(setup: &Setup, issue: &Issue, workspace: Option<PathBuf>) -> Result<(), String> {
    let identifier = Identifier::parse(&issue.identifier).map_err(|error| error.to_string())?;
    let (workspaces, target) = match workspace {
        None => (setup.workspaces.clone(), Target::Identifier(identifier.clone())),
        Some(path) => {
            let Some(there) = setup.workspaces_of(&path) else { return Ok(()) };
            (there, Target::Path(path))
        }
    };
    if let Ok(record) = workspaces.record(&identifier)
        && let Some(there) = record.foreign_to(Some(&setup.tracker_name))
    {
        let issue_identifier = issue.identifier.as_str();
        warn!(
            issue_identifier,
            there = there.location,
            "The workspace of an issue of another tracker stays"
        );
        return Ok(());
    }
    let request = Remove { target, keep_if_dirty: false };
    match workspaces.remove(request, &setup.hooks).await {
        Ok(_) => {
            sweep(workspaces);
            Ok(())
        }
        Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(message_of(&error)),
    }
}

/// Deletes what is in the trash, while other things happen. What is left is deleted another time.
pub(super) fn sweep(workspaces: Workspaces) {
    tokio::task::spawn_blocking(move || {
        if let Err(error) = workspaces.sweep() {
            warn!(error = message_of(&error), "The trash cannot be emptied");
        }
    });
}
