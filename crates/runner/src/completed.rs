//! The result of a command: outcome, limit reached, denials, trust check, sandbox.

use carrel_domain::WorkspaceKey;
use carrel_exec::{Captured, CgroupReport, ExceededLimit, ExitStatus, Outcome, Output};
use carrel_sandbox::{Certainty, Denial, DenialContext, Guarantee};
use serde::Serialize;

use crate::artifacts::Artifacts;
use crate::command_run::CommandRun;
use crate::request::MessageSource;
use crate::runner::RunnerInner;
use crate::sandbox_cell::ExecutionSite;
use crate::trust::TrustReport;

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
    /// The forks for which its workspace is frozen, so that it could only read.
    pub frozen: Vec<WorkspaceKey>,
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
    pub(crate) overran: bool,
    pub(crate) trust: TrustReport,
    pub(crate) artifacts: Artifacts,
}

impl CommandRun<'_> {
    pub(crate) fn complete(&self, over: RawResult) -> Completed {
        let RawResult { mut outcome, report, overran, trust, artifacts } = over;
        if let Some(peak) = report.peak_memory {
            outcome.cost.peak_memory = peak;
        }
        Completed {
            denials: self.denials(&outcome, &artifacts),
            sandbox: self.inner.sandbox_report(self.site),
            limit: self.limit_reached(&outcome, report, overran),
            trust,
            artifacts,
            outcome,
            frozen: self.claim.frozen.clone(),
        }
    }

    fn denials(&self, outcome: &Outcome, artifacts: &Artifacts) -> Vec<Denial> {
        let Some(plan) = self.site.plan() else { return Vec::new() };
        let situation = DenialContext {
            directory: &self.request.directory,
            root: self.workspace.workspace_root(),
            limits: self.limits,
            network_cap: self.network.cap,
            cgroup: self.inner.cgroups().enforced(),
        };
        // With combined output or a terminal, messages are part of stdout.
        let text = |captured: &Captured| captured.to_text(usize::MAX);
        let messages = match (&self.request.output, self.request.messages) {
            (Output::Separate { .. }, MessageSource::Stderr) => text(&outcome.stderr),
            (Output::Separate { .. }, MessageSource::AllOutput) => {
                format!("{}\n{}", text(&outcome.stdout), text(&outcome.stderr))
            }
            (Output::Combined(_) | Output::Terminal { .. }, _) => text(&outcome.stdout),
        };
        let explain =
            |text: &str| carrel_sandbox::explain_denials(plan, &outcome.refused, text, situation);
        let denials = explain(&messages);
        let is_explained = denials.iter().any(|denial| denial.source == Certainty::Inferred);
        if self.request.messages == MessageSource::Stderr || is_explained {
            return denials;
        }
        // Some runners print no messages of failures, and have them in the report only.
        let reports = artifacts.files.iter().map(|file| String::from_utf8_lossy(&file.contents));
        explain(&reports.collect::<Vec<_>>().join("\n"))
    }

    fn limit_reached(
        &self,
        outcome: &Outcome,
        report: CgroupReport,
        overran: bool,
    ) -> Option<LimitReached> {
        let ended_by = |signal| {
            outcome.end == ExitStatus::Signaled(signal)
                || outcome.end == ExitStatus::Exited(SHELL_OFFSET + signal)
        };
        // A process that ignores `SIGXCPU` is killed a second later.
        let used_up_cpu = outcome.cost.user + outcome.cost.system >= self.limits.cpu;
        if overran || outcome.excess == Some(ExceededLimit::Disk) {
            Some(LimitReached::Quota)
        } else if report.out_of_memory || outcome.excess == Some(ExceededLimit::Memory) {
            Some(LimitReached::Memory)
        } else if report.out_of_processes || outcome.excess == Some(ExceededLimit::Processes) {
            Some(LimitReached::Processes)
        } else if ended_by(FILE_SIZE_SIGNAL) && self.quota_bytes() < self.limits.file_size {
            // The limit for files is at most the quota; then a file of that size has reached the quota.
            Some(LimitReached::Quota)
        } else if ended_by(FILE_SIZE_SIGNAL) {
            Some(LimitReached::FileSize)
        } else if ended_by(CPU_SIGNAL) || (ended_by(KILL_SIGNAL) && used_up_cpu) {
            Some(LimitReached::Cpu)
        } else {
            None
        }
    }
}

impl RunnerInner {
    pub(crate) fn sandbox_report(&self, site: &ExecutionSite) -> SandboxReport {
        let guarantees = site.plan().map_or_else(carrel_sandbox::without_sandbox, |plan| {
            carrel_sandbox::guarantees(plan, self.cgroups().enforced())
        });
        SandboxReport { tier: site.plan().map(|plan| plan.tier), guarantees }
    }
}
