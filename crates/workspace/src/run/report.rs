//! What there is to say about a command that is over.

use std::time::Duration;

use carrel_domain::ResourceLimits;
use carrel_exec::{End, Excess, GroupReport, Outcome, Output};
use carrel_sandbox::{Denial, DenialContext, Guarantee};
use serde::Serialize;

use super::artifacts::Artifacts;
use super::cells::Walled;
use super::desk::Desk;
use super::limits::whole;
use super::request::RunRequest;
use super::{Inner, stopped_for_quota};
use crate::trust::Settled;
use crate::watch::Overrun;

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
    pub trust: Settled,
    /// The walls around it.
    pub walls: Walls,
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
pub struct Walls {
    /// The tier; none if there were no walls.
    pub tier: Option<carrel_domain::Tier>,
    /// What was promised, and whether it held.
    pub guarantees: Vec<Guarantee>,
}

/// What is known about a command when it is over.
pub(super) struct Over {
    pub(super) outcome: Outcome,
    pub(super) report: GroupReport,
    pub(super) overrun: Option<Overrun>,
    pub(super) trust: Settled,
    pub(super) artifacts: Artifacts,
}

impl Walls {
    /// No walls: nothing is promised.
    pub fn none() -> Self {
        Self { tier: None, guarantees: carrel_sandbox::without_sandbox() }
    }
}

impl Inner {
    pub(super) fn complete(
        &self,
        desk: &Desk,
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
            if whole(desk) < largest { LimitReached::Quota } else { LimitReached::FileSize };
        let limit = limit_reached(&outcome, report, overrun.as_ref(), of_files, cpu);
        Completed {
            denials: self.denials(desk, request, walled, &outcome),
            walls: self.walls(walled),
            limit,
            trust,
            artifacts,
            outcome,
        }
    }

    fn denials(
        &self,
        desk: &Desk,
        request: &RunRequest,
        walled: &Walled,
        outcome: &Outcome,
    ) -> Vec<Denial> {
        let Some(plan) = walled.plan() else { return Vec::new() };
        let situation = DenialContext {
            directory: &request.directory,
            root: desk.root(),
            limits: request.limits(&self.options.policy),
            cgroup: self.groups().grouped(),
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
    pub(super) fn walls(&self, walled: &Walled) -> Walls {
        let Some(plan) = walled.plan() else { return Walls::none() };
        let guarantees = carrel_sandbox::guarantees(plan, self.groups().grouped());
        Walls { tier: Some(plan.tier), guarantees }
    }
}

fn limit_reached(
    outcome: &Outcome,
    report: GroupReport,
    overrun: Option<&Overrun>,
    of_files: LimitReached,
    cpu: Duration,
) -> Option<LimitReached> {
    let ended_by = |signal| {
        outcome.end == End::Signaled(signal) || outcome.end == End::Exited(SHELL_OFFSET + signal)
    };
    match () {
        () if stopped_for_quota(outcome, overrun) => Some(LimitReached::Quota),
        () if report.out_of_memory || outcome.excess == Some(Excess::Memory) => {
            Some(LimitReached::Memory)
        }
        () if report.out_of_processes || outcome.excess == Some(Excess::Processes) => {
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
