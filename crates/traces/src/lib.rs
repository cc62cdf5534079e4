//! Spans of the work that Carrel does, and their encoding for OTLP. No I/O.
//!
//! Work begins a [`span!`] under an explicit parent, a [`TraceParent`] that came with the request, the
//! task or the call. The parent is a value and not the surrounding scope, because work moves between
//! tasks, threads and processes: a step of a queued task belongs to the request that submitted it, which
//! another process may have answered hours ago.
//!
//! [`SpanLayer`], a layer of the subscriber, gives spans their ids, asks the [`Sampler`] and puts
//! finished ones into a [`SpanQueue`]. The queue is bounded and never waits; spans that find it full are
//! dropped and counted. An exporter takes batches out, encodes them with [`otlp`] and sends them (crate
//! `cli`).
//!
//! Without the layer nothing listens at the level of spans, so beginning one costs one comparison.
//! Some fields of a span are not attributes: `otel.parent`, `otel.name` (replaces the static name),
//! `otel.kind` and `otel.status_code`.
#![forbid(unsafe_code)]

mod export_counts;
mod finished_span;
pub mod otlp;
mod sampler;
mod span_layer;
mod span_queue;
mod trace_parent;

pub use export_counts::{ExportCounts, enable, export_counts, record_dropped, record_exported};
pub use finished_span::{AttributeValue, FinishedSpan, SpanKind};
pub use sampler::{InvalidSampler, Sampler};
pub use span_layer::{SpanLayer, current_context, is_carrel_span};
pub use span_queue::{MAX_BATCH, MAX_WAITING, SpanQueue};
pub use trace_parent::{InvalidTraceParent, TraceParent};

#[doc(hidden)]
pub use tracing;

/// The target of Carrel's spans, which tells them from spans of libraries.
pub const TARGET: &str = "carrel::traces";

/// Begins a span under a parent, given as an `Option<TraceParent>`; without one it begins a trace. The
/// parent may have ended already.
#[macro_export]
macro_rules! span {
    ($under:expr, $name:literal, $($fields:tt)*) => {
        $crate::tracing::span!(
            target: $crate::TARGET,
            parent: None,
            $crate::tracing::Level::TRACE,
            $name,
            otel.parent = Option::<$crate::TraceParent>::map($under, $crate::tracing::field::display),
            $($fields)*
        )
    };
}
