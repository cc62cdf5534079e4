//! What is said about a step that is over.

use std::time::Duration;

use carrel_domain::TaskStatus;
use carrel_wire::{StepResult, StepStatus};
use serde_json::Value;

use crate::step::Step;

pub(super) fn skipped(number: usize, step: &Step) -> StepResult {
    StepResult {
        step: number,
        action: step.word.clone(),
        status: StepStatus::Skipped,
        exit_code: None,
        started_at: None,
        duration_ms: 0,
        error: None,
        code: None,
        result: Value::Null,
    }
}

/// Returns what the step means for the task; none if the task goes on.
pub(super) fn verdict(
    result: &StepResult,
    step: &Step,
    out_of_time: bool,
    timeout: Duration,
) -> Option<(TaskStatus, String)> {
    let number = result.step;
    let because = || result.error.clone().unwrap_or_else(|| format!("{} failed", step.word));
    match result.status {
        StepStatus::Completed | StepStatus::Skipped => None,
        StepStatus::TimedOut if out_of_time => {
            let seconds = timeout.as_secs();
            Some((TaskStatus::TimedOut, format!("Task timed out after {seconds}s")))
        }
        StepStatus::Cancelled => Some((TaskStatus::Cancelled, "cancelled".to_owned())),
        StepStatus::Failed | StepStatus::TimedOut => {
            Some((TaskStatus::Failed, format!("step {number}: {}", because())))
        }
    }
}
