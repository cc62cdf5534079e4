//! The result of a command: outcome, limit reached, denials, trust check, sandbox.

use std::time::Duration;

use carrel_domain::ResourceLimits;
use carrel_exec::{CgroupReport, ExceededLimit, ExitStatus, Outcome, Output};
use carrel_sandbox::{Denial, DenialContext, Guarantee};
use serde::Serialize;

use crate::artifacts::Artifacts;
use crate::limits::quota_bytes;
use crate::quota_watcher::Overrun;
use crate::request::RunRequest;
use crate::runner::{RunnerInner, stopped_for_quota};
use crate::sandbox_cell::ExecutionSite;
use crate::trust::TrustReport;
use crate::workspace_handle::WorkspaceHandle;

/// Signals by which the kernel ends a process at a limit. A shell reports them as 128 plus the number.
const KILL_SIGNAL: i32 = 9;
const CPU_SIGNAL: i32 = 24;
const FILE_SIZE_SIGNAL: i32 = 25;
const SHELL_OFFSET: i32 = 128;

/// A command that ran.
#[derive(Clone, Debug)]
pub struct Completed {
    /// Its exit status, output and resource usage.
    pub outcome: Outcome,
    /// The limit that ended it or that it was refused more of, if any.
    pub limit: Option<LimitReached>,
    /// The files that it left in the artifact directory.
    pub artifacts: Artifacts,
    /// Operations that the sandbox denied, each with what would allow it.
    pub denials: Vec<Denial>,
    /// Changes of files that would run later outside the sandbox.
    pub trust: TrustReport,
    /// The sandbox around it.
    pub sandbox: SandboxReport,
}

/// A limit that a command reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitReached {
    /// The memory of all its processes, or of one.
    Memory,
    /// The number of its processes.
    Processes,
    /// CPU time.
    Cpu,
    /// The size of a file.
    FileSize,
    /// The quota of the workspace.
    Quota,
}

/// The sandbox around a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxReport {
    /// The tier; none without a sandbox.
    pub tier: Option<carrel_domain::Tier>,
    /// The guarantees, each with whether it holds.
    pub guarantees: Vec<Guarantee>,
}

/// The parts of a result, before they are interpreted.
pub(crate) struct RawResult {
    pub(crate) outcome: Outcome,
    pub(crate) report: CgroupReport,
    pub(crate) overrun: Option<Overrun>,
    pub(crate) trust: TrustReport,
    pub(crate) artifacts: Artifacts,
}

impl SandboxReport {
    /// Returns the report of a command without a sandbox, in which no guarantee holds.
    pub fn none() -> Self {
        Self { tier: None, guarantees: carrel_sandbox::without_sandbox() }
    }
}

impl RunnerInner {
    pub(crate) fn complete(
        &self,
        workspace: &WorkspaceHandle,
        request: &RunRequest,
        site: &ExecutionSite,
        over: RawResult,
    ) -> Completed {
        let RawResult { mut outcome, report, overrun, trust, artifacts } = over;
        if let Some(peak) = report.peak_memory {
            outcome.cost.peak_memory = peak;
        }
        // The limit for files is at most the quota; then a file of that size has reached the quota.
        let ResourceLimits { file_size: largest, cpu, .. } = request.limits(&self.options.policy);
        let of_files = if quota_bytes(workspace) < largest {
            LimitReached::Quota
        } else {
            LimitReached::FileSize
        };
        let limit = limit_reached(&outcome, report, overrun.as_ref(), of_files, cpu);
        Completed {
            denials: self.denials(workspace, request, site, &outcome),
            sandbox: self.sandbox_report(site),
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
        site: &ExecutionSite,
        outcome: &Outcome,
    ) -> Vec<Denial> {
        let Some(plan) = site.plan() else { return Vec::new() };
        let situation = DenialContext {
            directory: &request.directory,
            root: workspace.workspace_root(),
            limits: request.limits(&self.options.policy),
            cgroup: self.cgroups().enforced(),
        };
        // With combined output or a terminal, messages are part of stdout.
        let messages = match request.output {
            Output::Separate { .. } => &outcome.stderr,
            Output::Combined(_) | Output::Terminal { .. } => &outcome.stdout,
        };
        let messages = messages.to_text(usize::MAX);
        carrel_sandbox::explain_denials(plan, &outcome.refused, &messages, situation)
    }

    pub(crate) fn sandbox_report(&self, site: &ExecutionSite) -> SandboxReport {
        let Some(plan) = site.plan() else { return SandboxReport::none() };
        let guarantees = carrel_sandbox::guarantees(plan, self.cgroups().enforced());
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
    if stopped_for_quota(outcome, overrun) {
        Some(LimitReached::Quota)
    } else if report.out_of_memory || outcome.excess == Some(ExceededLimit::Memory) {
        Some(LimitReached::Memory)
    } else if report.out_of_processes || outcome.excess == Some(ExceededLimit::Processes) {
        Some(LimitReached::Processes)
    } else if ended_by(FILE_SIZE_SIGNAL) {
        Some(of_files)
    } else if ended_by(CPU_SIGNAL) || (ended_by(KILL_SIGNAL) && used_up(outcome, cpu)) {
        Some(LimitReached::Cpu)
    } else {
        None
    }
}

/// Returns whether a killed command had used up its CPU time. A process that ignores `SIGXCPU` is killed a
/// second later.
fn used_up(outcome: &Outcome, cpu: Duration) -> bool {
    outcome.cost.user + outcome.cost.system >= cpu
}
