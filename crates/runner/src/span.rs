//! The trace span of a command. Arguments, output and paths are private and not part of it.

use carrel_domain::Coded as _;
use carrel_exec::ExitStatus;
use tracing::Span;
use tracing::field::{Empty, display};

use crate::completed::{Completed, LimitReached};
use crate::error::RunError;
use crate::request::RunRequest;

pub(crate) fn begin(request: &RunRequest) -> Span {
    carrel_traces::span!(
        request.under,
        "command",
        otel.status_code = Empty,
        process.exit.code = Empty,
        carrel.command.signal = Empty,
        carrel.command.timed_out = Empty,
        carrel.command.limit = Empty,
        carrel.command.denials = Empty,
        carrel.sandbox.tier = Empty,
        "error.type" = Empty,
    )
}

/// Records the result. A command that exits with an error is not an error of the span.
pub(crate) fn end(span: &Span, ran: &Result<Completed, RunError>) {
    if span.is_disabled() {
        return;
    }
    match ran {
        Ok(completed) => {
            match completed.outcome.end {
                ExitStatus::Exited(code) => span.record("process.exit.code", code),
                ExitStatus::Signaled(signal) => span.record("carrel.command.signal", signal),
                ExitStatus::Lost => span.record("otel.status_code", "ERROR"),
            };
            span.record("carrel.command.timed_out", completed.outcome.timed_out());
            span.record("carrel.command.denials", completed.denials.len());
            span.record("carrel.command.limit", completed.limit.map(name));
            span.record("carrel.sandbox.tier", completed.sandbox.tier.map(display));
        }
        Err(error) => {
            span.record("otel.status_code", "ERROR");
            span.record("error.type", error.code().name());
        }
    }
}

fn name(limit: LimitReached) -> &'static str {
    match limit {
        LimitReached::Memory => "memory",
        LimitReached::Processes => "processes",
        LimitReached::Cpu => "cpu",
        LimitReached::FileSize => "file_size",
        LimitReached::Quota => "quota",
    }
}
