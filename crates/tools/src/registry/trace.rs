//! The span of a call. It has the name of the tool, and neither arguments nor answers.

use tracing::Span;
use tracing::field::Empty;

use crate::response::ToolResponse;
use crate::tool_context::CallOptions;

/// Begins the span of a call.
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

/// Says how the call ended.
pub(super) fn end(span: &Span, answer: &ToolResponse) {
    if answer.is_error {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", answer.structured["error"]["code"].as_str());
    }
}
