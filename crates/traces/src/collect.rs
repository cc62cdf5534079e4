//! The layer that makes spans out of what is told to the subscriber.

use std::time::{Instant, SystemTime};

use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::context::{TraceParent, new_span, new_trace};
use crate::queue::Queue;
use crate::sampler::Sampler;
use crate::span::{Fields, Span};
use crate::{TARGET, counts};

/// Gives spans their ids, and puts those that are over and kept into a queue.
#[derive(Debug)]
pub struct Collect {
    sampler: Sampler,
    queue: Queue,
}

/// A span that is not over.
struct Open {
    context: TraceParent,
    began: (SystemTime, Instant),
    fields: Fields,
}

impl Collect {
    /// Makes the layer.
    pub fn new(sampler: Sampler, queue: Queue) -> Self {
        Self { sampler, queue }
    }
}

/// Tells whether something is a span for this layer, which may be asked of nothing else.
pub fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target() == TARGET
}

/// Returns the span that this is a part of, if there is one.
pub fn here() -> Option<TraceParent> {
    if !counts::is_on() {
        return None;
    }
    let current = tracing::Span::current();
    let found = current.with_subscriber(|(id, subscriber)| {
        let span = subscriber.downcast_ref::<Registry>()?.span(id)?;
        // What a library does meanwhile is in between.
        span.scope().find_map(|span| Some(span.extensions().get::<Open>()?.context))
    });
    found.flatten()
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collect {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let trace = fields.parent.map_or_else(new_trace, |parent| parent.trace);
        let decided = fields.parent.map(|parent| parent.sampled);
        let sampled = self.sampler.keeps(trace, decided);
        let context = TraceParent { trace, span: new_span(), sampled };
        let began = (SystemTime::now(), Instant::now());
        span.extensions_mut().insert(Open { context, began, fields });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            values.record(&mut open.fields);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(Open { context, began, fields }) = span.extensions_mut().remove::<Open>() else {
            return;
        };
        if !context.sampled {
            return;
        }
        self.queue.push(Span {
            context,
            parent: fields.parent.map(|parent| parent.span),
            name: fields.name.unwrap_or_else(|| span.name().to_owned()),
            kind: fields.kind,
            began: began.0,
            took: began.1.elapsed(),
            failed: fields.failed,
            attributes: fields.attributes,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{MAX_BATCH, MAX_WAITING};
    use crate::span;
    use crate::span::{Kind, Value};
    use pretty_assertions::assert_eq;
    use tracing::field::Empty;
    use tracing_subscriber::filter::filter_fn;
    use tracing_subscriber::layer::SubscriberExt as _;

    const ELSEWHERE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn collected(sampler: Sampler, work: impl FnOnce()) -> Queue {
        let queue = Queue::default();
        let layer = Collect::new(sampler, queue.clone()).with_filter(filter_fn(is_ours));
        counts::switch_on();
        tracing::subscriber::with_default(Registry::default().with(layer), work);
        queue
    }

    #[test]
    fn a_span_says_what_was_known_when_it_was_over() {
        let queue = collected(Sampler::default(), || {
            let span = span!(
                ELSEWHERE.parse().ok(),
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
        let elsewhere: TraceParent = ELSEWHERE.parse().unwrap();
        assert_eq!(span.context.trace, elsewhere.trace);
        assert_ne!(span.context.span, elsewhere.span);
        assert_eq!((span.parent, span.context.sampled), (Some(elsewhere.span), true));
        assert_eq!((span.name.as_str(), span.kind, span.failed), ("work 1", Kind::Consumer, true));
        assert_eq!(
            span.attributes,
            [
                ("text", Value::Text("ä".repeat(128))),
                ("count", Value::Number(7)),
                ("part", Value::Float(0.5)),
                ("flag", Value::Flag(true)),
                ("later", Value::Number(-2)),
            ]
        );
    }

    #[test]
    fn what_is_done_for_a_span_is_found_from_inside_and_may_outlive_it() {
        let queue = collected(Sampler::default(), || {
            assert_eq!(here(), None);
            let outer = span!(None, "outer", a = 1);
            let within = outer.in_scope(|| {
                let library = tracing::info_span!("library");
                library.in_scope(here)
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
    fn what_is_not_kept_is_passed_on_as_such() {
        let unsampled = ELSEWHERE.replace("-01", "-00");
        let work = || {
            let span = span!(unsampled.parse().ok(), "work", a = 1);
            let within = span.in_scope(here).unwrap();
            assert!(!within.sampled && within.to_string().ends_with("-00"));
            drop(span!(Some(within), "inner", a = 1));
            // A trace that begins here is another matter.
            drop(span!(None, "own", a = 1));
        };
        let names: Vec<_> =
            collected(Sampler::default(), work).take().into_iter().map(|span| span.name).collect();
        assert_eq!(names, ["own"]);
        let off = Sampler::named("always_off", None).unwrap();
        assert_eq!(collected(off, work).take(), []);
    }

    #[test]
    fn a_full_queue_loses_spans_and_counts_them() {
        let before = counts::counts().map_or(0, |counts| counts.lost);
        let queue = collected(Sampler::default(), || {
            for _ in 0..MAX_WAITING + 3 {
                drop(span!(None, "work", a = 1));
            }
        });
        assert_eq!(counts::counts().unwrap().lost - before, 3);
        let taken = std::iter::repeat_with(|| queue.take().len()).take_while(|count| *count > 0);
        assert_eq!(taken.collect::<Vec<_>>(), [MAX_BATCH; MAX_WAITING / MAX_BATCH]);
    }
}
