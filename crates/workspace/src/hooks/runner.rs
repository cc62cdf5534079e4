//! Runs hooks and records their results.
//!
//! A hook runs on the host with the operator's rights, after the login profile, or in the workspace's
//! sandbox with `hooks.sandbox: true`. In both cases its processes hold the workspace's lock: if the
//! server dies, the workspace stays locked until the hook has ended. A deadline stops it with everything
//! it started. The cached usage is made invalid before and after.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use carrel_config::{Environment, HooksConfig, withheld_variables};
use carrel_domain::{Coded, Identifier, Timestamp, WorkspaceKey, message_of};
use carrel_exec::{
    CommandSpec, ExitStatus, HookCommand, LazySpawner, LogFile, Outcome, Receipt, SpawnError,
    Spawner, Stop,
};
use carrel_fsroot::Root;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::{Hook, HookEnd, HookError, HookRun, HookSandbox, HookSettings, SandboxedHook};
use crate::blocking::blocking;
use crate::error::Error;
use crate::hook_log::{self, NewLog};
use crate::lock::Lock;
use crate::workspaces::RootInner;

/// The most bytes of a hook's output in a log line or an error.
const MAX_LOGGED: usize = 2048;

/// The facts about a workspace that a hook gets as variables.
#[derive(Clone, Debug)]
pub(crate) struct HookContext {
    /// The tracker's id of the issue, or the identifier if there is none.
    pub(crate) issue_id: String,
    pub(crate) identifier: Identifier,
    pub(crate) key: WorkspaceKey,
    pub(crate) workspace: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) attempt: Option<u32>,
}

/// The workspace that a hook runs in: its checked directory and its held lock.
pub(crate) struct HookSite<'a> {
    pub(crate) context: HookContext,
    pub(crate) directory: &'a Root,
    pub(crate) lock: &'a Lock,
    pub(crate) inner: &'a Arc<RootInner>,
}

/// The result of a hook, and its run if it was started.
#[derive(Debug)]
pub(crate) struct HookResult {
    pub(crate) run: Option<HookRun>,
    pub(crate) result: Result<(), HookError>,
}

/// A hook that has ended, before its result is decided.
struct Finished {
    outcome: Outcome,
    started_at: Timestamp,
    log: PathBuf,
    /// None in a sandbox, where there is no login shell.
    receipt: Option<Receipt>,
}

/// The hooks of a root: their settings and the processes that run them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Hooks {
    settings: Arc<HookSettings>,
    spawner: LazySpawner,
    /// None for hooks without scripts.
    sandbox: Option<Arc<dyn HookSandbox>>,
    cancel: CancellationToken,
}

impl Hooks {
    /// Prepares to run hooks. `sandbox` runs them where the settings say `hooks.sandbox: true`,
    /// `spawner` all others and git. Cancelling stops `after_create` and `before_run`; the hooks
    /// that clean up, `after_run` and `before_remove`, have their deadline only.
    pub fn new(
        settings: HookSettings,
        spawner: LazySpawner,
        sandbox: Arc<dyn HookSandbox>,
        cancel: CancellationToken,
    ) -> Self {
        Self { settings: Arc::new(settings), spawner, sandbox: Some(sandbox), cancel }
    }

    /// Returns hooks without scripts, for roots whose workspaces have none. The spawner still
    /// starts git.
    pub fn none(spawner: LazySpawner) -> Self {
        let environment = Environment::from_pairs::<&str, &str>([]);
        let settings = HookSettings::new(HooksConfig::none(), &environment, Vec::new());
        let cancel = CancellationToken::new();
        Self { settings: Arc::new(settings), spawner, sandbox: None, cancel }
    }

    /// Returns the same hooks with another cancellation token.
    #[must_use]
    pub fn cancelled_by(&self, cancel: CancellationToken) -> Self {
        Self { cancel, ..self.clone() }
    }

    /// Returns whether a hook has a script.
    pub fn has(&self, hook: Hook) -> bool {
        self.settings.script(hook).is_some()
    }

    /// Returns the spawner of hooks that are not sandboxed, and of git.
    pub fn spawner(&self) -> &LazySpawner {
        &self.spawner
    }

    /// Runs a hook until its last process has ended.
    pub(crate) async fn run(&self, hook: Hook, site: HookSite<'_>) -> HookResult {
        let context = &site.context;
        let workspace = context.workspace.display();
        info!(
            hook = hook.as_str(),
            issue_id = context.issue_id,
            issue_identifier = context.identifier.as_str(),
            %workspace,
            "Running workspace hook"
        );
        let ran = match self.execute(hook, &site).await {
            Ok(finished) => self.result(hook, context, finished),
            Err(error) => HookResult { run: None, result: Err(error) },
        };
        log_result(hook, context, &ran);
        ran
    }

    async fn execute(&self, hook: Hook, site: &HookSite<'_>) -> Result<Finished, HookError> {
        let started_at = site.inner.clock.now();
        let prepared = prepare(hook, site).await;
        let log = prepared.map_err(|error| HookError::Prepare {
            hook,
            reason: message_of(&error),
            code: error.code(),
        })?;
        let path = log.path.clone();
        let (outcome, receipt) = if self.settings.is_sandboxed() {
            (self.run_sandboxed(hook, site, log).await?, None)
        } else {
            self.run_on_host(hook, site, log).await?
        };
        if let Err(error) = touch(site).await {
            // Counts from before the hook are invalid already.
            warn!(key = %site.context.key, %error, "could not note that the workspace changed");
        }
        Ok(Finished { outcome, started_at, log: path, receipt })
    }

    async fn run_on_host(
        &self,
        hook: Hook,
        site: &HookSite<'_>,
        log: NewLog,
    ) -> Result<(Outcome, Option<Receipt>), HookError> {
        let start = |source| HookError::Start { hook, source };
        let io = |source| start(SpawnError::Resources(source));
        let spawner = self.spawner.get().map_err(io)?;
        let (spec, receipt) = self.spec(hook, site, log, &spawner).map_err(io)?;
        let outcome = spawner.run(spec, &self.cancel(hook)).await.map_err(start)?;
        Ok((outcome, Some(receipt)))
    }

    /// Runs a hook as commands of the workspace are run: without the operator's profile, home and
    /// environment, and with the network that the policy gives.
    async fn run_sandboxed(
        &self,
        hook: Hook,
        site: &HookSite<'_>,
        log: NewLog,
    ) -> Result<Outcome, HookError> {
        let start = |source| HookError::Start { hook, source: SpawnError::Resources(source) };
        let directory = site.directory.try_clone().map_err(|error| HookError::Prepare {
            hook,
            reason: message_of(&error),
            code: error.code(),
        })?;
        let sandboxed = SandboxedHook {
            directory,
            root: site.context.root.clone(),
            lock: site.lock.share().map_err(start)?,
            script: self.settings.script(hook).unwrap_or_default().to_owned(),
            environment: self.settings.sandboxed_variables(hook, &site.context),
            timeout: self.settings.timeout(),
            log: LogFile { file: Some(log.file), limit: log.limit },
        };
        let sandbox = self.sandbox.as_ref().expect("hooks with scripts have a sandbox");
        let outcome = sandbox.run(sandboxed, &self.cancel(hook)).await;
        outcome.map_err(|source| HookError::Sandbox { hook, source })
    }

    fn cancel(&self, hook: Hook) -> CancellationToken {
        match hook {
            Hook::AfterCreate | Hook::BeforeRun => self.cancel.clone(),
            Hook::AfterRun | Hook::BeforeRemove => CancellationToken::new(),
        }
    }

    fn spec(
        &self,
        hook: Hook,
        site: &HookSite<'_>,
        log: NewLog,
        spawner: &Spawner,
    ) -> std::io::Result<(CommandSpec, Receipt)> {
        let command = HookCommand {
            script: self.settings.script(hook).unwrap_or_default().to_owned(),
            environment: self.settings.variables(hook, &site.context),
            directory: site.directory.as_fd().try_clone_to_owned()?,
            secrets: self.settings.secrets().to_vec(),
            // A login profile may set these as well as the server's own environment.
            removed: withheld_variables().map(str::to_owned).collect(),
        };
        let (spec, receipt) = command.into_spec(spawner)?;
        let log = Some(LogFile { file: Some(log.file), limit: log.limit });
        // If this process dies, the workspace stays locked until the hook has ended.
        let held = vec![site.lock.share()?];
        Ok((CommandSpec { deadline: Some(self.settings.timeout()), log, held, ..spec }, receipt))
    }

    fn result(&self, hook: Hook, context: &HookContext, finished: Finished) -> HookResult {
        let Finished { outcome, started_at, log, receipt } = finished;
        let output = self.settings.excerpt(&outcome.stdout, MAX_LOGGED);
        for line in output.lines() {
            debug!(hook = hook.as_str(), issue_id = context.issue_id, line, "hook printed");
        }
        if outcome.left_running > 0 {
            let processes = outcome.left_running;
            warn!(
                hook = hook.as_str(),
                processes, "Workspace hook left processes, which were ended"
            );
        }
        let run = HookRun {
            hook,
            started_at,
            duration_ms: u64::try_from(outcome.wall.as_millis()).unwrap_or(u64::MAX),
            end: HookEnd::of(&outcome),
            output_bytes: outcome.stdout.total_bytes,
            log: log.clone(),
        };
        let reached = receipt.is_none_or(|receipt| receipt.script_was_reached().unwrap_or(true));
        let result = match (outcome.stop, outcome.end) {
            (Some(Stop::Deadline), _) => {
                Err(HookError::TimedOut { hook, timeout: self.settings.timeout(), output, log })
            }
            (Some(Stop::Cancelled), _) => Err(HookError::Cancelled { hook }),
            (None, ExitStatus::Exited(0)) if reached => Ok(()),
            (None, ExitStatus::Exited(0)) => Err(HookError::NotReached { hook, log }),
            (None, end) => Err(HookError::Failed { hook, end, output, log }),
        };
        let end = if reached { run.end } else { HookEnd::Failed };
        HookResult { run: Some(HookRun { end, ..run }), result }
    }
}

async fn prepare(hook: Hook, site: &HookSite<'_>) -> Result<NewLog, Error> {
    touch(site).await?;
    let inner = Arc::clone(site.inner);
    let key = site.context.key.clone();
    blocking(move || hook_log::create(&inner.root.own, &key, hook.as_str(), inner.clock.now()))
        .await
}

async fn touch(site: &HookSite<'_>) -> Result<(), Error> {
    let inner = Arc::clone(site.inner);
    let key = site.context.key.clone();
    blocking(move || inner.usage_cache().touch(&key)).await
}

fn log_result(hook: Hook, context: &HookContext, ran: &HookResult) {
    let hook = hook.as_str();
    let issue_id = &context.issue_id;
    let issue_identifier = context.identifier.as_str();
    let workspace = context.workspace.display();
    let log = ran.run.as_ref().map(|run| run.log.display().to_string());
    match &ran.result {
        Ok(()) => debug!(hook, issue_id, log, "Workspace hook succeeded"),
        Err(HookError::TimedOut { timeout, .. }) => {
            let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            warn!(hook, timeout_ms, issue_id, issue_identifier, %workspace, log, "Workspace hook timed out");
        }
        Err(HookError::Failed { end, output, .. }) => {
            let status = match end {
                ExitStatus::Exited(status) => status.to_string(),
                ExitStatus::Signaled(signal) => format!("signal {signal}"),
                ExitStatus::Lost => "lost".to_owned(),
            };
            warn!(hook, status, issue_id, issue_identifier, %workspace, log, output, "Workspace hook failed");
        }
        Err(error) => {
            let error = message_of(error);
            warn!(hook, error, issue_id, issue_identifier, %workspace, log, "Workspace hook failed");
        }
    }
}
