//! Runs commands in workspaces.
//!
//! There is one [`Runner`] for a server, or one for a single `carrel exec`. A run goes through these
//! steps, and each later one relies on those before:
//!
//! 1. check the request against its preset, the workspace and the caps of its network;
//! 2. at the same time: get the cell, make the control group, and record the trust baseline, so that
//!    the first command of a workspace waits for the slowest of the three and not for their sum;
//! 3. start the command in the cell, holding a share of the workspace's lock until its last process
//!    has ended, even if this server dies;
//! 4. wait for it, watch the quota, hand on its output;
//! 5. clean up, after an error too: temporary files, the control group's counters, the trust check.
//!
//! A failure of steps 1 to 3 is a [`RunError`] and the command did not run. From then on a command has
//! run, so clean-up comes before any error is returned. If the server dies, the spawner's processes
//! kill the command; scratch directories and control groups are found and removed by a later server;
//! the trust baseline is lost, and the next server trusts what is there.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use carrel_audit::{AuditLog, AuditedCall, Violation};
use carrel_config::{DetectedToolchains, Environment, OperatorPolicy, TierChoice, Trust};
use carrel_domain::{GrantedNetwork, NetworkDenied, NetworkRequest, ResourceLimits, Tier, sync};
use carrel_exec::{Cgroup, Cgroups, CommandSpec, LazySpawner, Spawner};
use carrel_fsroot::Root;
use carrel_sandbox::{CgroupLimits, Host};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use carrel_workspace::blocking;

use crate::artifacts::{ArtifactDirectory, Artifacts};
use crate::command_run::CommandRun;
use crate::completed::{Completed, RawResult};
use crate::error::RunError;
use crate::fork_mount::ForkMounts;
use crate::prefork::Prefork;
use crate::request::RunRequest;
use crate::sandbox_cell::Cells;
use crate::span;
use crate::ssh_agent::SshAgent;
use crate::trust::{TrustBaseline, TrustReport};
use crate::workspace_handle::WorkspaceHandle;

/// The parts that a runner is made from.
#[derive(Debug)]
pub struct RunnerOptions {
    /// Starts cells, and commands where the sandbox is off.
    pub spawner: LazySpawner,
    /// The operator's policy.
    pub policy: OperatorPolicy,
    /// The operator's environment. Toolchains are found by it; commands inherit nothing.
    pub environment: Environment,
    /// The sandbox around every command.
    pub sandbox: SandboxMode,
    /// Kernel features that are treated as missing, to test the fallbacks.
    pub disabled: Vec<Feature>,
    /// The expected use.
    pub mode: RunnerMode,
    /// The audit log, for operations that the sandbox denies.
    pub events: AuditLog,
}

/// The expected use of a runner.
#[derive(Debug)]
pub enum RunnerMode {
    /// One command, by a program that does nothing else: its cell was forked ahead, and file work is
    /// done on the calling thread, because no other task waits for it. The runner is made inside a
    /// tokio runtime.
    SingleCommand(Prefork),
    /// Any number of commands at the same time.
    Server,
}

/// The sandbox around commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxMode {
    /// Always, in the best tier that the host allows or in a given one.
    Enforced(TierChoice),
    /// Never, by the operator's explicit choice.
    Off,
}

/// A kernel feature that can be disabled for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// User namespaces.
    UserNamespaces,
    /// Landlock.
    Landlock,
    /// System call filters.
    Seccomp,
    /// Control groups.
    Cgroups,
}

/// Runs commands in workspaces. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Runner {
    pub(crate) inner: Arc<RunnerInner>,
}

#[derive(Debug)]
pub(crate) struct RunnerInner {
    /// Dropped first, so that the processes end while the rest is dropped.
    pub(crate) cells: Cells,
    pub(crate) forks: ForkMounts,
    pub(crate) options: RunnerOptions,
    pub(crate) host: Host,
    cgroups: OnceLock<Cgroups>,
    pub(crate) toolchains: DetectedToolchains,
    /// The process that becomes the first cell, if one was forked ahead.
    preforked: Mutex<Option<Spawner>>,
}

impl Runner {
    /// Probes the host and finds the toolchains.
    pub fn new(mut options: RunnerOptions) -> Self {
        let prefork = match &mut options.mode {
            RunnerMode::SingleCommand(prefork) => std::mem::take(prefork),
            RunnerMode::Server => Prefork::default(),
        };
        let cgroups = prefork.cgroups.map_or_else(OnceLock::new, OnceLock::from);
        if prefork.cell.is_none() && Cgroups::may_move() {
            cgroups.get_or_init(|| find_cgroups(&options.disabled));
        }
        let program = options.spawner.program();
        // If that fails, the cell is made as any other.
        let preforked = prefork.cell.and_then(|cell| Spawner::from_preforked(cell, program).ok());
        let mut host = Host::probe();
        if options.disabled.contains(&Feature::Landlock) {
            host.landlock = 0;
        }
        let toolchains = options.policy.detect_toolchains(&options.environment);
        let cells = Cells::default();
        let preforked = Mutex::new(preforked);
        let forks = ForkMounts::default();
        let inner = RunnerInner { cells, forks, options, host, cgroups, toolchains, preforked };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the operator's policy.
    pub fn policy(&self) -> &OperatorPolicy {
        &self.inner.options.policy
    }

    /// Returns the audit log.
    pub fn events(&self) -> &AuditLog {
        &self.inner.options.events
    }

    /// Returns the operator's environment.
    pub fn environment(&self) -> &Environment {
        &self.inner.options.environment
    }

    /// Returns the program of the spawner, which is Carrel itself outside tests.
    pub fn program(&self) -> &Path {
        self.inner.options.spawner.program()
    }

    /// Returns the starter of helper processes.
    pub fn spawner(&self) -> &LazySpawner {
        &self.inner.options.spawner
    }

    /// Returns the directories of the policy and of toolchains that come first in the commands' `PATH`.
    pub fn programs(&self) -> impl Iterator<Item = &Path> {
        self.inner.programs()
    }

    /// Returns whether commands run in a sandbox.
    pub fn is_sandboxed(&self) -> bool {
        self.inner.options.sandbox != SandboxMode::Off
    }

    /// Decides the network of a request, for the tier that commands are expected to have.
    pub fn decide_network(&self, request: NetworkRequest) -> Result<GrantedNetwork, NetworkDenied> {
        request.decide(self.policy().networks(), self.inner.expected_tier())
    }

    /// Runs a command until its last process has ended. Cancelling stops it as its deadline does.
    ///
    /// A command that fails, or that a limit ends, is a [`Completed`]. An error means that it did not
    /// start, or that afterwards the workspace could not be checked.
    pub async fn run(
        &self,
        workspace: &WorkspaceHandle,
        mut request: RunRequest,
        cancel: &CancellationToken,
    ) -> Result<Completed, RunError> {
        let span = span::begin(&request);
        let audited_call = request.audited_call.take();
        let ran = self.run_in_sandbox(workspace, request, cancel).instrument(span.clone()).await;
        span::end(&span, &ran);
        if let Ok(completed) = &ran {
            self.audit_denials(workspace, audited_call, completed);
        }
        ran
    }

    /// Records the operations that the sandbox denied. This is the one place for all commands, whichever
    /// interface, hook or agent runs them.
    fn audit_denials(
        &self,
        workspace: &WorkspaceHandle,
        audited_call: Option<AuditedCall>,
        completed: &Completed,
    ) {
        if completed.denials.is_empty() {
            return;
        }
        let mut audited_call =
            audited_call.unwrap_or_else(|| AuditedCall::of_command_line("command"));
        let path = || workspace.path().display().to_string();
        audited_call.workspace.get_or_insert_with(path);
        self.events().add_violation(&audited_call, Violation::of_denials(&completed.denials));
    }

    async fn run_in_sandbox(
        &self,
        workspace: &WorkspaceHandle,
        mut request: RunRequest,
        cancel: &CancellationToken,
    ) -> Result<Completed, RunError> {
        let inner = &*self.inner;
        request.check(workspace, |program| inner.is_visible(program))?;
        let stdin = std::mem::take(&mut request.stdin);
        let log = request.log.take();
        let granted = self.decide_network(request.network)?;
        let limits = request.limits(self.policy());
        let claim = inner.claim_changes(workspace, &mut request)?;
        let (site, group, trusted) = tokio::join!(
            inner.enter_cell_for(workspace, &request, granted),
            async {
                inner.yield_to_preforked_cell();
                // Control group files are in memory: switching threads would take longer than the work.
                inner.make_group(&limits)
            },
            self.record_trust(workspace),
        );
        let (site, network) = site?;
        let group = group?;
        trusted?;
        inner.make_own_directory(&site).await?;
        let made = async {
            let artifacts = ArtifactDirectory::make(&mut request, &site).await?;
            Ok((artifacts, SshAgent::make(&mut request, &site, network.network).await?))
        };
        // Without a command there is no clean-up that would remove its directory, which is empty here.
        let (artifacts, agent) = made.await.inspect_err(|_: &RunError| site.remove_directory())?;
        let inherited = std::mem::take(&mut request.inherited);
        let started = request.started.take();
        let run =
            CommandRun { inner, workspace, request: &request, site: &site, network, limits, claim };
        let mut spec = run.spec(group.as_ref())?;
        if let Some(agent) = &agent {
            spec.argv = agent.wrap(spec.argv);
        }
        let spec = CommandSpec { stdin, log, inherited, ..spec };
        workspace.expect_changes();
        let may_write = request.access == carrel_domain::WorkspaceAccess::ReadWrite;
        let running = may_write.then(|| workspace.count_command());
        let ran = run.run_watched(spec, started, cancel).await;
        drop(agent);
        workspace.expect_changes();
        drop(running);
        let artifacts = match artifacts {
            Some(artifacts) => artifacts.read().await,
            None => Ok(Artifacts::default()),
        };
        // Even after an error the command may have run.
        let cleaned = run.clean_up(group).await;
        let ((outcome, exceeded), (report, trust)) = (ran?, cleaned?);
        let (overran, artifacts) = (exceeded.is_some(), artifacts?);
        Ok(run.complete(RawResult { outcome, report, overran, trust, artifacts }))
    }

    /// Ends the idle cells of a workspace, with their temporary files.
    pub async fn release(&self, workspace: &WorkspaceHandle) -> Result<(), RunError> {
        let idle = self.inner.cells.cache.take_idle(workspace.path());
        let drop_all = move || {
            drop(idle);
            Ok(())
        };
        self.inner.files(drop_all).await
    }

    /// Records the trust baseline of a workspace, unless it has one. Must come before any change that
    /// [`Runner::check_trust`] is to find.
    pub async fn record_trust(&self, workspace: &WorkspaceHandle) -> Result<(), RunError> {
        if workspace.trust.get().is_some() {
            return Ok(());
        }
        let directory = workspace.directory.try_clone().map_err(RunError::Workspace)?;
        let take = move || TrustBaseline::capture(&directory).map_err(RunError::Workspace);
        let taken = self.inner.files(take).await?;
        // If several commands are the first, none starts before one baseline is set.
        let _ = workspace.trust.set(Mutex::new(taken));
        Ok(())
    }

    /// Runs the trust check, by the policy. The baseline must have been recorded.
    pub async fn check_trust(&self, workspace: &WorkspaceHandle) -> Result<TrustReport, RunError> {
        if workspace.is_unchanged() {
            return Ok(TrustReport::default());
        }
        let directory = workspace.directory.try_clone().map_err(RunError::Workspace)?;
        let trust = Arc::clone(&workspace.trust);
        let on_change = self.policy().trust;
        self.inner.files(move || check_trust(&trust, &directory, on_change)).await
    }

    /// Returns the reason to refuse writing a file that would run later outside the sandbox; none where
    /// the policy only reports. Of unknown contents the worst is assumed. The baseline must have been
    /// recorded.
    pub fn denies_write(
        &self,
        workspace: &WorkspaceHandle,
        path: &Path,
        bytes: Option<&[u8]>,
    ) -> Option<String> {
        self.enforced_baseline(workspace)?.denies_write(&workspace.directory, path, bytes)
    }

    /// Returns the reason to refuse moving an entry, as [`Runner::denies_write`] does.
    pub fn denies_move(
        &self,
        workspace: &WorkspaceHandle,
        from: &Path,
        to: &Path,
    ) -> Result<Option<String>, RunError> {
        let Some(baseline) = self.enforced_baseline(workspace) else { return Ok(None) };
        baseline.denies_move(&workspace.directory, from, to).map_err(RunError::Workspace)
    }

    /// Returns the trust baseline; none where the policy only reports.
    fn enforced_baseline<'a>(
        &self,
        workspace: &'a WorkspaceHandle,
    ) -> Option<MutexGuard<'a, TrustBaseline>> {
        (self.policy().trust == Trust::Restore).then(|| trusted(&workspace.trust))
    }
}

fn trusted(trust: &OnceLock<Mutex<TrustBaseline>>) -> MutexGuard<'_, TrustBaseline> {
    let trust = trust.get().expect("the baseline is recorded before anything is changed");
    sync::lock(trust)
}

pub(crate) fn check_trust(
    trust: &OnceLock<Mutex<TrustBaseline>>,
    directory: &Root,
    on_change: Trust,
) -> Result<TrustReport, RunError> {
    let settled = trusted(trust).check(directory, on_change).map_err(RunError::Workspace)?;
    if directory.own_metadata().is_ok_and(|top| top.links == 0) {
        return Err(RunError::WorkspaceRemoved { workspace: directory.path().to_owned() });
    }
    match (on_change, settled.unchecked) {
        (Trust::Restore, Some(path)) => Err(RunError::TooManyWatchedFiles { path }),
        (_, unchecked) => Ok(TrustReport { unchecked, ..settled }),
    }
}

/// Finds the control groups, unless they are disabled.
pub(crate) fn find_cgroups(disabled: &[Feature]) -> Cgroups {
    if disabled.contains(&Feature::Cgroups) {
        return Cgroups::none("taken as missing");
    }
    Cgroups::find()
}

impl RunnerInner {
    /// Returns the spawner for the next cell: the preforked process once, then the usual one.
    pub(crate) fn cell_spawner(&self) -> std::io::Result<Spawner> {
        let preforked = sync::lock(&self.preforked).take();
        preforked
            .filter(|spawner| !spawner.is_gone())
            .map_or_else(|| self.options.spawner.get(), Ok)
    }

    /// Returns the control groups, found on first use.
    pub(crate) fn cgroups(&self) -> &Cgroups {
        self.cgroups.get_or_init(|| find_cgroups(&self.options.disabled))
    }

    pub(crate) fn programs(&self) -> impl Iterator<Item = &Path> {
        self.options.policy.path.iter().chain(&self.toolchains.path).map(PathBuf::as_path)
    }

    /// Does file work on a thread that may block, or on this one if there is only one command.
    pub(crate) async fn files<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, RunError> + Send + 'static,
    ) -> Result<T, RunError> {
        match self.options.mode {
            RunnerMode::SingleCommand(_) => work(),
            RunnerMode::Server => blocking(work).await,
        }
    }

    /// Sleeps while the kernel makes the namespaces of the only command's cell. Without this the process
    /// that makes them waits for a processor until this one has nothing left to do, on a machine whose
    /// cores are busy. What is left to do here fits in while the cell builds its root file system.
    /// Measured against bubblewrap with both cores busy: 1.15 times its time before, 1.00 after.
    fn yield_to_preforked_cell(&self) {
        let makes_namespaces = matches!(
            self.options.sandbox,
            SandboxMode::Enforced(TierChoice::Auto | TierChoice::Only(Tier::Full))
        );
        if makes_namespaces && matches!(self.options.mode, RunnerMode::SingleCommand(_)) {
            std::thread::sleep(NAMESPACE_SETUP);
        }
    }

    /// Makes the control group of a command, where the host has them.
    pub(crate) fn make_group(&self, limits: &ResourceLimits) -> Result<Option<Cgroup>, RunError> {
        if self.cgroups().enforced() == CgroupLimits::default() {
            return Ok(None);
        }
        Ok(Some(self.cgroups().make(limits.memory, limits.processes)?))
    }
}

/// The state directory of a server that runs as root: commands of other users could not reach their
/// temporary files below root's home.
const SYSTEM_STATE: &str = "/var/lib";

/// A pause shorter than the kernel takes to make namespaces.
const NAMESPACE_SETUP: Duration = Duration::from_micros(300);

/// Returns Carrel's state directory: below `XDG_STATE_HOME`, `/var/lib` for root, or `~/.local/state`.
pub fn state_directory(environment: &Environment) -> Option<PathBuf> {
    let named = environment.get(carrel_config::environment::XDG_STATE_HOME).map(PathBuf::from);
    let usual = || {
        if rustix::process::geteuid().is_root() {
            return Some(PathBuf::from(SYSTEM_STATE));
        }
        Some(environment.home()?.join(".local/state"))
    };
    let home = named.filter(|path| path.is_absolute()).or_else(usual)?;
    Some(home.join("carrel"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_workspace_is_not_reported_as_too_large() {
        let workspace = tempfile::tempdir().unwrap();
        let directory = Root::open(workspace.path()).unwrap();
        let trust = OnceLock::from(Mutex::new(TrustBaseline::capture(&directory).unwrap()));
        workspace.close().unwrap();
        for on_change in [Trust::Restore, Trust::Report] {
            let settled = check_trust(&trust, &directory, on_change);
            assert!(matches!(settled, Err(RunError::WorkspaceRemoved { .. })), "{settled:?}");
        }
    }
}
