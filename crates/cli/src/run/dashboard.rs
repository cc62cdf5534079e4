//! The terminal dashboard of `carrel run`.
//!
//! A write to a terminal blocks while the terminal is stopped (Ctrl-S) or its reader is gone. A thread of
//! its own therefore paints, fed by a channel of one state: while a frame blocks, later states are dropped,
//! and neither the conductor nor the end of the process waits. Log lines go to the log file meanwhile.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use carrel_conductor::State;
use carrel_conductor::dashboard::{Painter, render};
use carrel_conductor::drive::Handle;
use carrel_conductor::snapshot::Snapshot;
use carrel_config::{Environment, ObservabilityConfig};
use carrel_domain::{Clock as _, SystemClock};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::logging;

/// Columns and lines of a terminal that does not report its size.
const DEFAULT_SIZE: (usize, usize) = (120, 40);

/// The value of `TERM` for terminals without cursor control.
const DUMB: &str = "dumb";

/// Bounds the wait for a terminal to accept the sequence that restores it.
const RESTORE_TIMEOUT: Duration = Duration::from_millis(500);

/// Returns whether stdout is a terminal with cursor control.
pub(crate) fn is_supported(environment: &Environment) -> bool {
    io::stdout().is_terminal() && environment.get_str("TERM").is_some_and(|term| term != DUMB)
}

/// The painting thread. Dropping it restores the terminal.
struct Dashboard {
    /// Holds one state; more are dropped.
    states: Option<SyncSender<Arc<State>>>,
    /// Disconnects when the terminal has been restored.
    restored: Receiver<()>,
}

impl Dashboard {
    fn open(colours: bool) -> io::Result<Self> {
        let (states, waiting) = sync_channel(1);
        let (done, restored) = sync_channel(0);
        thread::Builder::new().name("dashboard".to_owned()).spawn(move || {
            paint(&waiting, Painter::new(colours));
            drop(done);
        })?;
        logging::keep_off_the_terminal(true);
        Ok(Self { states: Some(states), restored })
    }

    fn show(&self, handle: &Handle) {
        if let Some(states) = &self.states {
            // A full channel is fine: a newer state follows.
            let _ = states.try_send(handle.state());
        }
    }
}

impl Drop for Dashboard {
    /// Restores the terminal. One that does not accept that gets no log lines either, since their writer
    /// would block.
    fn drop(&mut self) {
        self.states = None;
        if self.restored.recv_timeout(RESTORE_TIMEOUT) == Err(RecvTimeoutError::Disconnected) {
            logging::keep_off_the_terminal(false);
        }
    }
}

fn paint(states: &Receiver<Arc<State>>, mut painter: Painter) {
    write(painter.open());
    while let Ok(state) = states.recv() {
        let size = size();
        let snapshot = Snapshot::of(&state, SystemClock.now());
        let frame = render(&snapshot, size.0, size.1);
        write(&painter.paint(&frame, size));
    }
    write(painter.close());
}

/// Restores the terminal before an immediate exit, unless the terminal blocks for [`RESTORE_TIMEOUT`].
pub(crate) fn restore() {
    if !logging::is_off_the_terminal() {
        return;
    }
    let (done, over) = channel::<()>();
    let spawned = thread::Builder::new().spawn(move || {
        write(Painter::new(false).close());
        drop(done);
    });
    if spawned.is_ok() {
        let _ = over.recv_timeout(RESTORE_TIMEOUT);
    }
}

/// Shows the dashboard whenever the workflow file enables it, until `stop` is cancelled.
pub(super) async fn show(mut handle: Handle, environment: &Environment, stop: CancellationToken) {
    let colours = environment.get("NO_COLOR").is_none_or(std::ffi::OsStr::is_empty);
    loop {
        if settings(&handle).is_some() {
            let dashboard = match Dashboard::open(colours) {
                Ok(dashboard) => dashboard,
                Err(error) => return warn!(%error, "The terminal shows lines alone"),
            };
            draw(&dashboard, &mut handle, &stop).await;
            // It may wait for the terminal.
            let _ = tokio::task::spawn_blocking(move || drop(dashboard)).await;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            goes_on = handle.changed() => if !goes_on { return },
        }
    }
}

async fn draw(dashboard: &Dashboard, handle: &mut Handle, stop: &CancellationToken) {
    while let Some(settings) = settings(handle) {
        dashboard.show(handle);
        let earliest = Instant::now() + settings.render_interval;
        let waited = timeout(settings.refresh.max(Duration::from_millis(1)), handle.changed());
        tokio::select! {
            () = stop.cancelled() => return,
            changed = waited => if changed == Ok(false) { return },
        }
        sleep_until(earliest).await;
    }
}

/// Returns the settings of the dashboard if it is enabled.
fn settings(handle: &Handle) -> Option<ObservabilityConfig> {
    let workflow = handle.workflow();
    let settings = workflow.config.conductor.as_ref().map(|config| config.observability);
    settings.filter(|settings| settings.dashboard_enabled)
}

fn size() -> (usize, usize) {
    let reported = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let reported = reported.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    reported.map_or(DEFAULT_SIZE, |size| (size.ws_col.into(), size.ws_row.into()))
}

fn write(text: &str) {
    // A terminal that is gone shows nothing, which is no reason to stop working.
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
