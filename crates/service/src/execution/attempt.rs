//! The steps of an attempt, run one after the other up to the first that fails.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use carrel_domain::{Network, Secret, TaskStatus};
use carrel_git::CredentialSource as _;
use carrel_github::TokenRequest;
use carrel_store::EventKind;
use carrel_tools::Session;
use carrel_wire::{OnError, StepResult, TaskResult};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::step_runner::{self, StepRunner};
use super::{Ending, Execution, Interruption, is_transient, step_result, trace};
use crate::credentials::StepCredentials;
use crate::error::ServiceError;
use crate::event_writer::EventWriter;
use crate::limits::MAX_LOG_LINES;
use crate::open_workspace::OpenWorkspace;
use crate::repository::RepositoryUrl;
use crate::request::TaskPlan;
use crate::step::{Action, Step};

pub(super) struct Attempt<'a> {
    pub(super) execution: &'a Execution,
    pub(super) workspace: &'a Arc<OpenWorkspace>,
    pub(super) events: &'a EventWriter,
    pub(super) session: Arc<Session>,
    /// The most network that the token of the submission allows.
    pub(super) network_cap: Option<Network>,
    /// Log lines that the task may still write, over all of its steps.
    pub(super) lines_left: AtomicUsize,
    /// The number of the snapshot before the attempt.
    pub(super) snapshot: Option<String>,
    stop: &'a CancellationToken,
    lost: &'a CancellationToken,
    deadline: Instant,
}

/// The status and error with which a task ends.
type Failed = (TaskStatus, String);

impl<'a> Attempt<'a> {
    pub(super) fn new(
        execution: &'a Execution,
        plan: &TaskPlan,
        workspace: &'a Arc<OpenWorkspace>,
        events: &'a EventWriter,
        stop: &'a CancellationToken,
        lost: &'a CancellationToken,
    ) -> Self {
        let session = Session::new(format!("task-{}", execution.claim.task));
        let deadline = Instant::now() + execution.task.timeout;
        let lines_left = AtomicUsize::new(MAX_LOG_LINES);
        Self {
            execution,
            workspace,
            events,
            session,
            network_cap: plan.network_cap,
            lines_left,
            snapshot: None,
            stop,
            lost,
            deadline,
        }
    }

    pub(super) async fn run(&self, plan: &TaskPlan) -> Ending {
        // A later step may print the secrets of an earlier one: they stay masked until the task ends.
        let mut masked = Vec::new();
        let mut reports = Vec::new();
        let mut failure = None;
        for (number, step) in (1..).zip(&plan.steps) {
            if failure.is_some() {
                reports.push(step_result::skipped(number, step));
                continue;
            }
            self.write_progress(number, plan.steps.len(), step).await;
            let (report, failed) = match self.step(number, step, &mut masked).await {
                Ok(ended) => ended,
                Err(ending) => return ending,
            };
            reports.push(report);
            failure = failed;
        }
        if failure.is_none() && plan.steps.iter().any(|step| step.action.may_write()) {
            failure = self.check_quota().await;
        }
        self.end(plan, reports, failure).await
    }

    async fn write_progress(&self, number: usize, total: usize, step: &Step) {
        let unnamed = || format!("Step {number}: {}", step.action_name);
        let description = step.description.clone().unwrap_or_else(unnamed);
        let data = json!({ "step": number, "total_steps": total, "description": description });
        self.events.write(self.execution.event(EventKind::ProgressUpdate, data)).await;
    }

    /// Runs one step. Returns its report, and its failure if the task ends with it.
    async fn step(
        &self,
        number: usize,
        step: &Step,
        masked: &mut Vec<(String, Secret)>,
    ) -> Result<(StepResult, Option<Failed>), Ending> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let credentials = self.open_credentials(step).await;
        masked.extend(credentials.iter().flat_map(StepCredentials::secrets));
        let (timeout, cancel) = (step.time_within(left), CancellationToken::new());
        let runner =
            StepRunner { attempt: self, step, number, timeout, credentials, masked, cancel };
        let span = trace::step(number, step);
        let (report, interruption) = runner.run(self.interrupted()).instrument(span.clone()).await;
        trace::step_ended(&span, &report);
        let failure = self.failure(step, &report, interruption)?;
        if let Some(error) = &report.error {
            let data = json!({ "step": number, "error": error });
            self.events.write(self.execution.event(EventKind::Error, data)).await;
        }
        let ends_task = |failure: &Failed| {
            step.on_error != OnError::Continue || failure.0 != TaskStatus::Failed
        };
        Ok((report, failure.filter(ends_task)))
    }

    /// Returns the failure of a step, or the end of an attempt that another one follows.
    fn failure(
        &self,
        step: &Step,
        report: &StepResult,
        interruption: Option<Interruption>,
    ) -> Result<Option<Failed>, Ending> {
        let deadline_passed = Instant::now() >= self.deadline;
        let failure = match interruption {
            Some(Interruption::LeaseLost) => return Err(Ending::Lost),
            Some(Interruption::WorkerStopping) => {
                let reason = "its worker stops".to_owned();
                return Err(Ending::Retry { reason, counts_as_lost: false });
            }
            Some(Interruption::Cancelled) => Some((TaskStatus::Cancelled, "cancelled".to_owned())),
            None => {
                let timeout = self.execution.task.timeout;
                step_result::verdict(report, step, deadline_passed, timeout)
            }
        };
        if failure.is_some() && report.code.is_some_and(is_transient) {
            let reason = report.error.clone().unwrap_or_default();
            return Err(Ending::Retry { reason, counts_as_lost: true });
        }
        Ok(failure)
    }

    /// Counts the workspace after steps that may have written.
    async fn check_quota(&self) -> Option<Failed> {
        let checked = self.execution.worker.workspaces.recheck_quota(self.workspace).await;
        let error = checked.err()?;
        Some((TaskStatus::Failed, self.execution.write_error(self.events, &error).await))
    }

    async fn end(
        &self,
        plan: &TaskPlan,
        steps: Vec<StepResult>,
        failure: Option<Failed>,
    ) -> Ending {
        let task = &self.execution.task;
        let result = json!(TaskResult {
            steps,
            workspace_id: task.workspace,
            repos_cached: Some(step_runner::repositories(self.workspace).await),
            snapshot: self.snapshot.clone(),
        });
        let has_attempts_left = task.attempt < task.max_attempts;
        match failure {
            None => Ending::Finished { status: TaskStatus::Completed, error: None, result },
            Some((TaskStatus::Failed, reason)) if plan.retry_failed && has_attempts_left => {
                Ending::Retry { reason, counts_as_lost: true }
            }
            Some((status, error)) => Ending::Finished { status, error: Some(error), result },
        }
    }

    /// Unseals the credentials that a step names.
    async fn open_credentials(&self, step: &Step) -> Result<StepCredentials, ServiceError> {
        let mut credentials = match &self.execution.worker.options.credentials {
            _ if step.credentials.is_empty() => StepCredentials::default(),
            Some(vault) => vault.open(self.execution.task.workspace, &step.credentials).await?,
            None => return Err(ServiceError::NoCredentialKey),
        };
        self.add_github_token(step, &mut credentials).await;
        Ok(credentials)
    }

    /// Adds the operator's GitHub token for the repository of a `git_clone` step, unless a credential
    /// of the step is for the same host.
    async fn add_github_token(&self, step: &Step, credentials: &mut StepCredentials) {
        let options = &self.execution.worker.options;
        let (Some(github), Action::GitClone { repo, .. }) = (&options.github, &step.action) else {
            return;
        };
        let Ok(url) = RepositoryUrl::parse(repo, &options.hosts) else { return };
        if url.host != github.host() || credentials.for_host("", &url.host).is_some() {
            return;
        }
        let wanted = TokenRequest {
            workspace: self.execution.task.workspace,
            owner: Some(url.owner),
            repository: Some(url.name),
        };
        if let Some(token) = github.token(&wanted).await {
            credentials.add_token(&url.host, "github_token", token);
        }
    }

    /// Waits for the first interruption. A lost lease wins over the others, since it forbids writes.
    async fn interrupted(&self) -> Interruption {
        tokio::select! {
            biased;
            () = self.lost.cancelled() => Interruption::LeaseLost,
            () = self.stop.cancelled() => Interruption::Cancelled,
            () = self.execution.worker.drained.cancelled() => Interruption::WorkerStopping,
        }
    }
}
