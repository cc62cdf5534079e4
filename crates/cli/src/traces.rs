//! Traces over OTLP, where the variables of OpenTelemetry ask for them.
//!
//! Spans are sent by a thread of their own with a runtime of its own, so that a collector which is slow, or
//! away, takes nothing from the work.

mod export;
mod key_values;
mod outage;
mod settings;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use carrel_config::{Environment, environment as variable};
use carrel_traces::{SpanLayer, SpanQueue};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::export::Exporter;
use self::settings::{ParsedSettings, Settings};
use crate::arguments::Command;

/// Bounds the time for sending the last spans at exit.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The trace settings of this process and the queue between the subscriber and the exporter.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    parsed: ParsedSettings,
    queue: SpanQueue,
}

#[derive(Debug)]
pub(crate) struct ExportThread {
    stop: CancellationToken,
    over: mpsc::Receiver<()>,
}

impl Traces {
    /// Reads the settings for commands that have traces; others have none.
    pub(crate) fn of(command: &Command, environment: &Environment) -> Self {
        let is_relay = environment.get(variable::CARREL_TOOLS).is_some();
        match command {
            Command::Serve(_) | Command::Worker(_) | Command::Run(_) => {}
            Command::Mcp(_) if !is_relay => {}
            _ => return Self::default(),
        }
        Self { parsed: ParsedSettings::read(environment), queue: SpanQueue::default() }
    }

    /// Returns the layer that collects spans; none if traces are off.
    pub(crate) fn layer(&self) -> Option<SpanLayer> {
        let settings = self.parsed.settings.as_ref()?;
        Some(SpanLayer::new(settings.sampler, self.queue.clone()))
    }

    /// Logs warnings about the variables and starts the exporter.
    pub(crate) fn start(self) -> Option<ExportThread> {
        for warning in &self.parsed.warnings {
            warn!("{warning}");
        }
        let settings = self.parsed.settings?;
        match spawn(settings, self.queue) {
            Ok(thread) => Some(thread),
            Err(error) => {
                warn!(%error, "no traces are sent: their thread could not be started");
                None
            }
        }
    }
}

fn spawn(settings: Settings, queue: SpanQueue) -> std::io::Result<ExportThread> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stop = CancellationToken::new();
    let (done, over) = mpsc::channel();
    let exporter = Exporter::new(settings, queue, stop.clone());
    thread::Builder::new().name("traces".to_owned()).spawn(move || {
        runtime.block_on(exporter.run());
        runtime.shutdown_background();
        // The receiver is gone if this took longer than the timeout.
        let _ = done.send(());
    })?;
    carrel_traces::enable();
    Ok(ExportThread { stop, over })
}

impl ExportThread {
    /// Sends the remaining spans, within [`FLUSH_TIMEOUT`].
    pub(crate) fn finish(self) {
        self.stop.cancel();
        let _ = self.over.recv_timeout(FLUSH_TIMEOUT);
    }
}
