//! What there is to say about a command that is over.

use std::time::Duration;

use carrel_domain::ResourceLimits;
use carrel_exec::{CgroupReport, ExceededLimit, ExitStatus, Outcome, Output};
use carrel_sandbox::{Denial, DenialContext, Guarantee};
use serde::Serialize;

use crate::artifacts::Artifacts;
use crate::limits::whole;
use crate::quota_watcher::Overrun;
use crate::request::RunRequest;
use crate::runner::{Inner, stopped_for_quota};
use crate::sandbox_cell::Walled;
use crate::trust::TrustReport;
use crate::workspace_handle::WorkspaceHandle;

/// The signals that say which limit a process ran into, and what a shell makes of them.
const KILL_SIGNAL: i32 = 9;
const CPU_SIGNAL: i32 = 24;
const FILE_SIZE_SIGNAL: i32 = 25;
const SHELL_OFFSET: i32 = 128;

/// Everything there is to say about a command that is over.
#[derive(Clone, Debug)]
pub struct Completed {
    /// How it ended, what it printed and what it cost.
    pub outcome: Outcome,
    /// The limit that it ran into, if it did.
    pub limit: Option<LimitReached>,
    /// The files that it left for the caller.
    pub artifacts: Artifacts,
    /// What it was refused, and what would allow it.
    pub denials: Vec<Denial>,
    /// What it changed that would run later outside the walls.
    pub trust: TrustReport,
    /// The walls around it.
    pub sandbox: SandboxReport,
}

/// A limit that a command ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitReached {
    /// The memory of all its processes, or of one.
    Memory,
    /// The number of its processes.
    Processes,
    /// Time on a processor.
    Cpu,
    /// The size of a file.
    FileSize,
    /// The quota of the workspace.
    Quota,
}

/// The walls around a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxReport {
    /// The tier; none if there were no walls.
    pub tier: Option<carrel_domain::Tier>,
    /// What was promised, and whether it held.
    pub guarantees: Vec<Guarantee>,
}

/// What is known about a command when it is over.
pub(crate) struct Over {
    pub(crate) outcome: Outcome,
    pub(crate) report: CgroupReport,
    pub(crate) overrun: Option<Overrun>,
    pub(crate) trust: TrustReport,
    pub(crate) artifacts: Artifacts,
}

impl SandboxReport {
    /// No walls: nothing is promised.
    pub fn none() -> Self {
        Self { tier: None, guarantees: carrel_sandbox::without_sandbox() }
    }
}

impl Inner {
    pub(crate) fn complete(
        &self,
        workspace: &WorkspaceHandle,
        request: &RunRequest,
        walled: &Walled,
        over: Over,
    ) -> Completed {
        let Over { mut outcome, report, overrun, trust, artifacts } = over;
        if let Some(peak) = report.peak_memory {
            outcome.cost.peak_memory = peak;
        }
        // No file may grow beyond what the quota leaves: then that is the limit.
        let ResourceLimits { file_size: largest, cpu, .. } = request.limits(&self.options.policy);
        let of_files =
            if whole(workspace) < largest { LimitReached::Quota } else { LimitReached::FileSize };
        let limit = limit_reached(&outcome, report, overrun.as_ref(), of_files, cpu);
        Completed {
            denials: self.denials(workspace, request, walled, &outcome),
            sandbox: self.sandbox_report(walled),
            limit,
            trust,
            artifacts,
            outcome,
        }
    }

    fn denials(
        &self,
        workspace: &WorkspaceHandle,
        request: &RunRequest,
        walled: &Walled,
        outcome: &Outcome,
    ) -> Vec<Denial> {
        let Some(plan) = walled.plan() else { return Vec::new() };
        let situation = DenialContext {
            directory: &request.directory,
            root: workspace.workspace_root(),
            limits: request.limits(&self.options.policy),
            cgroup: self.cgroups().grouped(),
        };
        // With both streams in one, or a terminal, messages are among the rest.
        let messages = match request.output {
            Output::Separate { .. } => &outcome.stderr,
            Output::Combined(_) | Output::Terminal { .. } => &outcome.stdout,
        };
        let messages = messages.to_text(usize::MAX);
        carrel_sandbox::explain_denials(plan, &outcome.refused, &messages, situation)
    }

    /// Returns the walls of a place where commands run.
    pub(crate) fn sandbox_report(&self, walled: &Walled) -> SandboxReport {
        let Some(plan) = walled.plan() else { return SandboxReport::none() };
        let guarantees = carrel_sandbox::guarantees(plan, self.cgroups().grouped());
        SandboxReport { tier: Some(plan.tier), guarantees }
    }
}

fn limit_reached(
    outcome: &Outcome,
    report: CgroupReport,
    overrun: Option<&Overrun>,
    of_files: LimitReached,
    cpu: Duration,
) -> Option<LimitReached> {
    let ended_by = |signal| {
        outcome.end == ExitStatus::Signaled(signal)
            || outcome.end == ExitStatus::Exited(SHELL_OFFSET + signal)
    };
    match () {
        () if stopped_for_quota(outcome, overrun) => Some(LimitReached::Quota),
        () if report.out_of_memory || outcome.excess == Some(ExceededLimit::Memory) => {
            Some(LimitReached::Memory)
        }
        () if report.out_of_processes || outcome.excess == Some(ExceededLimit::Processes) => {
            Some(LimitReached::Processes)
        }
        () if ended_by(FILE_SIZE_SIGNAL) => Some(of_files),
        () if ended_by(CPU_SIGNAL) || (ended_by(KILL_SIGNAL) && used_up(outcome, cpu)) => {
            Some(LimitReached::Cpu)
        }
        () => None,
    }
}

/// Tells whether a command that was killed had used up its time: a process that ignores the signal
/// for that is killed a second later.
fn used_up(outcome: &Outcome, cpu: Duration) -> bool {
    outcome.cost.user + outcome.cost.system >= cpu
}
