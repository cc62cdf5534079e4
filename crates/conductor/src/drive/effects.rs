//! Performance of effects, each in a task of its own.
//!
//! Every task reports exactly one message, its result or, if it panicked, a substitute: the state would
//! wait forever for a lost one. Queries are bounded by [`QUERY_TIMEOUT`]; runs and removals have limits of their own.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{Identifier, message_of};
use carrel_tracker::{Issue, IssueId, TrackerError, TrackerErrorKind};
use carrel_workspace::{Error, Remove, Target, UnsavedWork, Workspaces};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::agent_run::{RunJob, TurnCommand};
use super::conductor::Conductor;
use super::event_loop::Message;
use super::notice_log;
use super::setup::Setup;
use crate::claimed_issue::RunId;
use crate::effect::{Dispatch, Effect};
use crate::event::Event;
use crate::state::QueryId;

/// The time for one query to the tracker, all its pages included.
const QUERY_TIMEOUT: Duration = Duration::from_mins(5);

#[derive(Debug)]
pub(super) struct ActiveRun {
    pub(super) issue: IssueId,
    pub(super) stop: CancellationToken,
    commands: mpsc::Sender<TurnCommand>,
}

impl Conductor {
    /// Performs an effect after its journal writes. During the shutdown only notices are; the journal tells
    /// the next conductor the rest.
    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Notify(notice) => {
                notice_log::write(&notice, &self.transcripts);
                self.report.record(&notice);
            }
            _ if self.ending => {}
            Effect::Poll(query) => self.poll(query),
            Effect::Read(query, ids) => self.read(query, ids),
            Effect::Dispatch(dispatch) => self.dispatch(*dispatch),
            Effect::NextTurn { run, turn } => self.send_turn_command(run, TurnCommand::Turn(turn)),
            Effect::Finish(run) => self.send_turn_command(run, TurnCommand::Finish),
            Effect::Stop(run) => {
                if let Some(active) = self.active.get(&run) {
                    active.stop.cancel();
                }
            }
            Effect::Clean(issue, workspace) => self.clean(*issue, workspace),
            Effect::Save(_) | Effect::Erase(_) | Effect::SaveLedger => {}
        }
    }

    fn poll(&mut self, query: QueryId) {
        let setup = Arc::clone(&self.setup);
        let lost = Message::Event(Event::Polled(query, Err(panicked())));
        self.queries.spawn(reporting(self.inbox.clone(), lost, async move {
            let states = &setup.config().tracker.active_states;
            let found = with_timeout(setup.tracker.by_states(states)).await;
            Message::Event(Event::Polled(query, found))
        }));
    }

    fn read(&mut self, query: QueryId, ids: Vec<IssueId>) {
        let setup = Arc::clone(&self.setup);
        let lost = Message::Event(Event::Read(query, ids.clone(), Err(panicked())));
        self.queries.spawn(reporting(self.inbox.clone(), lost, async move {
            let found = with_timeout(setup.tracker.by_ids(&ids)).await;
            Message::Event(Event::Read(query, ids, found))
        }));
    }

    fn dispatch(&mut self, dispatch: Dispatch) {
        let (run, issue) = (dispatch.run, dispatch.issue.id.clone());
        let (commands, queue) = mpsc::channel(2);
        let stop = CancellationToken::new();
        let job = RunJob {
            wait_for_workspace: self.unsettled.contains(&issue),
            dispatch,
            setup: Arc::clone(&self.setup),
            transcripts: self.transcripts.clone(),
            runner: Arc::clone(&self.runner),
            clock: Arc::clone(&self.clock),
            inbox: self.inbox.clone(),
            commands: queue,
            stop: stop.clone(),
        };
        self.active.insert(run, ActiveRun { issue, stop, commands });
        self.jobs.spawn(reporting(self.inbox.clone(), Message::RunPanicked(run), async move {
            let (end, teardown) = job.run().await;
            Message::RunOver(run, end, teardown)
        }));
    }

    fn send_turn_command(&mut self, run: RunId, next: TurnCommand) {
        if let Some(active) = self.active.get(&run) {
            // A run that does not receive any more is about to end.
            let _ = active.commands.try_send(next);
        }
    }

    fn clean(&mut self, issue: Issue, workspace: Option<PathBuf>) {
        let setup = Arc::clone(&self.setup);
        let id = issue.id.clone();
        let failed = Err("the removal panicked, which is a defect in Carrel".to_owned());
        let lost = Message::Event(Event::Cleaned(id.clone(), failed));
        self.jobs.spawn(reporting(self.inbox.clone(), lost, async move {
            Message::Event(Event::Cleaned(id, clean(&setup, &issue, workspace).await))
        }));
    }
}

/// Awaits `work` and sends its message, or `lost` if it panics.
fn reporting(
    inbox: mpsc::Sender<Message>,
    lost: Message,
    work: impl Future<Output = Message> + Send + 'static,
) -> BoxFuture<'static, ()> {
    let work: BoxFuture<'static, Message> = Box::pin(work);
    Box::pin(async move {
        let message = AssertUnwindSafe(work).catch_unwind().await.unwrap_or(lost);
        // The conductor receives as long as it needs results.
        let _ = inbox.send(message).await;
    })
}

async fn with_timeout(
    query: impl Future<Output = Result<Vec<Issue>, TrackerError>>,
) -> Result<Vec<Issue>, TrackerError> {
    let late =
        |_| Err(TrackerError::new(TrackerErrorKind::Request, "the tracker did not answer in time"));
    tokio::time::timeout(QUERY_TIMEOUT, query).await.unwrap_or_else(late)
}

fn panicked() -> TrackerError {
    let message = "the query to the tracker panicked, which is a defect in Carrel";
    TrackerError::new(TrackerErrorKind::Response, message)
}

/// Removes the workspace of an issue at its recorded path, or by identifier, and returns the name of unsaved work
/// that is kept. A workspace that does not exist counts as removed, and one that another tracker's issue owns stays.
async fn clean(
    setup: &Setup,
    issue: &Issue,
    workspace: Option<PathBuf>,
) -> Result<Option<String>, String> {
    let identifier = Identifier::parse(&issue.identifier).map_err(|error| error.to_string())?;
    let (workspaces, target) = match workspace {
        None => (setup.workspaces.clone(), Target::Identifier(identifier.clone())),
        Some(path) => {
            let Some(there) = setup.workspaces_of(&path) else { return Ok(None) };
            (there, Target::Path(path))
        }
    };
    if let Ok(record) = workspaces.record(&identifier)
        && let Some(there) = record.foreign_to(Some(&setup.tracker_name))
    {
        let (issue_identifier, there) = (issue.identifier.as_str(), &there.location);
        warn!(issue_identifier, there, "The workspace of an issue of another tracker stays");
        return Ok(None);
    }
    let request = Remove { target, unsaved: UnsavedWork::Keep };
    match workspaces.remove(request, &setup.hooks).await {
        Ok(removed) => {
            sweep(workspaces);
            Ok(removed.kept.map(|kept| kept.name))
        }
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(message_of(&error)),
    }
}

/// Empties the trash in the background. A failure leaves the rest to the next removal.
pub(super) fn sweep(workspaces: Workspaces) {
    tokio::task::spawn_blocking(move || {
        if let Err(error) = workspaces.sweep() {
            warn!(error = message_of(&error), "The trash cannot be emptied");
        }
    });
}
