//! Traces over OTLP, where the variables of OpenTelemetry ask for them.
//!
//! Spans are sent by a thread of their own with a runtime of its own, so that a collector which is slow, or
//! away, takes nothing from the work.

mod export;
mod outage;
mod pairs;
mod settings;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use carrel_config::{Environment, environment as variable};
use carrel_traces::{SpanLayer, SpanQueue};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::export::Exporter;
use self::settings::{Settings, Wish};
use crate::arguments::Command;

/// How long the program stays to send what is left when it is over.
const FAREWELL: Duration = Duration::from_secs(2);

/// Traces that are to be, if any are asked for.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    wish: Wish,
    queue: SpanQueue,
}

/// Traces that are being sent.
#[derive(Debug)]
pub(crate) struct Sending {
    stop: CancellationToken,
    over: mpsc::Receiver<()>,
}

impl Traces {
    /// Looks whether a command that may have traces is to have them.
    pub(crate) fn of(command: &Command, environment: &Environment) -> Self {
        let is_relay = environment.get(variable::CARREL_TOOLS).is_some();
        match command {
            Command::Serve(_) | Command::Worker(_) | Command::Run(_) => {}
            Command::Mcp(_) if !is_relay => {}
            _ => return Self::default(),
        }
        Self { wish: Wish::read(environment), queue: SpanQueue::default() }
    }

    /// Returns what collects spans; nothing if none are wanted.
    pub(crate) fn layer(&self) -> Option<SpanLayer> {
        let settings = self.wish.settings.as_ref()?;
        Some(SpanLayer::new(settings.sampler, self.queue.clone()))
    }

    /// Says what is wrong with the variables, and begins to send.
    pub(crate) fn start(self) -> Option<Sending> {
        for doubt in &self.wish.doubts {
            warn!("{doubt}");
        }
        let settings = self.wish.settings?;
        match begin(settings, self.queue) {
            Ok(sending) => Some(sending),
            Err(error) => {
                warn!(%error, "no traces are sent: their thread could not be started");
                None
            }
        }
    }
}

fn begin(settings: Settings, queue: SpanQueue) -> std::io::Result<Sending> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stop = CancellationToken::new();
    let (told, over) = mpsc::channel();
    let exporter = Exporter::new(settings, queue, stop.clone());
    thread::Builder::new().name("traces".to_owned()).spawn(move || {
        runtime.block_on(exporter.run());
        runtime.shutdown_background();
        // Nobody waits any more if it took too long.
        let _ = told.send(());
    })?;
    carrel_traces::enable();
    Ok(Sending { stop, over })
}

impl Sending {
    /// Sends what is left, as long as that does not take long.
    pub(crate) fn end(self) {
        self.stop.cancel();
        let _ = self.over.recv_timeout(FAREWELL);
    }
}
