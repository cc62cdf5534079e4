//! What is said about a step that is over.

use std::time::Duration;

use carrel_domain::{Code, TaskStatus, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::step::Step;

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StepStatus {
    /// It did its work.
    Completed,
    /// It was refused, or a command ended with an error.
    Failed,
    /// Its time was over.
    TimedOut,
    /// Somebody asked for the task's end.
    Cancelled,
    /// An earlier step had failed.
    Skipped,
}

/// What is said about a step.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StepReport {
    pub(super) step: usize,
    pub(super) action: String,
    pub(super) status: StepStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) started_at: Option<Timestamp>,
    pub(super) duration_ms: u64,
    /// Why it did not do its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "name")]
    pub(super) code: Option<Code>,
    /// What came out.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) result: Value,
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands it over like this"
)]
fn name<S: serde::Serializer>(code: &Option<Code>, serializer: S) -> Result<S::Ok, S::Error> {
    match code {
        Some(code) => serializer.serialize_str(code.name()),
        None => serializer.serialize_none(),
    }
}

impl StepReport {
    pub(super) fn skipped(number: usize, step: &Step) -> Self {
        Self {
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
        &self,
        step: &Step,
        out_of_time: bool,
        timeout: Duration,
    ) -> Option<(TaskStatus, String)> {
        let number = self.step;
        let because = || self.error.clone().unwrap_or_else(|| format!("{} failed", step.word));
        match self.status {
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
}
