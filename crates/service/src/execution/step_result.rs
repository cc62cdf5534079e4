//! The results of steps, and their meaning for the task.

use std::time::Duration;

use carrel_domain::TaskStatus;
use carrel_wire::{StepResult, StepStatus};
use serde_json::Value;

use crate::step::Step;

pub(super) fn skipped(number: usize, step: &Step) -> StepResult {
    StepResult {
        step: number,
        action: step.action_name.clone(),
        status: StepStatus::Skipped,
        exit_code: None,
        started_at: None,
        duration_ms: 0,
        error: None,
        code: None,
        result: Value::Null,
    }
}

/// Returns the status and error that a step gives its task; `None` if the task continues.
/// `deadline_passed` tells a step that used up the task's time from one that used up its own.
pub(super) fn verdict(
    result: &StepResult,
    step: &Step,
    deadline_passed: bool,
    timeout: Duration,
) -> Option<(TaskStatus, String)> {
    let number = result.step;
    let reason = || result.error.clone().unwrap_or_else(|| format!("{} failed", step.action_name));
    match result.status {
        StepStatus::Completed | StepStatus::Skipped => None,
        StepStatus::TimedOut if deadline_passed => {
            let seconds = timeout.as_secs();
            Some((TaskStatus::TimedOut, format!("Task timed out after {seconds}s")))
        }
        StepStatus::Cancelled => Some((TaskStatus::Cancelled, "cancelled".to_owned())),
        StepStatus::Failed | StepStatus::TimedOut => {
            Some((TaskStatus::Failed, format!("step {number}: {}", reason())))
        }
    }
}
