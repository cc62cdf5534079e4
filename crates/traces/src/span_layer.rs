//! The subscriber layer that turns `tracing` spans into [`FinishedSpan`]s.
//!
//! The state of an open span lives in the extensions of the subscriber's registry, so the layer has
//! no map of its own and no lock beyond the registry's. A span is exported when it closes, also if
//! children that it began are still open: they carry its id and arrive later.

use std::time::{Instant, SystemTime};

use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::finished_span::{FinishedSpan, SpanFields};
use crate::sampler::Sampler;
use crate::span_queue::SpanQueue;
use crate::trace_parent::{TraceParent, new_span_id, new_trace_id};
use crate::{TARGET, export_counts};

/// Assigns ids to spans and queues the sampled ones when they close.
#[derive(Debug)]
pub struct SpanLayer {
    sampler: Sampler,
    queue: SpanQueue,
}

struct OpenSpan {
    context: TraceParent,
    started_at: SystemTime,
    /// The duration is measured by the monotonic clock, since the other may be set back meanwhile.
    started: Instant,
    fields: SpanFields,
}

impl SpanLayer {
    /// Creates a layer that puts sampled spans into `queue`.
    pub fn new(sampler: Sampler, queue: SpanQueue) -> Self {
        Self { sampler, queue }
    }
}

/// Returns whether a span or event is one for [`SpanLayer`]. The layer must be installed with this as
/// its filter: it treats every span that reaches it as one of Carrel's.
pub fn is_carrel_span(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target() == TARGET
}

/// Returns the context of the innermost Carrel span that is entered here, to be the parent of other
/// spans or the `traceparent` of a request.
pub fn current_context() -> Option<TraceParent> {
    if !export_counts::is_enabled() {
        return None;
    }
    let current = tracing::Span::current();
    let context = current.with_subscriber(|(id, subscriber)| {
        let span = subscriber.downcast_ref::<Registry>()?.span(id)?;
        // Spans of libraries may lie in between.
        span.scope().find_map(|span| Some(span.extensions().get::<OpenSpan>()?.context))
    });
    context.flatten()
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = SpanFields::default();
        attributes.record(&mut fields);
        let trace = fields.parent.map_or_else(new_trace_id, |parent| parent.trace);
        let parent_sampled = fields.parent.map(|parent| parent.sampled);
        let sampled = self.sampler.samples(trace, parent_sampled);
        let context = TraceParent { trace, span: new_span_id(), sampled };
        let started_at = SystemTime::now();
        let started = Instant::now();
        span.extensions_mut().insert(OpenSpan { context, started_at, started, fields });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>() {
            values.record(&mut open.fields);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(open) = span.extensions_mut().remove::<OpenSpan>() else { return };
        let OpenSpan { context, started_at, started, fields } = open;
        if !context.sampled {
            return;
        }
        self.queue.push(FinishedSpan {
            context,
            parent: fields.parent.map(|parent| parent.span),
            name: fields.name.unwrap_or_else(|| span.name().to_owned()),
            kind: fields.kind,
            started_at,
            duration: started.elapsed(),
            failed: fields.failed,
            attributes: fields.attributes,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finished_span::{AttributeValue, SpanKind};
    use crate::span;
    use crate::span_queue::{MAX_BATCH, MAX_WAITING};
    use pretty_assertions::assert_eq;
    use tracing::field::Empty;
    use tracing_subscriber::filter::filter_fn;
    use tracing_subscriber::layer::SubscriberExt as _;

    const REMOTE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn collected(sampler: Sampler, work: impl FnOnce()) -> SpanQueue {
        let queue = SpanQueue::default();
        let layer = SpanLayer::new(sampler, queue.clone()).with_filter(filter_fn(is_carrel_span));
        export_counts::enable();
        tracing::subscriber::with_default(Registry::default().with(layer), work);
        queue
    }

    #[test]
    fn a_finished_span_has_the_fields_recorded_until_its_end() {
        let queue = collected(Sampler::default(), || {
            let span = span!(
                REMOTE.parse().ok(),
                "work",
                otel.name = %format!("work {}", 1),
                otel.kind = "consumer",
                otel.status_code = Empty,
                text = "ä".repeat(200),
                count = 7_u64,
                part = 0.5,
                flag = true,
                later = Empty,
                never = Empty,
                absent = None::<&str>,
            );
            span.record("later", -1);
            span.record("later", -2);
            span.record("otel.status_code", "ERROR");
        });
        let [span] = &queue.take()[..] else { panic!("one span") };
        let remote: TraceParent = REMOTE.parse().unwrap();
        assert_eq!(span.context.trace, remote.trace);
        assert_ne!(span.context.span, remote.span);
        assert_eq!((span.parent, span.context.sampled), (Some(remote.span), true));
        assert_eq!(
            (span.name.as_str(), span.kind, span.failed),
            ("work 1", SpanKind::Consumer, true)
        );
        assert_eq!(
            span.attributes,
            [
                ("text", AttributeValue::Text("ä".repeat(128))),
                ("count", AttributeValue::Number(7)),
                ("part", AttributeValue::Float(0.5)),
                ("flag", AttributeValue::Flag(true)),
                ("later", AttributeValue::Number(-2)),
            ]
        );
    }

    #[test]
    fn a_child_finds_its_parent_from_inside_and_may_outlive_it() {
        let queue = collected(Sampler::default(), || {
            assert_eq!(current_context(), None);
            let outer = span!(None, "outer", a = 1);
            let within = outer.in_scope(|| {
                let library = tracing::info_span!("library");
                library.in_scope(current_context)
            });
            let inner = span!(within, "inner", a = 1);
            drop(outer);
            drop(inner);
        });
        let [outer, inner] = &queue.take()[..] else { panic!("two spans, the first one first") };
        assert_eq!((outer.name.as_str(), inner.name.as_str()), ("outer", "inner"));
        assert_eq!(
            (inner.context.trace, inner.parent),
            (outer.context.trace, Some(outer.context.span))
        );
        assert_eq!(outer.parent, None);
    }

    #[test]
    fn an_unsampled_decision_is_passed_on() {
        let unsampled = REMOTE.replace("-01", "-00");
        let work = || {
            let span = span!(unsampled.parse().ok(), "work", a = 1);
            let within = span.in_scope(current_context).unwrap();
            assert!(!within.sampled && within.to_string().ends_with("-00"));
            drop(span!(Some(within), "inner", a = 1));
            // A trace that begins here is decided here.
            drop(span!(None, "own", a = 1));
        };
        let names: Vec<_> =
            collected(Sampler::default(), work).take().into_iter().map(|span| span.name).collect();
        assert_eq!(names, ["own"]);
        let off = Sampler::named("always_off", None).unwrap();
        assert_eq!(collected(off, work).take(), []);
    }

    #[test]
    fn a_full_queue_drops_spans_and_counts_them() {
        let before = export_counts::export_counts().map_or(0, |counts| counts.dropped);
        let queue = collected(Sampler::default(), || {
            for _ in 0..MAX_WAITING + 3 {
                drop(span!(None, "work", a = 1));
            }
        });
        assert_eq!(export_counts::export_counts().unwrap().dropped - before, 3);
        let taken = std::iter::repeat_with(|| queue.take().len()).take_while(|count| *count > 0);
        assert_eq!(taken.collect::<Vec<_>>(), [MAX_BATCH; MAX_WAITING / MAX_BATCH]);
    }
}
