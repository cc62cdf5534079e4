//! Running commands in a workspace, behind walls.
//!
//! A [`Runner`] is one for a server. It knows the operator's policy and the machine, keeps a cell
//! for each workspace in use, and runs commands there: what the request asks for is held against
//! the policy, the command is started in its cell with its limits, the quota is watched while it
//! writes, and afterwards what would run later outside the walls is put back.

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
use crate::completed::{Completed, Over};
use crate::direct_exec;
use crate::error::RunError;
use crate::limits;
use crate::prefork::Prefork;
use crate::quota_watcher::{Overrun, QuotaWatcher};
use crate::request::{CommandForm, RunRequest};
use crate::sandbox_cell::{Cells, Walled};
use crate::span;
use crate::ssh_agent::Agent;
use crate::trust::{OnChange, TrustBaseline, TrustReport};
use crate::workspace_handle::WorkspaceHandle;

/// What a runner is made from.
#[derive(Debug)]
pub struct RunnerOptions {
    /// What starts processes.
    pub spawner: LazySpawner,
    /// What the operator allows.
    pub policy: OperatorPolicy,
    /// The operator's environment, of which commands see next to nothing.
    pub environment: Environment,
    /// The walls that are asked for.
    pub sandbox: SandboxMode,
    /// Features of the kernel that are taken as missing.
    pub disabled: Vec<Feature>,
    /// How much it is to be used.
    pub mode: RunnerMode,
}

/// How much a runner is to be used.
#[derive(Debug)]
pub enum RunnerMode {
    /// For one command, by a program that does nothing else meanwhile: what makes its cell gets ready
    /// while the rest is prepared, and files are worked on without another thread. Such a runner is made
    /// inside a tokio runtime.
    SingleCommand(Prefork),
    /// For any number of commands at the same time.
    Server,
}

/// The walls that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxMode {
    /// The best that there are, or a certain tier.
    Enforced(TierChoice),
    /// None, because the operator said so.
    Off,
}

/// A feature of the kernel that can be taken as missing, to see what then happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// User namespaces.
    UserNamespaces,
    /// Landlock.
    Landlock,
    /// Filters for system calls.
    Seccomp,
    /// Control groups.
    Cgroups,
}

/// Runs commands in workspaces. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Runner {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    /// First, so that what has to end begins to while the rest is taken down.
    pub(crate) cells: Cells,
    pub(crate) options: RunnerOptions,
    pub(crate) host: Host,
    cgroups: OnceLock<Cgroups>,
    pub(crate) toolchains: DetectedToolchains,
    /// The process that becomes the first cell, if one was forked ahead.
    preforked: Mutex<Option<Spawner>>,
}

impl Runner {
    /// Looks at the machine.
    pub fn new(mut options: RunnerOptions) -> Self {
        let prefork = match &mut options.mode {
            RunnerMode::SingleCommand(prefork) => std::mem::take(prefork),
            RunnerMode::Server => Prefork::default(),
        };
        let cgroups = prefork.cgroups.map_or_else(OnceLock::new, OnceLock::from);
        if prefork.cell.is_none() && Cgroups::may_move() {
            cgroups.get_or_init(|| find_cgroups(&options.disabled));
        }
        // Without it the cell is made as any other.
        let preforked = prefork.cell.and_then(|cell| adopt(cell, &options).ok());
        let mut host = Host::probe();
        if options.disabled.contains(&Feature::Landlock) {
            host.landlock = 0;
        }
        let toolchains = options.policy.detect_toolchains(&options.environment);
        let cells = Cells::default();
        let preforked = Mutex::new(preforked);
        let inner = Inner { cells, options, host, cgroups, toolchains, preforked };
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

    /// Returns the program that starts commands, which is Carrel itself as a rule.
    pub fn program(&self) -> &Path {
        self.inner.options.spawner.program()
    }

    /// Returns the directories that commands find programs in, besides those of the system.
    pub fn programs(&self) -> impl Iterator<Item = &Path> {
        self.inner.programs()
    }

    /// Returns whether commands run behind walls.
    pub fn is_sandboxed(&self) -> bool {
        self.inner.options.sandbox != SandboxMode::Off
    }

    /// Returns where control groups are made.
    pub fn cgroups(&self) -> &Cgroups {
        self.inner.cgroups()
    }

    /// Runs a command until nothing of it is left. Cancelling stops it as its deadline does.
    pub async fn run(
        &self,
        workspace: &WorkspaceHandle,
        request: RunRequest,
        cancel: &CancellationToken,
    ) -> Result<Completed, RunError> {
        let span = span::begin(&request);
        let ran = self.run_walled(workspace, request, cancel).instrument(span.clone()).await;
        span::end(&span, &ran);
        ran
    }

    async fn run_walled(
        &self,
        workspace: &WorkspaceHandle,
        mut request: RunRequest,
        cancel: &CancellationToken,
    ) -> Result<Completed, RunError> {
        let inner = &*self.inner;
        request.check(workspace)?;
        let (stdin, log) = (std::mem::take(&mut request.stdin), request.log.take());
        let network = inner.options.policy.network_for(request.network)?;
        let limits = request.limits(self.policy());
        // What does not need the cell is made while a new one is.
        let (walled, group, trusted) = tokio::join!(
            inner.cells.enter(inner, workspace, &request, network),
            async {
                inner.let_the_cell_begin();
                // Files of control groups are on no disk; to go to another thread would take longer.
                inner.make_group(&limits)
            },
            inner.record_trust(workspace),
        );
        let (walled, group) = (walled?, group?);
        trusted?;
        let artifacts = ArtifactDirectory::make(&mut request, &walled).await?;
        let agent = Agent::make(&mut request, &walled, network).await?;
        let mut spec = self.prepare(workspace, &request, &walled, network, group.as_ref()).await?;
        if let Some(agent) = &agent {
            spec.argv = agent.around(spec.argv);
        }
        let inherited = std::mem::take(&mut request.inherited);
        let spec = CommandSpec { stdin, log, inherited, ..spec };
        let started = request.started.take();
        workspace.expect_changes();
        let ran = run_watched(workspace, &walled, spec, &request, started, cancel).await;
        drop(agent);
        workspace.expect_changes();
        let artifacts = match artifacts {
            Some(artifacts) => artifacts.read().await,
            None => Ok(Artifacts::default()),
        };
        // Whatever went wrong, the command may have run.
        let cleaned = self.clean_up(workspace, &request, &walled, group).await;
        let ((outcome, overrun), (report, trust)) = (ran?, cleaned?);
        let over = Over { outcome, report, overrun, trust, artifacts: artifacts? };
        Ok(inner.complete(workspace, &request, &walled, over))
    }

    /// Gives up what is kept of a workspace for later commands, because there are to be none soon.
    pub async fn leave(&self, workspace: &WorkspaceHandle) -> Result<(), RunError> {
        let idle = self.inner.cells.take_idle(workspace.path());
        // With a cell go the temporary files of its commands.
        let drop_them = move || {
            drop(idle);
            Ok(())
        };
        self.inner.files(drop_them).await
    }

    /// Makes what the command needs on disk and describes it to the spawner.
    pub(crate) async fn prepare(
        &self,
        workspace: &WorkspaceHandle,
        request: &RunRequest,
        walled: &Walled,
        network: Network,
        group: Option<&Cgroup>,
    ) -> Result<CommandSpec, RunError> {
        if walled.lacks_directory() {
            let room = walled.clone();
            self.inner.files(move || room.make_directory()).await?;
        }
        self.inner.spec(workspace, request, walled, network, group)
    }

    /// Takes back what the command had, and puts back, or reports, what would run later outside the
    /// walls.
    async fn clean_up(
        &self,
        workspace: &WorkspaceHandle,
        request: &RunRequest,
        walled: &Walled,
        group: Option<Cgroup>,
    ) -> Result<(CgroupReport, TrustReport), RunError> {
        let on_change = request.trust.unwrap_or_else(|| self.on_change());
        let report = group.map(|mut group| group.report()).unwrap_or_default();
        let kept = walled.keep_directory();
        // To go to another thread takes longer than to see that there is nothing to do there.
        if kept && workspace.is_unchanged() {
            return Ok((report, TrustReport::default()));
        }
        let (directory, trust) = (
            workspace.directory.try_clone().map_err(RunError::Workspace)?,
            Arc::clone(&workspace.trust),
        );
        let walled = walled.clone();
        let work = move || {
            if !kept {
                walled.remove_directory();
            }
            // A command may have shut its own workspace, to keep others from looking.
            let opened = directory.open_up().map_err(RunError::Workspace);
            let settled = check_trust(&trust, &directory, on_change)?;
            opened.map(|()| (report, settled))
        };
        self.inner.files(work).await
    }

    /// Trusts what is in a workspace, unless that was done before. Whoever changes files without a
    /// command does this first.
    pub async fn record_trust(&self, workspace: &WorkspaceHandle) -> Result<(), RunError> {
        self.inner.record_trust(workspace).await
    }

    /// Puts back, or reports, what would run later outside the walls and has changed since the last
    /// look. Trust must have been taken.
    pub async fn check_trust(&self, workspace: &WorkspaceHandle) -> Result<TrustReport, RunError> {
        if workspace.is_unchanged() {
            return Ok(TrustReport::default());
        }
        let (directory, trust) = (
            workspace.directory.try_clone().map_err(RunError::Workspace)?,
            Arc::clone(&workspace.trust),
        );
        let on_change = self.on_change();
        self.inner.files(move || check_trust(&trust, &directory, on_change)).await
    }

    /// Tells what would run later, outside the walls, if a file were written with these contents, if
    /// anything would and the policy does not leave it. Of contents that nobody has looked at, the worst
    /// is assumed. Trust must have been taken.
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

    /// Tells the same of something that is to be moved.
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

    /// Returns what the policy does about files that would run later.
    fn on_change(&self) -> OnChange {
        match self.policy().trust {
            carrel_config::Trust::Restore => OnChange::Restore,
            carrel_config::Trust::Report => OnChange::Report,
        }
    }
}

fn trusted(trust: &OnceLock<Mutex<TrustBaseline>>) -> MutexGuard<'_, TrustBaseline> {
    let trust = trust.get().expect("trust is taken before anything is changed");
    sync::lock(trust)
}

fn check_trust(
    trust: &OnceLock<Mutex<TrustBaseline>>,
    directory: &Root,
    on_change: OnChange,
) -> Result<TrustReport, RunError> {
    let settled = trusted(trust).check(directory, on_change).map_err(RunError::Workspace)?;
    if directory.top().is_ok_and(|top| top.links == 0) {
        return Err(RunError::Gone { workspace: directory.path().to_owned() });
    }
    match (on_change, settled.overfull) {
        (OnChange::Restore, Some(path)) => Err(RunError::Overfull { path }),
        (_, overfull) => Ok(TrustReport { overfull, ..settled }),
    }
}

/// Looks where control groups can be made.
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

impl Inner {
    /// Returns the spawner for the next cell: the preforked process once, then the usual one.
    pub(crate) fn cell_spawner(&self) -> std::io::Result<Spawner> {
        let preforked = sync::lock(&self.preforked).take();
        preforked
            .filter(|spawner| !spawner.is_gone())
            .map_or_else(|| self.options.spawner.get(), Ok)
    }

    /// Returns where control groups are made, which is found out when the first is.
    pub(crate) fn cgroups(&self) -> &Cgroups {
        self.cgroups.get_or_init(|| find_cgroups(&self.options.disabled))
    }

    pub(crate) fn programs(&self) -> impl Iterator<Item = &Path> {
        self.options.policy.path.iter().chain(&self.toolchains.path).map(PathBuf::as_path)
    }

    /// Works on files, on a thread that may wait for the disk where others wait for this one.
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

    /// Gives the processor to the process that makes the namespaces of the only command's cell: the cell
    /// waits for it, and has still a root directory to build when nobody waits for this process yet.
    fn let_the_cell_begin(&self) {
        let makes_namespaces = matches!(
            self.options.sandbox,
            SandboxMode::Enforced(TierChoice::Auto | TierChoice::Only(Tier::Full))
        );
        if makes_namespaces && matches!(self.options.mode, RunnerMode::SingleCommand(_)) {
            std::thread::sleep(WHILE_NAMESPACES_ARE_MADE);
        }
    }

    /// Trusts what is in a workspace before its first command.
    async fn record_trust(&self, workspace: &WorkspaceHandle) -> Result<(), RunError> {
        if workspace.trust.get().is_some() {
            return Ok(());
        }
        let directory = workspace.directory.try_clone().map_err(RunError::Workspace)?;
        let take = move || TrustBaseline::capture(&directory).map_err(RunError::Workspace);
        let taken = self.files(take).await?;
        // If several commands are the first, none starts before one of them has got here.
        let _ = workspace.trust.set(Mutex::new(taken));
        Ok(())
    }

    /// Makes the group that holds the limits of a command, if there can be one.
    pub(crate) fn make_group(&self, limits: &ResourceLimits) -> Result<Option<Cgroup>, RunError> {
        if self.cgroups().grouped() == CgroupLimits::default() {
            return Ok(None);
        }
        Ok(Some(self.cgroups().make(limits.memory, limits.processes)?))
    }

    /// Describes a command to the spawner.
    fn spec(
        &self,
        workspace: &WorkspaceHandle,
        request: &RunRequest,
        walled: &Walled,
        network: Network,
        group: Option<&Cgroup>,
    ) -> Result<CommandSpec, RunError> {
        let limits = request.limits(&self.options.policy);
        let directory = walled.directory(workspace, &request.directory)?;
        let mut environment = self.environment(workspace, request, walled, network);
        let argv = words(workspace, request, &mut environment);
        Ok(CommandSpec {
            environment,
            output: request.output,
            groups: group.map_or(Ok(Vec::new()), Cgroup::doors)?,
            held: workspace.held()?,
            limits: limits::per_process(&limits, workspace, walled, self.cgroups().grouped()),
            watch: limits::together(&limits, workspace, walled, self.cgroups().grouped()),
            deadline: Some(limits.wall),
            ..CommandSpec::starting_in(argv, directory)
        })
    }
}

/// Returns what is started for a request. A shell is left out where it would only hand on the line.
fn words(
    workspace: &WorkspaceHandle,
    request: &RunRequest,
    environment: &mut Vec<(OsString, OsString)>,
) -> Vec<OsString> {
    let CommandForm::Line(line) = &request.form else { return request.form.argv() };
    let directory = request.real_directory(workspace);
    let Some(direct) = directory.and_then(|place| direct_exec::direct(line, &place, environment))
    else {
        return request.form.argv();
    };
    environment.retain(|(name, _)| direct.variables.iter().all(|(added, _)| added != name));
    environment.extend(direct.variables);
    direct.argv
}

/// Runs the command while the quota is watched.
async fn run_watched(
    workspace: &WorkspaceHandle,
    walled: &Walled,
    spec: CommandSpec,
    request: &RunRequest,
    started: Option<oneshot::Sender<Started>>,
    cancel: &CancellationToken,
) -> Result<(Outcome, Option<Overrun>), RunError> {
    let stop = cancel.child_token();
    let running = walled.spawner().spawn(spec).await?;
    // Whoever asked may have given up; then the command is cancelled as well.
    started.map(|asked| asked.send(running.started()));
    let Some(watcher) = watcher(workspace, walled)? else {
        return Ok((request.wait(running, &stop).await, None));
    };
    let (over, killer) = (CancellationToken::new(), running.killer());
    let watching = async {
        let found = watcher.watch(&over).await;
        if !matches!(found, Ok(None)) {
            // Whatever writes must end: it is too much, or nobody knows how much it is. Asking first
            // would let it write on.
            killer.kill();
        }
        found
    };
    let waiting = async {
        let outcome = request.wait(running, &stop).await;
        over.cancel();
        outcome
    };
    let (outcome, found) = tokio::join!(waiting, watching);
    Ok((outcome, found?))
}

/// Returns what watches the workspace while a command runs, its temporary files included.
fn watcher(workspace: &WorkspaceHandle, walled: &Walled) -> Result<Option<QuotaWatcher>, Error> {
    Ok(workspace.quota_watcher()?.map(|watcher| match walled.scratch() {
        Some(scratch) => watcher.with(scratch),
        None => watcher,
    }))
}

/// Where an administrator's Carrel keeps what it remembers: commands that run as others could not
/// find their temporary files below the home of an administrator.
const SYSTEM_STATE: &str = "/var/lib";

/// Shorter than namespaces take, and much shorter than the rest of a cell.
const WHILE_NAMESPACES_ARE_MADE: Duration = Duration::from_micros(300);

/// Returns the directory for what Carrel remembers for a user.
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

/// Tells whether Carrel ended the command because of its quota.
pub(crate) fn stopped_for_quota(outcome: &Outcome, overrun: Option<&Overrun>) -> bool {
    overrun.is_some() || outcome.excess == Some(ExceededLimit::Disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_that_was_removed_is_not_taken_for_an_overfull_one() {
        let workspace = tempfile::tempdir().unwrap();
        let directory = Root::open(workspace.path()).unwrap();
        let trust = OnceLock::from(Mutex::new(TrustBaseline::capture(&directory).unwrap()));
        workspace.close().unwrap();
        for on_change in [OnChange::Restore, OnChange::Report] {
            let settled = check_trust(&trust, &directory, on_change);
            assert!(matches!(settled, Err(RunError::Gone { .. })), "{settled:?}");
        }
    }
}
