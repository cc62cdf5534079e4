//! One run of a command in its site: built, watched, cleaned up after.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use carrel_domain::{GrantedNetwork, ResourceLimits, WorkspaceAccess};
use carrel_exec::{Cgroup, CgroupReport, CommandSpec, Outcome, Started};
use carrel_workspace::{Error, Exceeded};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::change_claim::ChangeClaim;
use crate::direct_exec;
use crate::error::RunError;
use crate::quota_watcher::QuotaWatcher;
use crate::request::{CommandClass, CommandForm, RunRequest};
use crate::runner::{RunnerInner, check_trust};
use crate::sandbox_cell::ExecutionSite;
use crate::trust::TrustReport;
use crate::workspace_handle::WorkspaceHandle;

/// A request that was checked, with its site, network and limits.
pub(crate) struct CommandRun<'a> {
    pub(crate) inner: &'a RunnerInner,
    pub(crate) workspace: &'a WorkspaceHandle,
    pub(crate) request: &'a RunRequest,
    pub(crate) site: &'a ExecutionSite,
    pub(crate) network: GrantedNetwork,
    pub(crate) limits: ResourceLimits,
    pub(crate) claim: ChangeClaim,
}

impl CommandRun<'_> {
    pub(crate) fn spec(&self, group: Option<&Cgroup>) -> Result<CommandSpec, RunError> {
        let directory = self.site.directory(self.workspace, &self.request.directory)?;
        let mut environment = self.environment();
        let argv = self.argv(&mut environment);
        Ok(CommandSpec {
            environment,
            output: self.request.output,
            cgroups: group.map_or(Ok(Vec::new()), Cgroup::join_files)?,
            held: self.held()?,
            limits: self.limits_of_each_process(),
            sampled: self.sampled_limits(),
            deadline: Some(self.limits.wall),
            ..CommandSpec::starting_in(argv, directory)
        })
    }

    /// Returns descriptors that the command holds until its last process has ended.
    fn held(&self) -> Result<Vec<OwnedFd>, RunError> {
        let mut held = self.workspace.held()?;
        held.extend(self.claim.lock.as_ref().map(OwnedFd::try_clone).transpose()?);
        Ok(held)
    }

    /// Returns the argument list, without a shell where that would only start the program.
    fn argv(&self, environment: &mut Vec<(OsString, OsString)>) -> Vec<OsString> {
        let CommandForm::Line(line) = &self.request.form else { return self.request.form.argv() };
        let directory = self.request.real_directory(self.workspace);
        let Some(direct) =
            directory.and_then(|directory| direct_exec::direct(line, &directory, environment))
        else {
            return self.request.form.argv();
        };
        environment.retain(|(name, _)| direct.variables.iter().all(|(added, _)| added != name));
        environment.extend(direct.variables);
        direct.argv
    }

    /// Runs the command while its quota is watched.
    pub(crate) async fn run_watched(
        &self,
        spec: CommandSpec,
        started: Option<oneshot::Sender<Started>>,
        cancel: &CancellationToken,
    ) -> Result<(Outcome, Option<Exceeded>), RunError> {
        let stop = cancel.child_token();
        let running = self.site.spawner().spawn(spec).await?;
        // The receiver may be gone; then the command is cancelled too.
        started.map(|asked| asked.send(running.started()));
        let Some(watcher) = self.quota_watcher()? else {
            return Ok((self.request.wait(running, &stop).await, None));
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
            let outcome = self.request.wait(running, &stop).await;
            ended.cancel();
            outcome
        };
        let (outcome, found) = tokio::join!(waiting, watching);
        Ok((outcome, found?))
    }

    /// Returns the watcher of the workspace, its home and its temporary files.
    fn quota_watcher(&self) -> Result<Option<QuotaWatcher>, Error> {
        let Some(watcher) = self.workspace.quota_watcher()? else { return Ok(None) };
        let watcher = match self.request.limits.class {
            CommandClass::Once => watcher,
            CommandClass::Session => watcher.at_the_pace_of_a_session(),
        };
        Ok(Some(self.site.counted().into_iter().fold(watcher, QuotaWatcher::with)))
    }

    /// Returns whether this is a session that the sandbox keeps from changing the workspace.
    fn is_session_that_reads(&self) -> bool {
        self.site.plan().is_some()
            && self.request.access == WorkspaceAccess::ReadOnly
            && self.request.limits.class == CommandClass::Session
    }

    /// Removes the command's temporary files, reads its control group and runs the trust check.
    pub(crate) async fn clean_up(
        &self,
        group: Option<Cgroup>,
    ) -> Result<(CgroupReport, TrustReport), RunError> {
        let on_change = self.request.trust.unwrap_or(self.inner.options.policy.trust);
        let report = group.map(|mut group| group.report()).unwrap_or_default();
        let kept = self.site.keep_directory();
        if self.is_session_that_reads() {
            // Nothing in the tree is its doing, and what others changed in its time is not undone at its end.
            if !kept {
                let site = self.site.clone();
                let work = move || {
                    site.remove_directory();
                    Ok(())
                };
                self.inner.files(work).await?;
            }
            return Ok((report, TrustReport::default()));
        }
        // With at most 64 stamps to compare, switching threads would take longer. Otherwise the check
        // costs about 0.1 ms more.
        if kept && self.workspace.is_unchanged() {
            return Ok((report, TrustReport::default()));
        }
        let directory = self.workspace.directory.try_clone().map_err(RunError::Workspace)?;
        let trust = Arc::clone(&self.workspace.trust);
        let site = self.site.clone();
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
}
