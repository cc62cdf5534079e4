//! The spans of an attempt at a task and of its steps, without what they were told and what came out.

use carrel_domain::{Code, TaskStatus};
use carrel_store::Task;
use carrel_wire::{StepResult, StepStatus};
use tracing::Span;
use tracing::field::Empty;

use super::Ending;
use crate::request::submitted_under;
use crate::step::Step;

/// Begins the span of an attempt, as a part of the request that submitted the task.
pub(super) fn task(task: &Task, attempt: u32) -> Span {
    carrel_traces::span!(
        submitted_under(task),
        "task",
        otel.kind = "consumer",
        otel.status_code = Empty,
        carrel.task.id = %task.id,
        carrel.task.attempt = attempt,
        carrel.task.status = Empty,
        carrel.workspace.id = %task.workspace,
    )
}

/// Says how an attempt ended.
pub(super) fn task_ended(span: &Span, ending: &Ending) {
    let (status, well) = match ending {
        Ending::Over { status, .. } => (status.as_str(), *status == TaskStatus::Completed),
        Ending::Again { .. } => ("queued", false),
        Ending::Lost => ("lost", false),
    };
    span.record("carrel.task.status", status);
    if !well {
        span.record("otel.status_code", "ERROR");
    }
}

/// Begins the span of a step.
pub(super) fn step(number: usize, step: &Step) -> Span {
    carrel_traces::span!(
        carrel_traces::current_context(),
        "step",
        otel.name = %format_args!("step {}", step.word),
        otel.status_code = Empty,
        carrel.step.number = number,
        carrel.step.action = step.word,
        carrel.step.status = Empty,
        process.exit.code = Empty,
        "error.type" = Empty,
    )
}

/// Says how a step ended.
pub(super) fn step_ended(span: &Span, report: &StepResult) {
    span.record("carrel.step.status", report.status.as_str());
    span.record("process.exit.code", report.exit_code);
    span.record("error.type", report.code.map(Code::name));
    if report.status != StepStatus::Completed {
        span.record("otel.status_code", "ERROR");
    }
}
