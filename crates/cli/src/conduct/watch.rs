//! What a terminal shows while issues are worked off.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use carrel_conductor::dashboard::{Frame, Painter, render};
use carrel_conductor::drive::Handle;
use carrel_conductor::snapshot::Snapshot;
use carrel_config::{Environment, ObservabilityConfig, environment};
use carrel_domain::{Clock as _, SystemClock};
use tokio::task::JoinHandle;

use crate::logging;

/// The size that is drawn for when a terminal does not tell its own.
const USUAL_SIZE: (usize, usize) = (120, 40);

/// No more pictures than anybody sees.
const MIN_INTERVAL: Duration = Duration::from_millis(50);

/// A picture, and the size that it is for.
type Drawn = (Frame, (usize, usize));

/// A terminal that shows what happens. It is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    looking: JoinHandle<()>,
    painting: Option<std::thread::JoinHandle<()>>,
}

impl Watch {
    /// Begins to show what happens, if there is a terminal and nobody objects.
    pub(super) fn start(handle: Handle, environment: &Environment) -> Option<Self> {
        let workflow = handle.workflow();
        let settings = workflow.config.conductor.as_ref()?.observability.clone();
        if !settings.dashboard_enabled || !io::stdout().is_terminal() {
            return None;
        }
        let colours = environment.get_str(environment::NO_COLOR).is_none_or(str::is_empty);
        let (pictures, queue) = sync_channel(1);
        let painter = Painter::new(colours);
        let painting = std::thread::Builder::new()
            .name("dashboard".to_owned())
            .spawn(move || paint(painter, &queue))
            .ok()?;
        if io::stderr().is_terminal() {
            logging::hide_lines(true);
        }
        let looking = tokio::spawn(look(handle, settings, pictures));
        Some(Self { looking, painting: Some(painting) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.looking.abort();
        if let Some(painting) = self.painting.take() {
            // It ends as soon as nobody sends pictures any more, unless the terminal is stuck.
            for _ in 0..20 {
                if painting.is_finished() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        logging::hide_lines(false);
    }
}

/// Gives the terminal back, for a program that ends at once.
pub(super) fn give_back() {
    if logging::lines_are_hidden() {
        let _ = write(Painter::new(false).close());
    }
}

/// Draws whenever something changes, and once in a while. A picture that nobody has taken yet is enough.
async fn look(mut handle: Handle, settings: ObservabilityConfig, pictures: SyncSender<Drawn>) {
    let pause = settings.render_interval.max(MIN_INTERVAL);
    loop {
        let snapshot = Snapshot::of(&handle.state(), SystemClock.now());
        let size = size();
        let frame = render(&snapshot, size.0, size.1);
        if let Err(TrySendError::Disconnected(_)) = pictures.try_send((frame, size)) {
            return;
        }
        tokio::time::sleep(pause).await;
        let changed = tokio::time::timeout(settings.refresh, handle.changed()).await;
        if changed == Ok(false) {
            return;
        }
    }
}

fn paint(mut painter: Painter, pictures: &Receiver<Drawn>) {
    let mut open = write(painter.open()).is_ok();
    while open && let Ok((frame, size)) = pictures.recv() {
        open = write(&painter.paint(&frame, size)).is_ok();
    }
    let _ = write(painter.close());
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn size() -> (usize, usize) {
    let told = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let told = told.map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
    told.filter(|(width, height)| *width > 0 && *height > 0).unwrap_or(USUAL_SIZE)
}
