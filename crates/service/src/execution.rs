//! One attempt at a task, from the claim to its end.
//!
//! Three futures run beside each other. The steps run one after the other through the tools. The
//! heartbeat extends the lease and learns of cancellations and of a lost lease. The event writer
//! appends events in groups. Every write carries the claim, and the store refuses it when the attempt
//! is no longer the current one, so that an attempt that lost its lease can change nothing, however
//! late it notices.
//!
//! An attempt ends in one of three ways. `Finished` is terminal and writes the result together with
//! the events that are still buffered. `Retry` releases the task: after a transient failure of the
//! machine, which counts as a lost attempt, or because the worker stops, which does not. `Lost` writes
//! nothing. A process that dies writes nothing either; the lease expires after
//! [`LEASE`](crate::limits::LEASE) and the sweep queues the task again. Steps are not undone: the next
//! attempt begins with the first step in the workspace as it is.

mod attempt;
mod step_output;
mod step_result;
mod step_runner;
mod trace;

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_domain::{Code, Coded as _, TaskStatus, Timestamp, message_of};
use carrel_store::{
    Claim, Event, EventKind, Finish, Finished, Heartbeat, NewEvent, Release, Released, StoreError,
    Task,
};
use carrel_tools::AutomaticSnapshot;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, info, warn};

use self::attempt::Attempt;
use crate::backoff;
use crate::error::ServiceError;
use crate::event_writer::{EventWriter, Unwritten};
use crate::open_workspace::OpenWorkspace;
use crate::request::TaskPlan;
use crate::worker::Shared;

/// The delay before the first heartbeat; tasks that are shorter send none. It also bounds how long a
/// cancellation that arrived between the claim and the registration in the event hub goes unnoticed.
const FIRST_HEARTBEAT: Duration = Duration::from_millis(500);

pub(crate) struct Execution {
    pub(crate) worker: Arc<Shared>,
    pub(crate) claim: Claim,
    pub(crate) task: Task,
}

/// The reason for which an attempt ends before its last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    Cancelled,
    WorkerStopping,
    LeaseLost,
}

#[derive(Clone)]
enum Ending {
    /// The task is terminal.
    Finished { status: TaskStatus, error: Option<String>, result: Value },
    /// The task goes back to the queue; `counts_as_lost` uses up one of its attempts.
    Retry { reason: String, counts_as_lost: bool },
    /// Another attempt may own the task; nothing may be written.
    Lost,
}

impl Execution {
    /// Runs the task. Afterwards its end is in the store, or the lease expires and another attempt follows.
    pub(crate) async fn run(self) {
        let span = trace::task(&self.task, self.claim.attempt);
        self.run_within(&span).instrument(span.clone()).await;
    }

    async fn run_within(self, span: &Span) {
        let started = Instant::now();
        let stop = CancellationToken::new();
        let lost = CancellationToken::new();
        let tasks = &self.worker.tasks;
        let _running = tasks.hub.running(self.claim.task, stop.clone());
        let on_lost = lost.clone();
        let on_lost = Arc::new(move || on_lost.cancel());
        let events = EventWriter::start(tasks.clone(), self.claim, self.task.last_event, on_lost);
        let ending = tokio::select! {
            ending = self.attempt(&events, &stop, &lost) => ending,
            () = self.send_heartbeats(&stop, &lost) => Ending::Lost,
        };
        trace::task_ended(span, &ending);
        let unwritten = events.finish().await;
        self.record(ending, unwritten, started).await;
    }

    /// Extends the lease until it is lost, and cancels `stop` when the task is to be cancelled. Never
    /// returns: after the loss `attempt` still has commands to kill, and it sees `lost` too.
    async fn send_heartbeats(&self, stop: &CancellationToken, lost: &CancellationToken) {
        let (lease, heartbeat) = (self.worker.options.lease, self.worker.options.heartbeat);
        let first = tokio::time::Instant::now() + heartbeat.min(FIRST_HEARTBEAT);
        let mut ticks = tokio::time::interval_at(first, heartbeat);
        let mut extended = Instant::now();
        loop {
            tokio::select! {
                () = lost.cancelled() => break,
                _ = ticks.tick() => {}
            }
            let until = self.now().after(lease);
            match self.worker.tasks.store.heartbeat(self.claim, until).await {
                Ok(Heartbeat::Held { cancel_requested }) => {
                    extended = Instant::now();
                    if cancel_requested {
                        stop.cancel();
                    }
                }
                Ok(Heartbeat::Lost) => break,
                Err(error) => {
                    warn!(%error, task = %self.claim.task, "could not send a heartbeat");
                    // Without a reply the lease has expired by our own clock.
                    if extended.elapsed() > lease {
                        break;
                    }
                }
            }
        }
        lost.cancel();
        std::future::pending::<()>().await;
    }

    async fn attempt(
        &self,
        events: &EventWriter,
        stop: &CancellationToken,
        lost: &CancellationToken,
    ) -> Ending {
        let plan = match TaskPlan::of(&self.task) {
            Ok(plan) => plan,
            Err(error) => return self.failed(error.to_string()),
        };
        let workspace = match self.open_workspace().await {
            Ok(workspace) => workspace,
            // The task waits until the disk has space again, without losing an attempt.
            Err(error @ ServiceError::LowSpace { .. }) => {
                return Ending::Retry { reason: message_of(&error), counts_as_lost: false };
            }
            Err(error) if is_transient(error.code()) => {
                return Ending::Retry { reason: message_of(&error), counts_as_lost: true };
            }
            Err(error) => return self.failed(self.write_error(events, &error).await),
        };
        let snapshot = self.take_snapshot(&plan, &workspace).await;
        let has_directory = self.create_task_directory(&workspace).await;
        let mut attempt = Attempt::new(self, &plan, &workspace, events, stop, lost);
        attempt.snapshot = snapshot;
        let ending = attempt.run(&plan).await;
        if has_directory {
            self.remove_task_directory(&workspace).await;
        }
        ending
    }

    /// Writes the event of an error, and returns its message.
    async fn write_error(&self, events: &EventWriter, error: &ServiceError) -> String {
        let message = message_of(error);
        let data = json!({ "error": message, "code": error.code().name() });
        events.write(self.event(EventKind::Error, data)).await;
        message
    }

    fn failed(&self, error: String) -> Ending {
        let result = json!({ "steps": [], "workspace_id": self.task.workspace });
        Ending::Finished { status: TaskStatus::Failed, error: Some(error), result }
    }

    /// Opens the workspace, unless it is over its quota or the disk is below the reserve.
    async fn open_workspace(&self) -> Result<Arc<OpenWorkspace>, ServiceError> {
        let workspaces = &self.worker.workspaces;
        let workspace = workspaces.open_workspace(self.task.workspace).await?;
        workspaces.check_quota(&workspace).await?;
        Ok(workspace)
    }

    /// Takes a snapshot of the workspace if the task may write there. A failure costs the snapshot and not the task.
    async fn take_snapshot(&self, plan: &TaskPlan, workspace: &OpenWorkspace) -> Option<String> {
        let policy = workspace.toolbox().runner.policy().snapshots;
        if !policy.tasks || !plan.steps.iter().any(|step| step.action.may_write()) {
            return None;
        }
        let task = self.claim.task;
        let snapshot = AutomaticSnapshot::before_task(&task.to_string());
        let taken =
            workspace.toolbox().snapshots().take(workspace.named_workspace(), snapshot, policy);
        taken.await.unwrap_or_else(|failure| {
            warn!(%task, failure.message, "no snapshot was taken before a task");
            None
        })
    }

    /// Creates the task's own directory. A task runs without one if that fails.
    async fn create_task_directory(&self, workspace: &Arc<OpenWorkspace>) -> bool {
        let workspace = Arc::clone(workspace);
        let path = step_runner::task_directory(self.claim.task);
        let made = move || {
            let named = workspace.named_workspace();
            // Not in a workspace that is frozen for forks.
            let _writing = named.handle().lock_for_writing()?;
            let made = named.files().create_directories(&path, 0o700);
            made.map_err(carrel_workspace::Error::files("could not make a directory"))
        };
        match carrel_exec::blocking(made).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                info!(%error, task = %self.claim.task, "could not create the task's directory");
                false
            }
            Err(_) => false,
        }
    }

    async fn remove_task_directory(&self, workspace: &Arc<OpenWorkspace>) {
        let workspace = Arc::clone(workspace);
        let path = step_runner::task_directory(self.claim.task);
        let removed = move || workspace.named_workspace().files().remove_tree(&path);
        if let Ok(Err(error)) = carrel_exec::blocking(removed).await {
            info!(%error, task = %self.claim.task, "could not remove the task's directory");
        }
    }

    /// Writes the end of the attempt, and retries for one lease while the store is unavailable.
    async fn record(&self, ending: Ending, unwritten: Unwritten, started: Instant) {
        let Claim { task, attempt } = self.claim;
        let until = Instant::now() + self.worker.options.lease;
        // Every try writes the same values: the store recognises them if only its reply was lost.
        let (took, now) = (started.elapsed(), self.now());
        let mut failures = 0;
        loop {
            let error = match self.write_end(&ending, &unwritten, took, now).await {
                Ok(Some((status, events))) => {
                    info!(%task, attempt, %status, "task");
                    self.worker.tasks.publish(&events);
                    if matches!(ending, Ending::Retry { counts_as_lost: false, .. }) {
                        self.worker.tasks.offer_again(&self.task, status).await;
                    }
                    return;
                }
                Ok(None) => return,
                Err(error) => error,
            };
            if Instant::now() >= until {
                warn!(%error, %task, "could not write the end of a task before its lease ended");
                return;
            }
            failures += 1;
            warn!(%error, %task, "could not write the end of a task, trying again");
            tokio::time::sleep(backoff::after(failures)).await;
        }
    }

    /// Writes the end of the attempt once. Returns `None` if the lease is lost.
    async fn write_end(
        &self,
        ending: &Ending,
        unwritten: &Unwritten,
        took: Duration,
        now: Timestamp,
    ) -> Result<Option<(TaskStatus, Vec<Event>)>, StoreError> {
        let store = &self.worker.tasks.store;
        match ending.clone() {
            Ending::Lost => {
                warn!(task = %self.claim.task, attempt = self.claim.attempt, "lost a task to another worker");
                Ok(None)
            }
            Ending::Finished { status, error, result } => {
                let Unwritten { events, after } = unwritten.clone();
                let finish = Finish { status, result, error, took, events, after, now };
                Ok(match store.finish(self.claim, finish).await? {
                    Finished::Done { status, events } => Some((status, events)),
                    Finished::Lost => None,
                })
            }
            Ending::Retry { reason, counts_as_lost } => {
                let lost = counts_as_lost.then(|| backoff::after_lost_attempts(self.task.attempt));
                let due = now.after(lost.unwrap_or_default());
                let release = Release { reason, due, now, counts_as_lost };
                Ok(match store.release(self.claim, release).await? {
                    Released::Done { status, events } => Some((status, events)),
                    Released::Lost => None,
                })
            }
        }
    }

    fn event(&self, kind: EventKind, data: Value) -> NewEvent {
        NewEvent { kind, data, at: self.now() }
    }

    fn now(&self) -> Timestamp {
        self.worker.tasks.clock.now()
    }
}

/// Returns whether a failure comes from the machine rather than the task, so that another attempt may
/// succeed.
fn is_transient(code: Code) -> bool {
    matches!(
        code,
        Code::StoreUnavailable
            | Code::SandboxUnavailable
            | Code::SpawnFailed
            | Code::Contended
            | Code::WorkspaceBusy
            | Code::TooManyJobs
            | Code::Internal
    )
}
