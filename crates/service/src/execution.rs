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

mod step_call;
mod step_result;
mod step_runner;
mod trace;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use carrel_domain::{Code, Coded as _, TaskStatus, Timestamp, message_of};
use carrel_git::CredentialSource as _;
use carrel_github::{GitHub, TokenRequest};
use carrel_store::{
    Claim, EventKind, Finish, Finished, Heartbeat, NewEvent, Release, Released, Task,
};
use carrel_tools::Session;
use carrel_wire::{OnError, StepResult, TaskResult};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, info, warn};

use self::step_runner::StepRunner;
use crate::backoff;
use crate::credentials::{StepCredentials, Vault};
use crate::error::ServiceError;
use crate::event_writer::{EventWriter, Unwritten};
use crate::hosted_workspaces::HostedWorkspaces;
use crate::limits::{MAX_LOG_LINES, STEP_SECONDS};
use crate::open_workspace::OpenWorkspace;
use crate::repository::RepositoryUrl;
use crate::request::TaskPlan;
use crate::step::{Action, Step};
use crate::tasks::Tasks;

/// The delay before the first heartbeat; tasks that are shorter send none. It also bounds how long a
/// cancellation that arrived between the claim and the registration in the event hub goes unnoticed.
const FIRST_HEARTBEAT: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) lease: Duration,
    pub(crate) heartbeat: Duration,
}

pub(crate) struct Execution {
    pub(crate) tasks: Tasks,
    pub(crate) workspaces: HostedWorkspaces,
    pub(crate) claim: Claim,
    pub(crate) task: Task,
    pub(crate) limits: Limits,
    /// Hosts that `git_clone` may fetch from.
    pub(crate) hosts: Arc<[String]>,
    pub(crate) credentials: Option<Vault>,
    pub(crate) github: Option<GitHub>,
    /// Cancelled when the worker's drain time is over: the task goes back to the queue.
    pub(crate) drained: CancellationToken,
}

/// The reason for which an attempt ends before its last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    Cancelled,
    WorkerStopping,
    LeaseLost,
}

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
        let _running = self.tasks.hub.running(self.claim.task, stop.clone());
        let on_lost = lost.clone();
        let on_lost = Arc::new(move || on_lost.cancel());
        let events =
            EventWriter::start(self.tasks.clone(), self.claim, self.task.last_event, on_lost);
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
        let first = self.limits.heartbeat.min(FIRST_HEARTBEAT);
        let first = tokio::time::Instant::now() + first;
        let mut ticks = tokio::time::interval_at(first, self.limits.heartbeat);
        let mut extended = Instant::now();
        loop {
            tokio::select! {
                () = lost.cancelled() => break,
                _ = ticks.tick() => {}
            }
            let until = self.now().after(self.limits.lease);
            match self.tasks.store.heartbeat(self.claim, until).await {
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
                    if extended.elapsed() > self.limits.lease {
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
            Err(error) => return self.fail_before_steps(events, &error).await,
        };
        let has_directory = self.create_task_directory(&workspace).await;
        let ending = self.steps(&plan, &workspace, events, stop, lost).await;
        if has_directory {
            self.remove_task_directory(&workspace).await;
        }
        ending
    }

    async fn fail_before_steps(&self, events: &EventWriter, error: &ServiceError) -> Ending {
        let message = message_of(error);
        events
            .write(
                self.event(
                    EventKind::Error,
                    json!({ "error": message, "code": error.code().name() }),
                ),
            )
            .await;
        self.failed(message)
    }

    fn failed(&self, error: String) -> Ending {
        let result = json!({ "steps": [], "workspace_id": self.task.workspace });
        Ending::Finished { status: TaskStatus::Failed, error: Some(error), result }
    }

    /// Opens the workspace, unless it is over its quota or the disk is below the reserve.
    async fn open_workspace(&self) -> Result<Arc<OpenWorkspace>, ServiceError> {
        let workspace = self.workspaces.open_workspace(self.task.workspace).await?;
        self.workspaces.check_quota(&workspace).await?;
        Ok(workspace)
    }

    async fn steps(
        &self,
        plan: &TaskPlan,
        workspace: &Arc<OpenWorkspace>,
        events: &EventWriter,
        stop: &CancellationToken,
        lost: &CancellationToken,
    ) -> Ending {
        let deadline = Instant::now() + self.task.timeout;
        let total = plan.steps.len();
        let session = Session::new(format!("task-{}", self.claim.task));
        let lines_left = AtomicUsize::new(MAX_LOG_LINES);
        // A later step may print the secrets of an earlier one: they stay masked until the task ends.
        let mut masked = Vec::new();
        let mut reports: Vec<StepResult> = Vec::new();
        let mut failure: Option<(TaskStatus, String)> = None;
        for (index, step) in plan.steps.iter().enumerate() {
            let number = index + 1;
            if failure.is_some() {
                reports.push(step_result::skipped(number, step));
                continue;
            }
            let description = step
                .description
                .clone()
                .unwrap_or_else(|| format!("Step {number}: {}", step.action_name));
            let data = json!({ "step": number, "total_steps": total, "description": description });
            events.write(self.event(EventKind::ProgressUpdate, data)).await;
            let left = deadline.saturating_duration_since(Instant::now());
            let own = Duration::from_secs(step.timeout.unwrap_or(STEP_SECONDS));
            let interrupted = self.interrupted(stop, lost);
            let credentials = self.open_credentials(step).await;
            masked.extend(credentials.iter().flat_map(StepCredentials::secrets));
            let runner = StepRunner {
                credentials,
                masked: &masked,
                execution: self,
                workspace,
                session: &session,
                events,
                step,
                number,
                timeout: own.min(left),
                lines_left: &lines_left,
            };
            let span = trace::step(number, step);
            let (report, why) = runner.run(interrupted).instrument(span.clone()).await;
            trace::step_ended(&span, &report);
            let deadline_passed = Instant::now() >= deadline;
            match why {
                Some(Interruption::LeaseLost) => return Ending::Lost,
                Some(Interruption::WorkerStopping) => {
                    let reason = "its worker stops".to_owned();
                    return Ending::Retry { reason, counts_as_lost: false };
                }
                Some(Interruption::Cancelled) => {
                    failure = Some((TaskStatus::Cancelled, "cancelled".to_owned()));
                }
                None => {
                    failure =
                        step_result::verdict(&report, step, deadline_passed, self.task.timeout);
                }
            }
            if let (Some(code), true) = (report.code, failure.is_some())
                && is_transient(code)
            {
                let reason = report.error.unwrap_or_default();
                return Ending::Retry { reason, counts_as_lost: true };
            }
            if let Some(error) = &report.error {
                events
                    .write(self.event(EventKind::Error, json!({ "step": number, "error": error })))
                    .await;
            }
            if step.on_error == OnError::Continue
                && failure.as_ref().is_some_and(|(status, _)| *status == TaskStatus::Failed)
            {
                failure = None;
            }
            reports.push(report);
        }
        if failure.is_none()
            && plan.steps.iter().any(|step| step.action.may_write())
            && let Err(error) = self.workspaces.recheck_quota(workspace).await
        {
            let message = message_of(&error);
            let data = json!({ "error": message, "code": error.code().name() });
            events.write(self.event(EventKind::Error, data)).await;
            failure = Some((TaskStatus::Failed, message));
        }
        let result = self.result(workspace, &reports).await;
        match failure {
            None => Ending::Finished { status: TaskStatus::Completed, error: None, result },
            Some((TaskStatus::Failed, reason)) if plan.retry_failed && self.has_attempts_left() => {
                Ending::Retry { reason, counts_as_lost: true }
            }
            Some((status, error)) => Ending::Finished { status, error: Some(error), result },
        }
    }

    /// Unseals the credentials that a step names.
    async fn open_credentials(&self, step: &Step) -> Result<StepCredentials, ServiceError> {
        let mut credentials = match &self.credentials {
            _ if step.credentials.is_empty() => StepCredentials::default(),
            Some(vault) => vault.open(self.task.workspace, &step.credentials).await?,
            None => return Err(ServiceError::NoCredentialKey),
        };
        self.add_github_token(step, &mut credentials).await;
        Ok(credentials)
    }

    /// Adds the operator's GitHub token for the repository of a `git_clone` step, unless a credential
    /// of the step is for the same host.
    async fn add_github_token(&self, step: &Step, credentials: &mut StepCredentials) {
        let (Some(github), Action::GitClone { repo, .. }) = (&self.github, &step.action) else {
            return;
        };
        let Ok(url) = RepositoryUrl::parse(repo, &self.hosts) else { return };
        let host = url.host().to_owned();
        if host != github.host() || credentials.for_host("", &host).is_some() {
            return;
        }
        let wanted = TokenRequest {
            workspace: self.task.workspace,
            owner: Some(url.owner().to_owned()),
            repository: Some(url.name().to_owned()),
        };
        if let Some(token) = github.token(&wanted).await {
            credentials.add_token(&host, "github_token", token);
        }
    }

    fn has_attempts_left(&self) -> bool {
        self.task.attempt < self.task.max_attempts
    }

    /// Waits for the first interruption. A lost lease wins over the others, since it forbids writes.
    async fn interrupted(
        &self,
        stop: &CancellationToken,
        lost: &CancellationToken,
    ) -> Interruption {
        tokio::select! {
            biased;
            () = lost.cancelled() => Interruption::LeaseLost,
            () = stop.cancelled() => Interruption::Cancelled,
            () = self.drained.cancelled() => Interruption::WorkerStopping,
        }
    }

    async fn result(&self, workspace: &OpenWorkspace, reports: &[StepResult]) -> Value {
        json!(TaskResult {
            steps: reports.to_vec(),
            workspace_id: self.task.workspace,
            repos_cached: Some(step_runner::repositories(workspace).await),
        })
    }

    /// Creates the task's own directory. A task runs without one if that fails.
    async fn create_task_directory(&self, workspace: &Arc<OpenWorkspace>) -> bool {
        let workspace = Arc::clone(workspace);
        let path = step_runner::task_directory(self.claim.task);
        let made = move || workspace.named_workspace().files().create_directories(&path, 0o700);
        match tokio::task::spawn_blocking(made).await {
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
        if let Ok(Err(error)) = tokio::task::spawn_blocking(removed).await {
            info!(%error, task = %self.claim.task, "could not remove the task's directory");
        }
    }

    /// Writes the end of the attempt, and retries for one lease while the store is unavailable.
    async fn record(&self, ending: Ending, unwritten: Unwritten, started: Instant) {
        let until = Instant::now() + self.limits.lease;
        // Every try writes the same values: the store recognises them if only its reply was lost.
        let took = started.elapsed();
        let now = self.now();
        let mut failures = 0;
        loop {
            let written = match &ending {
                Ending::Lost => {
                    warn!(task = %self.claim.task, attempt = self.claim.attempt, "lost a task to another worker");
                    return;
                }
                Ending::Finished { status, error, result } => {
                    let finish = Finish {
                        status: *status,
                        result: result.clone(),
                        error: error.clone(),
                        took,
                        events: unwritten.events.clone(),
                        after: unwritten.after,
                        now,
                    };
                    let finished = self.tasks.store.finish(self.claim, finish).await;
                    finished.map(|finished| match finished {
                        Finished::Done { status, events } => Some((status, events)),
                        Finished::Lost => None,
                    })
                }
                Ending::Retry { reason, counts_as_lost } => {
                    let wait = if *counts_as_lost {
                        backoff::after_lost_attempts(self.task.attempt)
                    } else {
                        Duration::ZERO
                    };
                    let release = Release {
                        reason: reason.clone(),
                        due: now.after(wait),
                        now,
                        counts_as_lost: *counts_as_lost,
                    };
                    let released = self.tasks.store.release(self.claim, release).await;
                    released.map(|released| match released {
                        Released::Done { status, events } => Some((status, events)),
                        Released::Lost => None,
                    })
                }
            };
            match written {
                Ok(Some((status, events))) => {
                    info!(task = %self.claim.task, attempt = self.claim.attempt, %status, "task");
                    self.tasks.publish(&events);
                    if matches!(ending, Ending::Retry { counts_as_lost: false, .. }) {
                        self.tasks.offer_again(&self.task, status).await;
                    }
                    return;
                }
                Ok(None) => return,
                Err(error) if Instant::now() < until => {
                    failures += 1;
                    warn!(%error, task = %self.claim.task, "could not write the end of a task, trying again");
                    tokio::time::sleep(backoff::after(failures)).await;
                }
                Err(error) => {
                    warn!(%error, task = %self.claim.task, "could not write the end of a task before its lease ended");
                    return;
                }
            }
        }
    }

    fn event(&self, kind: EventKind, data: Value) -> NewEvent {
        NewEvent { kind, data, at: self.now() }
    }

    fn now(&self) -> Timestamp {
        self.tasks.clock.now()
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
