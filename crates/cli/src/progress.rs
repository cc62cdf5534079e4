//! Progress of long work, on stderr.
//!
//! A terminal shows a spinner with the time and the last line of output, which is removed at the end. Without a
//! terminal there is a line every few seconds, so that a log or a person behind a pipe sees that the work goes on.
//! `--json` and `--quiet` show none. Work that takes less than a second never shows any.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use carrel_config::Environment;
use carrel_exec::Piece;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use crate::output::{self, Format, printable};

/// Work that takes less time shows no spinner.
const SPINNER_AFTER: Duration = Duration::from_secs(1);

/// The interval between the pictures of the spinner.
const SPIN_EVERY: Duration = Duration::from_millis(100);

/// The interval of lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Pieces of output that may wait to be looked at; more make the command wait.
const QUEUED_PIECES: usize = 16;

/// The longest line of output that is remembered.
const MAX_LINE_BYTES: usize = 400;

/// The form in which a command shows its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressMode {
    Hidden,
    Spinner,
    Lines,
}

impl ProgressMode {
    pub(crate) fn of(format: Format, quiet: bool, environment: &Environment) -> Self {
        let term = environment.get_str("TERM");
        if quiet || format == Format::Json {
            Self::Hidden
        } else if io::stderr().is_terminal() && term.is_some_and(|term| term != "dumb") {
            Self::Spinner
        } else {
            Self::Lines
        }
    }
}

/// The progress of one piece of work.
pub(crate) struct ProgressDisplay {
    mode: ProgressMode,
    name: String,
    output: Option<mpsc::Receiver<Piece>>,
    mask: Box<dyn Fn(&mut String) + Send>,
}

impl ProgressDisplay {
    pub(crate) fn new(mode: ProgressMode, name: impl Into<String>) -> Self {
        Self { mode, name: name.into(), output: None, mask: Box::new(|_| {}) }
    }

    /// Returns the sender for output whose last line is shown, if any is. `mask` takes secrets out of a line.
    pub(crate) fn output(
        &mut self,
        mask: impl Fn(&mut String) + Send + 'static,
    ) -> Option<mpsc::Sender<Piece>> {
        if self.mode == ProgressMode::Hidden {
            return None;
        }
        let (sender, receiver) = mpsc::channel(QUEUED_PIECES);
        self.output = Some(receiver);
        self.mask = Box::new(mask);
        Some(sender)
    }

    /// Does the work and shows its progress.
    pub(crate) async fn during<T>(mut self, work: impl Future<Output = T>) -> T {
        if self.mode == ProgressMode::Hidden {
            return work.await;
        }
        let mut work = std::pin::pin!(work);
        let mut display = Display::new(self.mode, self.name);
        let mut output = self.output.take();
        let mut last = LastLine::default();
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                piece = next(&mut output) => match piece {
                    Some(piece) => last.push(&piece.bytes),
                    None => output = None,
                },
                _ = display.ticks.tick() => display.update(&last, &self.mask),
            }
        }
    }
}

/// Waits for output; for ever if there is none.
async fn next(output: &mut Option<mpsc::Receiver<Piece>>) -> Option<Piece> {
    match output {
        Some(output) => output.recv().await,
        None => std::future::pending().await,
    }
}

struct Display {
    name: String,
    started: Instant,
    ticks: Interval,
    spins: bool,
    spinner: Option<Spinner>,
}

/// A spinner that is removed from the terminal when it is dropped.
struct Spinner(ProgressBar);

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Display {
    fn new(mode: ProgressMode, name: String) -> Self {
        let spins = mode == ProgressMode::Spinner;
        let every = if spins { SPINNER_AFTER } else { LINE_EVERY };
        let mut ticks = interval_at(tokio::time::Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { name, started: Instant::now(), ticks, spins, spinner: None }
    }

    fn update(&mut self, last: &LastLine, mask: &dyn Fn(&mut String)) {
        let text = text(&self.name, self.started.elapsed(), last.text(mask).as_deref());
        if self.spins {
            let spinner = self.spinner.get_or_insert_with(|| Spinner(spinner()));
            spinner.0.set_message(text);
        } else {
            output::note(&text);
        }
    }
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(SPIN_EVERY);
    bar
}

fn text(name: &str, elapsed: Duration, last: Option<&str>) -> String {
    let seconds = elapsed.as_secs();
    let time = match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    };
    match last {
        Some(last) => format!("{name}: {time}, last line: {last}"),
        None => format!("{name}: {time}"),
    }
}

/// The last line of output that is not blank.
#[derive(Debug, Default)]
struct LastLine {
    complete: Vec<u8>,
    current: Vec<u8>,
}

impl LastLine {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                // A progress bar of the command writes a line again after each carriage return.
                b'\n' | b'\r' if self.current.trim_ascii().is_empty() => self.current.clear(),
                b'\n' | b'\r' => self.complete = std::mem::take(&mut self.current),
                byte if self.current.len() < MAX_LINE_BYTES => self.current.push(*byte),
                _ => {}
            }
        }
    }

    fn text(&self, mask: &dyn Fn(&mut String)) -> Option<String> {
        let is_blank = self.current.trim_ascii().is_empty();
        let bytes = if is_blank { &self.complete } else { &self.current };
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        mask(&mut text);
        let text = printable(console::strip_ansi_codes(&text).trim());
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(pieces: &[&str]) -> Option<String> {
        let mut last = LastLine::default();
        for piece in pieces {
            last.push(piece.as_bytes());
        }
        last.text(&|text| *text = text.replace("hunter2", "***"))
    }

    #[test]
    fn the_last_line_that_is_not_blank_is_shown_without_colours_and_secrets() {
        for (pieces, expected) in [
            (&[][..], None),
            (&["\n\n"], None),
            (&["one\ntwo\n"], Some("two")),
            (&["one\ntw", "o"], Some("two")),
            (&["one\ntwo\n\n  \n"], Some("two")),
            (&["10 %\r20 %\r"], Some("20 %")),
            (&["\u{1b}[32mok\u{1b}[0m test\n"], Some("ok test")),
            (&["password hunter2\n"], Some("password ***")),
        ] {
            assert_eq!(last(pieces).as_deref(), expected, "{pieces:?}");
        }
        let long = last(&[&"x".repeat(10_000)]).unwrap();
        assert_eq!(long.len(), MAX_LINE_BYTES);
    }

    #[test]
    fn the_time_is_in_seconds_and_then_in_minutes() {
        let at = |seconds| text("run_tests", Duration::from_secs(seconds), None);
        assert_eq!(at(15), "run_tests: 15 s");
        assert_eq!(at(185), "run_tests: 3 min 5 s");
        let shown = text("run_tests", Duration::from_secs(15), Some("ok"));
        assert_eq!(shown, "run_tests: 15 s, last line: ok");
    }
}
