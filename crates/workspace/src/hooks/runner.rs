//! Runs hooks and records their results.
//!
//! A hook runs on the host with the operator's rights, after the login profile, or in the workspace's
//! sandbox with `hooks.sandbox: true`. In both cases its processes hold the workspace's lock: if the
//! server dies, the workspace stays locked until the hook has ended. A deadline stops it with everything
//! it started. The cached usage is made invalid before and after.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use carrel_config::{Environment, HooksConfig, withheld_variables};
use carrel_domain::{Timestamp, WorkspaceKey, message_of};
use carrel_exec::{
    CommandSpec, ExitStatus, HookCommand, LazySpawner, LogFile, Outcome, Receipt, SpawnError, Stop,
};
use carrel_fsroot::Root;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::{Hook, HookEnd, HookError, HookRun, HookSandbox, HookSettings, SandboxedHook};
use crate::error::Error;
use crate::hook_log;
use crate::lock::Lock;
use crate::record::Record;
use crate::workspaces::{RootInner, Workspaces};

/// The most bytes of a hook's output in a log line or an error.
const MAX_LOGGED: usize = 2048;

/// The workspace that a hook runs in: its record, its checked directory and its held lock.
pub(crate) struct HookSite<'a> {
    pub(crate) workspaces: &'a Workspaces,
    pub(crate) record: &'a Record,
    pub(crate) directory: &'a Root,
    pub(crate) lock: &'a Lock,
    /// The right to change the tree, which its processes hold; none where the lock keeps forks from being made.
    pub(crate) changes: Option<OwnedFd>,
    pub(crate) attempt: Option<u32>,
}

impl HookSite<'_> {
    /// Returns the locks that the hook's processes hold until the last of them has ended.
    fn held(&self) -> io::Result<Vec<OwnedFd>> {
        let changes = self.changes.iter().map(OwnedFd::try_clone);
        std::iter::once(self.lock.share()).chain(changes).collect()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.workspaces.inner.location(&self.record.key).workspace
    }
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
    pub(crate) fn run<'a>(&'a self, hook: Hook, site: HookSite<'a>) -> BoxFuture<'a, HookResult> {
        Box::pin(self.run_logged(hook, site))
    }

    async fn run_logged(&self, hook: Hook, site: HookSite<'_>) -> HookResult {
        info!(
            hook = hook.as_str(),
            issue_id = site.record.issue_id(),
            issue_identifier = site.record.identifier.as_str(),
            workspace = %site.path().display(),
            "Running workspace hook"
        );
        let ran = match self.execute(hook, &site).await {
            Ok(finished) => self.result(hook, site.record.issue_id(), finished),
            Err(error) => HookResult { run: None, result: Err(error) },
        };
        log_result(hook, &site, &ran);
        ran
    }

    async fn execute(&self, hook: Hook, site: &HookSite<'_>) -> Result<Finished, HookError> {
        let started_at = site.workspaces.inner.clock.now();
        let prepared = prepare(hook, site).await;
        let (path, log) = prepared.map_err(|error| HookError::unprepared(hook, &error))?;
        let (outcome, receipt) = if self.settings.is_sandboxed() {
            (self.run_sandboxed(hook, site, log).await?, None)
        } else {
            self.run_on_host(hook, site, log).await?
        };
        let key = &site.record.key;
        if let Err(error) = site.workspaces.touch(key).await {
            // Counts from before the hook are invalid already.
            warn!(%key, %error, "could not note that the workspace changed");
        }
        Ok(Finished { outcome, started_at, log: path, receipt })
    }

    async fn run_on_host(
        &self,
        hook: Hook,
        site: &HookSite<'_>,
        log: LogFile,
    ) -> Result<(Outcome, Option<Receipt>), HookError> {
        let start = |source| HookError::Start { hook, source };
        let io = |source| start(SpawnError::Resources(source));
        let spawner = self.spawner.get().map_err(io)?;
        let command = HookCommand {
            script: self.settings.script(hook).unwrap_or_default().to_owned(),
            environment: self.settings.variables(hook, site),
            directory: site.directory.as_fd().try_clone_to_owned().map_err(io)?,
            secrets: self.settings.secrets().to_vec(),
            // A login profile may set these as well as the server's own environment.
            removed: withheld_variables().map(str::to_owned).collect(),
        };
        let (spec, receipt) = command.into_spec(&spawner).map_err(io)?;
        // If this process dies, the workspace stays locked until the hook has ended.
        let held = site.held().map_err(io)?;
        let deadline = Some(self.settings.timeout());
        let spec = CommandSpec { deadline, log: Some(log), held, ..spec };
        let outcome = spawner.run(spec, &self.cancel(hook)).await.map_err(start)?;
        Ok((outcome, Some(receipt)))
    }

    /// Runs a hook as commands of the workspace are run: without the operator's profile, home and
    /// environment, and with the network that the policy gives.
    async fn run_sandboxed(
        &self,
        hook: Hook,
        site: &HookSite<'_>,
        log: LogFile,
    ) -> Result<Outcome, HookError> {
        let start = |source| HookError::Start { hook, source: SpawnError::Resources(source) };
        let directory = site.directory.try_clone();
        let sandboxed = SandboxedHook {
            directory: directory.map_err(|error| HookError::unprepared(hook, &error))?,
            root: site.workspaces.path().to_owned(),
            layout: site.record.layout,
            held: site.held().map_err(start)?,
            script: self.settings.script(hook).unwrap_or_default().to_owned(),
            environment: self.settings.variables(hook, site),
            timeout: self.settings.timeout(),
            log,
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

    fn result(&self, hook: Hook, issue_id: &str, finished: Finished) -> HookResult {
        let Finished { outcome, started_at, log, receipt } = finished;
        let output = self.settings.excerpt(&outcome.stdout, MAX_LOGGED);
        for line in output.lines() {
            debug!(hook = hook.as_str(), issue_id, line, "hook printed");
        }
        if outcome.left_running > 0 {
            let processes = outcome.left_running;
            warn!(
                hook = hook.as_str(),
                processes, "Workspace hook left processes, which were ended"
            );
        }
        let reached = receipt.is_none_or(|receipt| receipt.script_was_reached().unwrap_or(true));
        let run = Some(HookRun {
            hook,
            started_at,
            duration_ms: u64::try_from(outcome.wall.as_millis()).unwrap_or(u64::MAX),
            end: if reached { HookEnd::of(&outcome) } else { HookEnd::Failed },
            output_bytes: outcome.stdout.total_bytes,
            log: log.clone(),
        });
        let result = match (outcome.stop, outcome.end) {
            (Some(Stop::Deadline), _) => {
                Err(HookError::TimedOut { hook, timeout: self.settings.timeout(), output, log })
            }
            (Some(Stop::Cancelled), _) => Err(HookError::Cancelled { hook }),
            (None, ExitStatus::Exited(0)) if reached => Ok(()),
            (None, ExitStatus::Exited(0)) => Err(HookError::NotReached { hook, log }),
            (None, end) => Err(HookError::Failed { hook, end, output, log }),
        };
        HookResult { run, result }
    }
}

async fn prepare(hook: Hook, site: &HookSite<'_>) -> Result<(PathBuf, LogFile), Error> {
    let create = move |inner: &RootInner, key: &WorkspaceKey| {
        inner.usage_cache().touch(key)?;
        hook_log::create(inner, key, hook)
    };
    site.workspaces.with_key(&site.record.key, create).await
}

fn log_result(hook: Hook, site: &HookSite<'_>, ran: &HookResult) {
    let hook = hook.as_str();
    let issue_id = site.record.issue_id();
    let issue_identifier = site.record.identifier.as_str();
    let workspace = site.path();
    let workspace = workspace.display();
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
