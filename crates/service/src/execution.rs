//! One attempt at a task, from the claim to the end.

mod act;
mod outcome;
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

use self::act::Actor;
use crate::backoff;
use crate::credentials::{StepCredentials, Vault};
use crate::error::ServiceError;
use crate::event_writer::{EventWriter, Unwritten};
use crate::hosted_workspaces::{HostedWorkspaces, OpenWorkspace};
use crate::limits::{MAX_LOG_LINES, STEP_SECONDS};
use crate::repository::Address;
use crate::request::Work;
use crate::step::{Action, Step};
use crate::tasks::Tasks;

/// When a task gives its first sign of life. Short ones end without any.
const FIRST_SIGN: Duration = Duration::from_millis(500);

/// How long claims hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) lease: Duration,
    pub(crate) heartbeat: Duration,
}

/// One attempt at a task.
pub(crate) struct Execution {
    pub(crate) tasks: Tasks,
    pub(crate) spaces: HostedWorkspaces,
    pub(crate) claim: Claim,
    pub(crate) task: Task,
    pub(crate) limits: Limits,
    /// Machines that repositories may come from.
    pub(crate) hosts: Arc<[String]>,
    /// Credentials that steps name.
    pub(crate) credentials: Option<Vault>,
    /// Knows tokens for repositories.
    pub(crate) github: Option<GitHub>,
    /// The worker stops and wants the task back in the queue.
    pub(crate) give_back: CancellationToken,
}

/// Why an attempt ends before its steps do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    /// Somebody asked for the task's end.
    Cancelled,
    /// The worker stops.
    GivenBack,
    /// Somebody else has the task.
    Lost,
}

/// How an attempt ended.
enum Ending {
    /// The task is over.
    Over { status: TaskStatus, error: Option<String>, result: Value },
    /// It can be begun again: something failed that is not the task's fault.
    Again { reason: String, counts: bool },
    /// Somebody else has it.
    Lost,
}

impl Execution {
    /// Runs the task. Whatever happens is in the store afterwards, or another worker takes over.
    pub(crate) async fn run(self) {
        let span = trace::task(&self.task, self.claim.attempt);
        self.run_within(&span).instrument(span.clone()).await;
    }

    async fn run_within(self, span: &Span) {
        let (begun, stop, lost) =
            (Instant::now(), CancellationToken::new(), CancellationToken::new());
        let _here = self.tasks.hub.running(self.claim.task, stop.clone());
        let on_lost = lost.clone();
        let on_lost = Arc::new(move || on_lost.cancel());
        let journal =
            EventWriter::begin(self.tasks.clone(), self.claim, self.task.last_event, on_lost);
        let ending = tokio::select! {
            ending = self.attempt(&journal, &stop, &lost) => ending,
            () = self.keep_alive(&stop, &lost) => Ending::Lost,
        };
        trace::task_ended(span, &ending);
        let untold = journal.end().await;
        self.settle(ending, untold, begun).await;
    }

    /// Gives signs of life until the claim is lost, and hears of a wish for the end.
    async fn keep_alive(&self, stop: &CancellationToken, lost: &CancellationToken) {
        // Who asked for the end between the claim and now was not heard; the first sign tells.
        let first = self.limits.heartbeat.min(FIRST_SIGN);
        let first = tokio::time::Instant::now() + first;
        let mut ticks = tokio::time::interval_at(first, self.limits.heartbeat);
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                () = lost.cancelled() => break,
                _ = ticks.tick() => {}
            }
            let until = self.now().after(self.limits.lease);
            match self.tasks.store.heartbeat(self.claim, until).await {
                Ok(Heartbeat::Held { cancel_requested }) => {
                    heard = Instant::now();
                    if cancel_requested {
                        stop.cancel();
                    }
                }
                Ok(Heartbeat::Lost) => break,
                Err(error) => {
                    warn!(%error, task = %self.claim.task, "could not give a sign of life");
                    if heard.elapsed() > self.limits.lease {
                        break;
                    }
                }
            }
        }
        lost.cancel();
        // What runs for the task is ended by `attempt`, which sees this too.
        std::future::pending::<()>().await;
    }

    /// Does the steps.
    async fn attempt(
        &self,
        journal: &EventWriter,
        stop: &CancellationToken,
        lost: &CancellationToken,
    ) -> Ending {
        let work = match Work::of(&self.task) {
            Ok(work) => work,
            Err(error) => return self.failed(error.to_string()),
        };
        let space = match self.prepare().await {
            Ok(space) => space,
            // It waits until there is room; that is not its fault.
            Err(error @ ServiceError::LowSpace { .. }) => {
                return Ending::Again { reason: message_of(&error), counts: false };
            }
            Err(error) if is_passing(error.code()) => {
                return Ending::Again { reason: message_of(&error), counts: true };
            }
            Err(error) => return self.refused(journal, &error).await,
        };
        let directory = self.make_directory(&space).await;
        let ending = self.steps(&work, &space, journal, stop, lost).await;
        if directory {
            self.remove_directory(&space).await;
        }
        ending
    }

    async fn refused(&self, journal: &EventWriter, error: &ServiceError) -> Ending {
        let message = message_of(error);
        journal
            .tell(
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
        Ending::Over { status: TaskStatus::Failed, error: Some(error), result }
    }

    /// Opens the workspace, if there is room in it.
    async fn prepare(&self) -> Result<Arc<OpenWorkspace>, ServiceError> {
        let space = self.spaces.open_workspace(self.task.workspace).await?;
        self.spaces.check_quota(&space).await?;
        Ok(space)
    }

    async fn steps(
        &self,
        work: &Work,
        space: &Arc<OpenWorkspace>,
        journal: &EventWriter,
        stop: &CancellationToken,
        lost: &CancellationToken,
    ) -> Ending {
        let deadline = Instant::now() + self.task.timeout;
        let total = work.steps.len();
        let session = Session::new(format!("task-{}", self.claim.task));
        let lines_left = AtomicUsize::new(MAX_LOG_LINES);
        // What one step knew, a later one may print: it stays masked until the task is over.
        let mut masked = Vec::new();
        let mut reports: Vec<StepResult> = Vec::new();
        let mut failure: Option<(TaskStatus, String)> = None;
        for (index, step) in work.steps.iter().enumerate() {
            let number = index + 1;
            if failure.is_some() {
                reports.push(outcome::skipped(number, step));
                continue;
            }
            let described = step.description.clone();
            let description = described.unwrap_or_else(|| format!("Step {number}: {}", step.word));
            let data = json!({ "step": number, "total_steps": total, "description": description });
            journal.tell(self.event(EventKind::ProgressUpdate, data)).await;
            let left = deadline.saturating_duration_since(Instant::now());
            let own = Duration::from_secs(step.timeout.unwrap_or(STEP_SECONDS));
            let interrupted = self.interrupted(stop, lost);
            let given = self.give(step).await;
            masked.extend(given.iter().flat_map(StepCredentials::secrets));
            let actor = Actor {
                given,
                masked: &masked,
                execution: self,
                space,
                session: &session,
                journal,
                step,
                number,
                timeout: own.min(left),
                lines_left: &lines_left,
            };
            let span = trace::step(number, step);
            let (report, why) = actor.act(interrupted).instrument(span.clone()).await;
            trace::step_ended(&span, &report);
            let out_of_time = Instant::now() >= deadline;
            match why {
                Some(Interruption::Lost) => return Ending::Lost,
                Some(Interruption::GivenBack) => {
                    return Ending::Again { reason: "its worker stops".to_owned(), counts: false };
                }
                Some(Interruption::Cancelled) => {
                    failure = Some((TaskStatus::Cancelled, "cancelled".to_owned()));
                }
                None => failure = outcome::verdict(&report, step, out_of_time, self.task.timeout),
            }
            if let (Some(code), true) = (report.code, failure.is_some())
                && is_passing(code)
            {
                return Ending::Again { reason: report.error.unwrap_or_default(), counts: true };
            }
            if let Some(error) = &report.error {
                journal
                    .tell(self.event(EventKind::Error, json!({ "step": number, "error": error })))
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
            && work.steps.iter().any(|step| step.action.may_write())
            && let Err(error) = self.spaces.recheck_quota(space).await
        {
            let message = message_of(&error);
            let data = json!({ "error": message, "code": error.code().name() });
            journal.tell(self.event(EventKind::Error, data)).await;
            failure = Some((TaskStatus::Failed, message));
        }
        let result = self.result(space, &reports).await;
        match failure {
            None => Ending::Over { status: TaskStatus::Completed, error: None, result },
            Some((TaskStatus::Failed, reason)) if work.retry_failed && self.may_begin_again() => {
                Ending::Again { reason, counts: true }
            }
            Some((status, error)) => Ending::Over { status, error: Some(error), result },
        }
    }

    /// Opens the credentials that a step names.
    async fn give(&self, step: &Step) -> Result<StepCredentials, ServiceError> {
        let mut given = match &self.credentials {
            _ if step.credentials.is_empty() => StepCredentials::default(),
            Some(vault) => vault.give(self.task.workspace, &step.credentials).await?,
            None => return Err(ServiceError::NoCredentialKey),
        };
        self.lend(step, &mut given).await;
        Ok(given)
    }

    /// Adds the token for a repository that the operator's sources have for this workspace.
    async fn lend(&self, step: &Step, given: &mut StepCredentials) {
        let (Some(github), Action::GitClone { repo, .. }) = (&self.github, &step.action) else {
            return;
        };
        let Ok(address) = Address::parse(repo, &self.hosts) else { return };
        let host = address.host().to_owned();
        if host != github.host() || given.for_host("", &host).is_some() {
            return;
        }
        let wanted = TokenRequest {
            workspace: self.task.workspace,
            owner: Some(address.owner().to_owned()),
            repository: Some(address.name().to_owned()),
        };
        if let Some(token) = github.token(&wanted).await {
            given.lend(&host, "github_token", token);
        }
    }

    fn may_begin_again(&self) -> bool {
        self.task.attempt < self.task.max_attempts
    }

    /// Waits for a reason to end early.
    async fn interrupted(
        &self,
        stop: &CancellationToken,
        lost: &CancellationToken,
    ) -> Interruption {
        tokio::select! {
            biased;
            () = lost.cancelled() => Interruption::Lost,
            () = stop.cancelled() => Interruption::Cancelled,
            () = self.give_back.cancelled() => Interruption::GivenBack,
        }
    }

    async fn result(&self, space: &OpenWorkspace, reports: &[StepResult]) -> Value {
        json!(TaskResult {
            steps: reports.to_vec(),
            workspace_id: self.task.workspace,
            repos_cached: Some(act::repositories(space).await),
        })
    }

    /// Makes the directory that is the task's own while it runs.
    async fn make_directory(&self, space: &Arc<OpenWorkspace>) -> bool {
        let (space, path) = (Arc::clone(space), act::task_directory(self.claim.task));
        let made = move || space.named_workspace().files().create_directories(&path, 0o700);
        match tokio::task::spawn_blocking(made).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                info!(%error, task = %self.claim.task, "no directory for the task");
                false
            }
            Err(_) => false,
        }
    }

    async fn remove_directory(&self, space: &Arc<OpenWorkspace>) {
        let (space, path) = (Arc::clone(space), act::task_directory(self.claim.task));
        let removed = move || space.named_workspace().files().remove_tree(&path);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(removed).await {
            info!(%error, task = %self.claim.task, "could not remove the task's directory");
        }
    }

    /// Writes how the attempt ended, and tries again while the store is away and the claim may hold.
    async fn settle(&self, ending: Ending, untold: Unwritten, begun: Instant) {
        let until = Instant::now() + self.limits.lease;
        // The same words each time: the store knows them again if only its answer was lost.
        let (took, now) = (begun.elapsed(), self.now());
        let mut failures = 0;
        loop {
            let written = match &ending {
                Ending::Lost => {
                    warn!(task = %self.claim.task, attempt = self.claim.attempt, "lost a task to another worker");
                    return;
                }
                Ending::Over { status, error, result } => {
                    let finish = Finish {
                        status: *status,
                        result: result.clone(),
                        error: error.clone(),
                        took,
                        events: untold.events.clone(),
                        after: untold.after,
                        now,
                    };
                    let finished = self.tasks.store.finish(self.claim, finish).await;
                    finished.map(|finished| match finished {
                        Finished::Done { status, events } => Some((status, events)),
                        Finished::Lost => None,
                    })
                }
                Ending::Again { reason, counts } => {
                    let wait =
                        if *counts { backoff::of_lost(self.task.attempt) } else { Duration::ZERO };
                    let (due, reason) = (now.after(wait), reason.clone());
                    let back = Release { reason, due, now, counts: *counts };
                    let given = self.tasks.store.release(self.claim, back).await;
                    given.map(|given| match given {
                        Released::Done { status, events } => Some((status, events)),
                        Released::Lost => None,
                    })
                }
            };
            match written {
                Ok(Some((status, events))) => {
                    info!(task = %self.claim.task, attempt = self.claim.attempt, %status, "task");
                    self.tasks.publish(&events);
                    if matches!(ending, Ending::Again { counts: false, .. }) {
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
                    warn!(%error, task = %self.claim.task, "gave up a task whose end could not be written");
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

/// Tells whether a failure is the machine's rather than the task's, so that another attempt may do
/// better.
fn is_passing(code: Code) -> bool {
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
