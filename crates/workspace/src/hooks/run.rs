//! Running a hook and telling how it went.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use carrel_config::withheld_variables;
use carrel_domain::{Coded, Identifier, Timestamp, WorkspaceKey};
use carrel_exec::{CommandSpec, End, HookCommand, LogFile, Outcome, Spawner, Stop};
use carrel_fsroot::Root;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::{Hook, HookError, HookSettings};
use crate::blocking::blocking;
use crate::commands::Commands;
use crate::error::Error;
use crate::log::{self, NewLog};
use crate::manager::Inner;

/// How much of a hook's output a log line or an error carries.
const MAX_LOGGED: usize = 2048;

/// What a hook is told about its workspace.
#[derive(Clone, Debug)]
pub struct HookContext {
    /// The tracker's id of the issue, or the identifier where there is none.
    pub issue_id: String,
    /// The identifier of the issue.
    pub identifier: Identifier,
    /// The key of the workspace.
    pub key: WorkspaceKey,
    /// The path of the workspace.
    pub workspace: PathBuf,
    /// The path of the root.
    pub root: PathBuf,
    /// Which attempt this is, if it belongs to one.
    pub attempt: Option<u32>,
}

/// A hook that ran, as the record remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRun {
    /// Which hook.
    pub hook: Hook,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took.
    pub duration_ms: u64,
    /// How it went.
    pub end: HookEnd,
    /// How many bytes it printed.
    pub output_bytes: u64,
    /// The file with all that it printed.
    pub log: PathBuf,
}

/// How a hook went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookEnd {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It ran into its deadline.
    TimedOut,
    /// It was cancelled.
    Cancelled,
}

impl HookEnd {
    fn of(outcome: &Outcome) -> Self {
        match outcome.stop {
            Some(Stop::Deadline) => Self::TimedOut,
            Some(Stop::Cancelled) => Self::Cancelled,
            None if outcome.succeeded() => Self::Succeeded,
            None => Self::Failed,
        }
    }
}

/// What became of a hook: the run, if it came to one, and whether it succeeded.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) run: Option<HookRun>,
    pub(crate) result: Result<(), HookError>,
}

/// Runs hooks.
#[derive(Clone, Debug)]
pub struct Hooks {
    settings: Arc<HookSettings>,
    commands: Commands,
    cancel: CancellationToken,
}

impl Hooks {
    /// Prepares to run hooks. Cancelling ends a hook that precedes a run; those that
    /// clean up after one have their deadline only.
    pub fn new(settings: HookSettings, commands: Commands, cancel: CancellationToken) -> Self {
        Self { settings: Arc::new(settings), commands, cancel }
    }

    /// Tells whether there is a script for a hook.
    pub fn has(&self, hook: Hook) -> bool {
        self.settings.script(hook).is_some()
    }

    /// Returns what starts the hooks, and can start other commands.
    pub fn commands(&self) -> &Commands {
        &self.commands
    }

    fn cancel(&self, hook: Hook) -> CancellationToken {
        match hook {
            Hook::AfterCreate | Hook::BeforeRun => self.cancel.clone(),
            Hook::AfterRun | Hook::BeforeRemove => CancellationToken::new(),
        }
    }

    /// Runs a hook in a directory that was checked, with all it starts, until nothing is left.
    pub(crate) async fn run(
        &self,
        hook: Hook,
        context: &HookContext,
        directory: &Root,
        inner: &Arc<Inner>,
    ) -> Ran {
        let workspace = context.workspace.display();
        info!(
            hook = hook.as_str(),
            issue_id = context.issue_id,
            issue_identifier = context.identifier.as_str(),
            %workspace,
            "Running workspace hook"
        );
        let mut run = None;
        let result = self.run_unlogged(hook, context, directory, inner, &mut run).await;
        log_result(hook, context, run.as_ref(), result.as_ref().err());
        Ran { run, result }
    }

    async fn run_unlogged(
        &self,
        hook: Hook,
        context: &HookContext,
        directory: &Root,
        inner: &Arc<Inner>,
        run: &mut Option<HookRun>,
    ) -> Result<(), HookError> {
        if self.settings.confined() {
            return Err(HookError::Unconfined { hook });
        }
        let started_at = inner.clock.now();
        let log =
            self.prepare(hook, context, inner).await.map_err(|error| prepare(hook, &error))?;
        let path = log.path.clone();
        let spawner = self.commands.spawner().await.map_err(|source| start(hook, source))?;
        let spec = self.spec(hook, context, directory, log, spawner)?;
        let outcome = spawner
            .run(spec, &self.cancel(hook))
            .await
            .map_err(|source| HookError::Start { hook, source })?;
        self.touch(context, inner).await.map_err(|error| prepare(hook, &error))?;
        let output = self.settings.excerpt(&outcome.stdout, MAX_LOGGED);
        for line in output.lines() {
            debug!(hook = hook.as_str(), issue_id = context.issue_id, line, "hook printed");
        }
        *run = Some(HookRun {
            hook,
            started_at,
            duration_ms: u64::try_from(outcome.wall.as_millis()).unwrap_or(u64::MAX),
            end: HookEnd::of(&outcome),
            output_bytes: outcome.stdout.total_bytes,
            log: path.clone(),
        });
        self.judge(hook, &outcome, output, path)
    }

    async fn prepare(
        &self,
        hook: Hook,
        context: &HookContext,
        inner: &Arc<Inner>,
    ) -> Result<NewLog, Error> {
        self.touch(context, inner).await?;
        let (inner, key) = (Arc::clone(inner), context.key.clone());
        blocking(move || log::create(&inner.root.own, &key, hook.as_str(), inner.clock.now())).await
    }

    async fn touch(&self, context: &HookContext, inner: &Arc<Inner>) -> Result<(), Error> {
        let (inner, key) = (Arc::clone(inner), context.key.clone());
        blocking(move || inner.accounts().touch(&key)).await
    }

    fn spec(
        &self,
        hook: Hook,
        context: &HookContext,
        directory: &Root,
        log: NewLog,
        spawner: &Spawner,
    ) -> Result<CommandSpec, HookError> {
        let script = self.settings.script(hook).unwrap_or_default().to_owned();
        let descriptor = directory.as_fd().try_clone_to_owned();
        let command = HookCommand {
            script,
            environment: self.settings.variables(hook, context),
            directory: descriptor.map_err(|source| start(hook, source))?,
            secrets: self.settings.secrets().to_vec(),
            // A login profile may set these as well as the server's own environment.
            removed: withheld_variables().map(str::to_owned).collect(),
        };
        let spec = command.into_spec(spawner).map_err(|source| start(hook, source))?;
        let log = LogFile { file: log.file, limit: log.limit };
        Ok(CommandSpec { deadline: Some(self.settings.timeout()), log: Some(log), ..spec })
    }

    fn judge(
        &self,
        hook: Hook,
        outcome: &Outcome,
        output: String,
        log: PathBuf,
    ) -> Result<(), HookError> {
        if outcome.left_running > 0 {
            let processes = outcome.left_running;
            warn!(
                hook = hook.as_str(),
                processes, "Workspace hook left processes, which were ended"
            );
        }
        match outcome.stop {
            Some(Stop::Deadline) => {
                let timeout = self.settings.timeout();
                Err(HookError::TimedOut { hook, timeout, output, log })
            }
            Some(Stop::Cancelled) => Err(HookError::Cancelled { hook }),
            None if outcome.succeeded() => Ok(()),
            None => Err(HookError::Failed { hook, end: outcome.end, output, log }),
        }
    }
}

fn log_result(hook: Hook, context: &HookContext, run: Option<&HookRun>, error: Option<&HookError>) {
    let hook = hook.as_str();
    let issue_id = &context.issue_id;
    let issue_identifier = context.identifier.as_str();
    let workspace = context.workspace.display();
    let log = run.map(|run| run.log.display().to_string());
    match error {
        None => debug!(hook, issue_id, log, "Workspace hook succeeded"),
        Some(HookError::TimedOut { timeout, .. }) => {
            let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            warn!(hook, timeout_ms, issue_id, issue_identifier, %workspace, log, "Workspace hook timed out");
        }
        Some(HookError::Failed { end, output, .. }) => {
            let status = match end {
                End::Exited(status) => status.to_string(),
                End::Signaled(signal) => format!("signal {signal}"),
                End::Lost => "lost".to_owned(),
            };
            warn!(hook, status, issue_id, issue_identifier, %workspace, log, output, "Workspace hook failed");
        }
        Some(error) => {
            let error = carrel_domain::ErrorEnvelope::of(error).error.message;
            warn!(hook, error, issue_id, issue_identifier, %workspace, "Workspace hook failed");
        }
    }
}

fn start(hook: Hook, source: std::io::Error) -> HookError {
    HookError::Start { hook, source: carrel_exec::SpawnError::Resources(source) }
}

fn prepare(hook: Hook, error: &Error) -> HookError {
    let reason = carrel_domain::ErrorEnvelope::of(error).error.message;
    HookError::Prepare { hook, reason, code: error.code() }
}
