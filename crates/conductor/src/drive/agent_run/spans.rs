//! Trace spans of a run and of its turns. They carry no prompts and no answers.

use carrel_agent::AgentFailure;
use tracing::Span;
use tracing::field::Empty;

use crate::drive::journal;
use crate::effect::Dispatch;
use crate::event::RunEnd;

pub(super) fn run(start: &Dispatch) -> Span {
    carrel_traces::span!(
        None,
        "run",
        otel.status_code = Empty,
        carrel.issue.id = start.issue.id.0,
        carrel.issue.identifier = start.issue.identifier,
        carrel.run.id = start.run.0,
        carrel.run.attempt = start.attempt.unwrap_or(0),
        carrel.run.outcome = Empty,
    )
}

pub(super) fn run_ended(span: &Span, end: &RunEnd) {
    span.record("carrel.run.outcome", journal::outcome(end).0);
    if *end != RunEnd::Completed {
        span.record("otel.status_code", "ERROR");
    }
}

/// Creates the span of a turn, by the semantic conventions for generative AI.
pub(super) fn turn(number: u64) -> Span {
    carrel_traces::span!(
        carrel_traces::current_context(),
        "invoke_agent",
        otel.status_code = Empty,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.conversation.id = Empty,
        carrel.turn.number = number,
        "error.type" = Empty,
    )
}

/// Records the result of a turn and its conversation.
pub(super) fn turn_ended(span: &Span, thread: Option<&str>, ended: &Result<String, AgentFailure>) {
    span.record("gen_ai.conversation.id", thread);
    if let Err(failure) = ended {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", failure.kind.name());
    }
}
