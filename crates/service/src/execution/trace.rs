//! The trace spans of an attempt and of its steps. They carry ids, numbers and statuses, never
//! commands, contents or output.

use carrel_domain::{Code, TaskStatus};
use carrel_store::Task;
use carrel_wire::{StepResult, StepStatus};
use tracing::Span;
use tracing::field::Empty;

use super::Ending;
use crate::request::trace_parent;
use crate::step::Step;

/// Starts the span of an attempt, as a child of the request that submitted the task.
pub(super) fn task(task: &Task, attempt: u32) -> Span {
    carrel_traces::span!(
        trace_parent(task),
        "task",
        otel.kind = "consumer",
        otel.status_code = Empty,
        carrel.task.id = %task.id,
        carrel.task.attempt = attempt,
        carrel.task.status = Empty,
        carrel.workspace.id = %task.workspace,
    )
}

pub(super) fn task_ended(span: &Span, ending: &Ending) {
    let (status, succeeded) = match ending {
        Ending::Finished { status, .. } => (status.as_str(), *status == TaskStatus::Completed),
        Ending::Retry { .. } => ("queued", false),
        Ending::Lost => ("lost", false),
    };
    span.record("carrel.task.status", status);
    if !succeeded {
        span.record("otel.status_code", "ERROR");
    }
}

pub(super) fn step(number: usize, step: &Step) -> Span {
    carrel_traces::span!(
        carrel_traces::current_context(),
        "step",
        otel.name = %format_args!("step {}", step.action_name),
        otel.status_code = Empty,
        carrel.step.number = number,
        carrel.step.action = step.action_name,
        carrel.step.status = Empty,
        process.exit.code = Empty,
        "error.type" = Empty,
    )
}

pub(super) fn step_ended(span: &Span, report: &StepResult) {
    span.record("carrel.step.status", report.status.as_str());
    span.record("process.exit.code", report.exit_code);
    span.record("error.type", report.code.map(Code::name));
    if report.status != StepStatus::Completed {
        span.record("otel.status_code", "ERROR");
    }
}
