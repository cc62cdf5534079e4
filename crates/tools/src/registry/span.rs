//! The trace span of a call. It names the tool and never holds arguments or replies.

use carrel_domain::Code;
use tracing::Span;
use tracing::field::Empty;

use crate::tool_context::CallOptions;

pub(super) fn begin(tool: &'static str, options: &CallOptions) -> Span {
    carrel_traces::span!(
        options.under,
        "execute_tool",
        otel.name = %format_args!("execute_tool {tool}"),
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        carrel.interface = options.interface.name(),
        "error.type" = Empty,
    )
}

/// Marks the span of a failed call. A call about all workspaces that failed in each has no single code.
pub(super) fn record_error(span: &Span, code: Option<Code>) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", code.map(Code::name));
}
