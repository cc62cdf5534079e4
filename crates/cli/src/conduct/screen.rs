//! What a terminal shows while issues are worked off.
//!
//! A terminal that somebody has stopped, or that nobody reads, takes nothing more. So a thread of its own
//! writes to it; when that is held up, frames are left out, and nothing else waits.

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

/// The size of a terminal that does not tell.
const USUAL_SIZE: (usize, usize) = (120, 40);

/// How the terminals are called that show lines and nothing else.
const DUMB: &str = "dumb";

/// How long a terminal has to take what gives it back.
const PATIENCE: Duration = Duration::from_millis(500);

/// Tells whether there is a terminal that can show more than lines.
pub(crate) fn is_there(environment: &Environment) -> bool {
    io::stdout().is_terminal() && environment.get_str("TERM").is_some_and(|term| term != DUMB)
}

/// A terminal that shows how things stand, until it is dropped.
struct Screen {
    /// Holds one look. While it waits, later ones are left out.
    looks: Option<SyncSender<Arc<State>>>,
    /// Ends when the terminal was given back.
    given_back: Receiver<()>,
}

impl Screen {
    fn open(colours: bool) -> io::Result<Self> {
        let (looks, waiting) = sync_channel(1);
        let (done, given_back) = sync_channel(0);
        thread::Builder::new().name("screen".to_owned()).spawn(move || {
            paint(&waiting, Painter::new(colours));
            drop(done);
        })?;
        logging::keep_off_the_terminal(true);
        Ok(Self { looks: Some(looks), given_back })
    }

    fn show(&self, handle: &Handle) {
        if let Some(looks) = &self.looks {
            // There is a newer one soon.
            let _ = looks.try_send(handle.state());
        }
    }
}

impl Drop for Screen {
    /// Gives the terminal back. One that does not take it gets no lines either, since whoever wrote them
    /// would wait.
    fn drop(&mut self) {
        self.looks = None;
        if self.given_back.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Disconnected) {
            logging::keep_off_the_terminal(false);
        }
    }
}

/// Shows each look, until there are no more.
fn paint(looks: &Receiver<Arc<State>>, mut painter: Painter) {
    write(painter.open());
    while let Ok(state) = looks.recv() {
        let (size, snapshot) = (size(), Snapshot::of(&state, SystemClock.now()));
        let frame = render(&snapshot, size.0, size.1);
        write(&painter.paint(&frame, size));
    }
    write(painter.close());
}

/// Gives the terminal back before everything ends at once, if it takes that.
pub(super) fn give_back() {
    if logging::is_off_the_terminal() {
        within_patience(|| write(Painter::new(false).close()));
    }
}

/// Does something that may be held up, and goes on without it then.
fn within_patience(work: impl FnOnce() + Send + 'static) {
    let (done, over) = channel::<()>();
    let spawned = thread::Builder::new().spawn(move || {
        work();
        drop(done);
    });
    if spawned.is_ok() {
        let _ = over.recv_timeout(PATIENCE);
    }
}

/// Shows how things stand whenever the workflow file wants that, until it is told to stop.
pub(super) async fn show(mut handle: Handle, environment: &Environment, stop: CancellationToken) {
    let colours = environment.get("NO_COLOR").is_none_or(std::ffi::OsStr::is_empty);
    loop {
        if settings(&handle).is_some() {
            let screen = match Screen::open(colours) {
                Ok(screen) => screen,
                Err(error) => return warn!(%error, "The terminal shows lines alone"),
            };
            draw(&screen, &mut handle, &stop).await;
            // It may wait for the terminal.
            let _ = tokio::task::spawn_blocking(move || drop(screen)).await;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            goes_on = handle.changed() => if !goes_on { return },
        }
    }
}

async fn draw(screen: &Screen, handle: &mut Handle, stop: &CancellationToken) {
    while let Some(settings) = settings(handle) {
        screen.show(handle);
        let earliest = Instant::now() + settings.render_interval;
        let waited = timeout(settings.refresh.max(Duration::from_millis(1)), handle.changed());
        tokio::select! {
            () = stop.cancelled() => return,
            changed = waited => if changed == Ok(false) { return },
        }
        sleep_until(earliest).await;
    }
}

/// Returns how a dashboard is shown, if one is wanted.
fn settings(handle: &Handle) -> Option<ObservabilityConfig> {
    let workflow = handle.workflow();
    let settings = workflow.config.conductor.as_ref().map(|config| config.observability);
    settings.filter(|settings| settings.dashboard_enabled)
}

/// Returns how many columns and lines there are.
fn size() -> (usize, usize) {
    let told = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let told = told.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    told.map_or(USUAL_SIZE, |size| (size.ws_col.into(), size.ws_row.into()))
}

fn write(text: &str) {
    // A terminal that is gone shows nothing, which is no reason to stop working.
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
