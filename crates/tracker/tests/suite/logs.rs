//! What is written down while something happens.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

#[derive(Clone, Default)]
struct Ear(Arc<Mutex<String>>);

impl<S: tracing::Subscriber> Layer<S> for Ear {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        event.record(&mut Pen(&mut self.0.lock().unwrap()));
    }
}

struct Pen<'a>(&'a mut String);

impl Visit for Pen<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

/// Returns what comes of something, and what was written down meanwhile.
pub(crate) async fn heard<T>(happens: impl Future<Output = T>) -> (T, String) {
    let ear = Ear::default();
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(ear.clone()));
    let came = happens.await;
    drop(guard);
    let said = ear.0.lock().unwrap().clone();
    (came, said)
}
