//! Spans: what took how long, on whose behalf, and how OTLP writes that down.
//!
//! Whoever does something begins a [`span!`] under the one it is done for. [`Collect`], a layer of the
//! subscriber, gives spans their ids, decides which are kept and puts those that are over into a [`Queue`]
//! that never waits. What takes them out writes them with [`otlp`] and sends them.
//!
//! Where no such layer is installed, the level of a span is one that nobody listens to, and beginning one
//! costs a comparison.
//!
//! Some fields of a span are no attributes: `otel.parent`, `otel.name` (in place of the fixed name),
//! `otel.kind` and `otel.status_code`.
#![forbid(unsafe_code)]

mod collect;
mod context;
mod counts;
pub mod otlp;
mod queue;
mod sampler;
mod span;

pub use collect::{Collect, here, is_ours};
pub use context::{InvalidTraceParent, TraceParent};
pub use counts::{Counts, counts, lost, sent, switch_on};
pub use queue::{MAX_BATCH, MAX_WAITING, Queue};
pub use sampler::{InvalidSampler, Sampler};
pub use span::{Kind, Span, Value};

#[doc(hidden)]
pub use tracing;

/// What tells spans of ours from those of libraries.
pub const TARGET: &str = "carrel::traces";

/// Begins a span under another, given as an `Option<TraceParent>`. The other may be over already.
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
