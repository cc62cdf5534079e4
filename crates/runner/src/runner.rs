//! Runs commands in workspaces.
//!
//! There is one [`Runner`] for a server, or one for a single `carrel exec`. A run goes through these
//! steps, and each later one relies on those before:
//!
//! 1. check the request against its preset, the workspace and the policy's network limit;
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

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use carrel_config::{DetectedToolchains, Environment, OperatorPolicy, TierChoice};
use carrel_domain::{Network, ResourceLimits, Tier, sync};
use carrel_exec::{
    Cgroup, CgroupReport, Cgroups, CommandSpec, ExceededLimit, LazySpawner, Outcome, PreforkedCell,
    Spawner, Started,
};
use carrel_fsroot::Root;
use carrel_sandbox::{CgroupLimits, Host};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use carrel_workspace::{Error, blocking};

use crate::artifacts::{ArtifactDirectory, Artifacts};
use crate::completed::{Completed, RawResult};
use crate::direct_exec;
use crate::error::RunError;
use crate::limits;
use crate::prefork::Prefork;
use crate::quota_watcher::{Overrun, QuotaWatcher};
use crate::request::{CommandForm, RunRequest};
use crate::sandbox_cell::{Cells, ExecutionSite};
use crate::span;
use crate::ssh_agent::SshAgent;
use crate::trust::{OnChange, TrustBaseline, TrustReport};
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
        // If that fails, the cell is made as any other.
        let preforked = prefork.cell.and_then(|cell| adopt(cell, &options).ok());
        let mut host = Host::probe();
        if options.disabled.contains(&Feature::Landlock) {
            host.landlock = 0;
        }
        let toolchains = options.policy.detect_toolchains(&options.environment);
        let cells = Cells::default();
        let preforked = Mutex::new(preforked);
        let inner = RunnerInner { cells, options, host, cgroups, toolchains, preforked };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the operator's policy.
    pub fn policy(&self) -> &OperatorPolicy {
        &self.inner.options.policy
    }

    /// Returns the operator's environment.
    pub fn environment(&self) -> &Environment {
        &self.inner.options.environment
    }

    /// Returns the program of the spawner, which is Carrel itself outside tests.
    pub fn program(&self) -> &Path {
        self.inner.options.spawner.program()
    }

    /// Returns the directories of the policy and of toolchains that come first in the commands' `PATH`.
    pub fn programs(&self) -> impl Iterator<Item = &Path> {
        self.inner.programs()
    }

    /// Returns whether commands run in a sandbox.
    pub fn is_sandboxed(&self) -> bool {
        self.inner.options.sandbox != SandboxMode::Off
    }

    /// Returns the control groups of this server.
    pub fn cgroups(&self) -> &Cgroups {
        self.inner.cgroups()
    }

    /// Runs a command until its last process has ended. Cancelling stops it as its deadline does.
    ///
    /// A command that fails, or that a limit ends, is a [`Completed`]. An error means that it did not
    /// start, or that afterwards the workspace could not be checked.
    pub async fn run(
        &self,
        workspace: &WorkspaceHandle,
        request: RunRequest,
        cancel: &CancellationToken,
    ) -> Result<Completed, RunError> {
        let span = span::begin(&request);
        let ran = self.run_in_sandbox(workspace, request, cancel).instrument(span.clone()).await;
        span::end(&span, &ran);
        ran
    }

    async fn run_in_sandbox(
        &self,
        workspace: &WorkspaceHandle,
        mut request: RunRequest,
        cancel: &CancellationToken,
    ) -> Result<Completed, RunError> {
        let inner = &*self.inner;
        request.check(workspace)?;
        let stdin = std::mem::take(&mut request.stdin);
        let log = request.log.take();
        let network = inner.options.policy.network_for(request.network)?;
        let limits = request.limits(self.policy());
        let (site, group, trusted) = tokio::join!(
            inner.cells.enter(inner, workspace, &request, network),
            async {
                inner.yield_to_preforked_cell();
                // Control group files are in memory: switching threads would take longer than the work.
                inner.make_group(&limits)
            },
            inner.record_trust(workspace),
        );
        let site = site?;
        let group = group?;
        trusted?;
        let artifacts = ArtifactDirectory::make(&mut request, &site).await?;
        let agent = SshAgent::make(&mut request, &site, network).await?;
        let mut spec = self.prepare(workspace, &request, &site, network, group.as_ref()).await?;
        if let Some(agent) = &agent {
            spec.argv = agent.wrap(spec.argv);
        }
        let inherited = std::mem::take(&mut request.inherited);
        let spec = CommandSpec { stdin, log, inherited, ..spec };
        let started = request.started.take();
        workspace.expect_changes();
        let ran = run_watched(workspace, &site, spec, &request, started, cancel).await;
        drop(agent);
        workspace.expect_changes();
        let artifacts = match artifacts {
            Some(artifacts) => artifacts.read().await,
            None => Ok(Artifacts::default()),
        };
        // Even after an error the command may have run.
        let cleaned = self.clean_up(workspace, &request, &site, group).await;
        let ((outcome, overrun), (report, trust)) = (ran?, cleaned?);
        let over = RawResult { outcome, report, overrun, trust, artifacts: artifacts? };
        Ok(inner.complete(workspace, &request, &site, over))
    }

    /// Ends the idle cells of a workspace, with their temporary files.
    pub async fn release(&self, workspace: &WorkspaceHandle) -> Result<(), RunError> {
        let idle = self.inner.cells.take_idle(workspace.path());
        let drop_them = move || {
            drop(idle);
            Ok(())
        };
        self.inner.files(drop_them).await
    }

    /// Creates the command's directory for temporary files if it needs one, and builds its spec.
    pub(crate) async fn prepare(
        &self,
        workspace: &WorkspaceHandle,
        request: &RunRequest,
        site: &ExecutionSite,
        network: Network,
        group: Option<&Cgroup>,
    ) -> Result<CommandSpec, RunError> {
        if site.lacks_directory() {
            let cell = site.clone();
            self.inner.files(move || cell.make_directory()).await?;
        }
        self.inner.spec(workspace, request, site, network, group)
    }

    /// Removes the command's temporary files, reads its control group and runs the trust check.
    async fn clean_up(
        &self,
        workspace: &WorkspaceHandle,
        request: &RunRequest,
        site: &ExecutionSite,
        group: Option<Cgroup>,
    ) -> Result<(CgroupReport, TrustReport), RunError> {
        let on_change = request.trust.unwrap_or_else(|| self.on_change());
        let report = group.map(|mut group| group.report()).unwrap_or_default();
        let kept = site.keep_directory();
        // With at most 64 stamps to compare, switching threads would take longer. Otherwise the check
        // costs about 0.1 ms more.
        if kept && workspace.is_unchanged() {
            return Ok((report, TrustReport::default()));
        }
        let directory = workspace.directory.try_clone().map_err(RunError::Workspace)?;
        let trust = Arc::clone(&workspace.trust);
        let site = site.clone();
        let work = move || {
            if !kept {
                site.remove_directory();
            }
            // A command may have removed all permissions from its own workspace.
            let opened = directory.grant_owner_access().map_err(RunError::Workspace);
            let settled = check_trust(&trust, &directory, on_change)?;
            opened.map(|()| (report, settled))
        };
        self.inner.files(work).await
    }

    /// Records the trust baseline of a workspace, unless it has one. Must come before any change that
    /// [`Runner::check_trust`] is to find.
    pub async fn record_trust(&self, workspace: &WorkspaceHandle) -> Result<(), RunError> {
        self.inner.record_trust(workspace).await
    }

    /// Runs the trust check, by the policy. The baseline must have been recorded.
    pub async fn check_trust(&self, workspace: &WorkspaceHandle) -> Result<TrustReport, RunError> {
        if workspace.is_unchanged() {
            return Ok(TrustReport::default());
        }
        let directory = workspace.directory.try_clone().map_err(RunError::Workspace)?;
        let trust = Arc::clone(&workspace.trust);
        let on_change = self.on_change();
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
        match self.on_change() {
            OnChange::Report => None,
            OnChange::Restore => {
                trusted(&workspace.trust).denies_write(&workspace.directory, path, bytes)
            }
        }
    }

    /// Returns the reason to refuse moving an entry, as [`Runner::denies_write`] does.
    pub fn denies_move(
        &self,
        workspace: &WorkspaceHandle,
        from: &Path,
        to: &Path,
    ) -> Result<Option<String>, RunError> {
        match self.on_change() {
            OnChange::Report => Ok(None),
            OnChange::Restore => {
                let forbids = trusted(&workspace.trust).denies_move(&workspace.directory, from, to);
                forbids.map_err(RunError::Workspace)
            }
        }
    }

    fn on_change(&self) -> OnChange {
        match self.policy().trust {
            carrel_config::Trust::Restore => OnChange::Restore,
            carrel_config::Trust::Report => OnChange::Report,
        }
    }
}

fn trusted(trust: &OnceLock<Mutex<TrustBaseline>>) -> MutexGuard<'_, TrustBaseline> {
    let trust = trust.get().expect("the baseline is recorded before anything is changed");
    sync::lock(trust)
}

fn check_trust(
    trust: &OnceLock<Mutex<TrustBaseline>>,
    directory: &Root,
    on_change: OnChange,
) -> Result<TrustReport, RunError> {
    let settled = trusted(trust).check(directory, on_change).map_err(RunError::Workspace)?;
    if directory.own_metadata().is_ok_and(|top| top.links == 0) {
        return Err(RunError::WorkspaceRemoved { workspace: directory.path().to_owned() });
    }
    match (on_change, settled.unchecked) {
        (OnChange::Restore, Some(path)) => Err(RunError::TooManyWatchedFiles { path }),
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

/// Makes the process that was forked ahead a spawner of one cell.
fn adopt(cell: PreforkedCell, options: &RunnerOptions) -> std::io::Result<Spawner> {
    Spawner::from_preforked(cell, options.spawner.program())
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
    pub(crate) async fn files<T, E>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
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

    async fn record_trust(&self, workspace: &WorkspaceHandle) -> Result<(), RunError> {
        if workspace.trust.get().is_some() {
            return Ok(());
        }
        let directory = workspace.directory.try_clone().map_err(RunError::Workspace)?;
        let take = move || TrustBaseline::capture(&directory).map_err(RunError::Workspace);
        let taken = self.files(take).await?;
        // If several commands are the first, none starts before one baseline is set.
        let _ = workspace.trust.set(Mutex::new(taken));
        Ok(())
    }

    /// Makes the control group of a command, where the host has them.
    pub(crate) fn make_group(&self, limits: &ResourceLimits) -> Result<Option<Cgroup>, RunError> {
        if self.cgroups().enforced() == CgroupLimits::default() {
            return Ok(None);
        }
        Ok(Some(self.cgroups().make(limits.memory, limits.processes)?))
    }

    fn spec(
        &self,
        workspace: &WorkspaceHandle,
        request: &RunRequest,
        site: &ExecutionSite,
        network: Network,
        group: Option<&Cgroup>,
    ) -> Result<CommandSpec, RunError> {
        let limits = request.limits(&self.options.policy);
        let directory = site.directory(workspace, &request.directory)?;
        let mut environment = self.environment(workspace, request, site, network);
        let argv = argv(workspace, request, &mut environment);
        Ok(CommandSpec {
            environment,
            output: request.output,
            cgroups: group.map_or(Ok(Vec::new()), Cgroup::join_files)?,
            held: workspace.held()?,
            limits: limits::per_process(&limits, workspace, site, self.cgroups().enforced()),
            sampled: limits::sampled(&limits, workspace, site, self.cgroups().enforced()),
            deadline: Some(limits.wall),
            ..CommandSpec::starting_in(argv, directory)
        })
    }
}

/// Returns the argument list of a request, without a shell where that would only start the program.
fn argv(
    workspace: &WorkspaceHandle,
    request: &RunRequest,
    environment: &mut Vec<(OsString, OsString)>,
) -> Vec<OsString> {
    let CommandForm::Line(line) = &request.form else { return request.form.argv() };
    let directory = request.real_directory(workspace);
    let Some(direct) =
        directory.and_then(|directory| direct_exec::direct(line, &directory, environment))
    else {
        return request.form.argv();
    };
    environment.retain(|(name, _)| direct.variables.iter().all(|(added, _)| added != name));
    environment.extend(direct.variables);
    direct.argv
}

/// Runs the command while its quota is watched.
async fn run_watched(
    workspace: &WorkspaceHandle,
    site: &ExecutionSite,
    spec: CommandSpec,
    request: &RunRequest,
    started: Option<oneshot::Sender<Started>>,
    cancel: &CancellationToken,
) -> Result<(Outcome, Option<Overrun>), RunError> {
    let stop = cancel.child_token();
    let running = site.spawner().spawn(spec).await?;
    // The receiver may be gone; then the command is cancelled too.
    started.map(|asked| asked.send(running.started()));
    let Some(watcher) = watcher(workspace, site)? else {
        return Ok((request.wait(running, &stop).await, None));
    };
    let ended = CancellationToken::new();
    let killer = running.kill_handle();
    let watching = async {
        let found = watcher.watch(&ended).await;
        if !matches!(found, Ok(None)) {
            // Over the quota, or the quota cannot be checked. A stop with a grace period would let the
            // command write on.
            killer.kill();
        }
        found
    };
    let waiting = async {
        let outcome = request.wait(running, &stop).await;
        ended.cancel();
        outcome
    };
    let (outcome, found) = tokio::join!(waiting, watching);
    Ok((outcome, found?))
}

/// Returns the watcher of the workspace and its temporary files.
fn watcher(
    workspace: &WorkspaceHandle,
    site: &ExecutionSite,
) -> Result<Option<QuotaWatcher>, Error> {
    Ok(workspace.quota_watcher()?.map(|watcher| match site.scratch() {
        Some(scratch) => watcher.with(scratch),
        None => watcher,
    }))
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

/// Returns whether Carrel ended the command because of its quota.
pub(crate) fn stopped_for_quota(outcome: &Outcome, overrun: Option<&Overrun>) -> bool {
    overrun.is_some() || outcome.excess == Some(ExceededLimit::Disk)
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
        for on_change in [OnChange::Restore, OnChange::Report] {
            let settled = check_trust(&trust, &directory, on_change);
            assert!(matches!(settled, Err(RunError::WorkspaceRemoved { .. })), "{settled:?}");
        }
    }
}
