//! What a terminal shows while issues are worked off.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use carrel_conductor::dashboard::{Painter, render};
use carrel_conductor::drive::Handle;
use carrel_conductor::snapshot::Snapshot;
use carrel_config::{Environment, ObservabilityConfig};
use carrel_domain::{Clock as _, SystemClock};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::logging;

/// The size of a terminal that does not tell.
const USUAL_SIZE: (usize, usize) = (120, 40);

/// How the terminals are called that show lines and nothing else.
const DUMB: &str = "dumb";

/// Tells whether there is a terminal that can show more than lines.
pub(crate) fn is_there(environment: &Environment) -> bool {
    io::stdout().is_terminal() && environment.get_str("TERM").is_some_and(|term| term != DUMB)
}

/// A terminal that shows how things stand, until it is dropped.
struct Screen {
    painter: Painter,
}

impl Screen {
    fn open(colours: bool) -> Self {
        let painter = Painter::new(colours);
        logging::keep_off_the_terminal(true);
        write(painter.open());
        Self { painter }
    }

    fn show(&mut self, handle: &Handle) {
        let size = size();
        let snapshot = Snapshot::of(&handle.state(), SystemClock.now());
        let frame = render(&snapshot, size.0, size.1);
        write(&self.painter.paint(&frame, size));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        write(self.painter.close());
        logging::keep_off_the_terminal(false);
    }
}

/// Gives the terminal back before everything ends at once.
pub(super) fn give_back() {
    if logging::is_off_the_terminal() {
        write(Painter::new(false).close());
    }
}

/// Shows how things stand until it is told to stop, or the workflow file says so.
pub(super) async fn show(mut handle: Handle, environment: &Environment, stop: CancellationToken) {
    let colours = environment.get("NO_COLOR").is_none_or(std::ffi::OsStr::is_empty);
    let mut screen = Screen::open(colours);
    loop {
        let Some(settings) = settings(&handle).filter(|settings| settings.dashboard_enabled) else {
            return;
        };
        screen.show(&handle);
        let earliest = Instant::now() + settings.render_interval;
        let waited = timeout(settings.refresh.max(Duration::from_millis(1)), handle.changed());
        tokio::select! {
            () = stop.cancelled() => return,
            changed = waited => if changed == Ok(false) { return },
        }
        sleep_until(earliest).await;
    }
}

fn settings(handle: &Handle) -> Option<ObservabilityConfig> {
    handle.workflow().config.conductor.as_ref().map(|config| config.observability)
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
