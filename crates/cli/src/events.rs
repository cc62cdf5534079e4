//! `carrel events`: prints the audit log.
//!
//! The log is `events.jsonl` in the state directory, or in the data directory of a server, and its
//! rotated file. Events are read as they lie there: a kind that this version does not know is printed with its
//! fields. Tool calls name their workspace, not its directory; the event of a session's first call has both, so the
//! [filter](filter::EventFilter) learns the names of a directory while it reads.

mod filter;
mod log_reader;
mod text;

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use carrel_domain::{Age, Code};
use clap::Args;
use serde_json::Value;

use crate::error::{CliError, Result};
use crate::output::{self, Format, Invocation, printable};
use crate::sandbox;
use filter::EventFilter;
use log_reader::LogReader;

/// Events shown first by `--follow` without `--since`.
const TAIL_EVENTS: usize = 10;

/// The interval at which `--follow` reads again: shorter than a person notices.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Args, Debug)]
pub(crate) struct EventsArguments {
    /// Go on with new events until interrupted; begins with the last ten unless --since is given
    #[arg(short, long)]
    follow: bool,
    /// Only events of the workspace in this directory
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Only refusals: calls that Carrel refused, operations that the sandbox denied
    #[arg(long)]
    violations: bool,
    /// Only events of this last time, such as 90s, 15m or 24h
    #[arg(long, value_name = "AGE")]
    since: Option<Age>,
    /// The data directory of a server or a conductor whose log is read
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) fn run(arguments: &EventsArguments, cli: &Invocation) -> Result<ExitCode> {
    let path = match &arguments.data {
        Some(data) if !data.is_dir() => return Err(no_data(data)),
        Some(data) => data.join(sandbox::EVENTS),
        None => sandbox::state(&cli.environment)?.join(sandbox::EVENTS),
    };
    let directory = arguments.workspace.as_deref().map(sandbox::real_path).transpose()?;
    let filter = EventFilter::new(directory, arguments.violations, arguments.since);
    let unreadable = |error: io::Error| {
        CliError::of(Code::Io, &error).context(format_args!("could not read {}", path.display()))
    };
    let mut reader = LogReader::open(path.clone()).map_err(unreadable)?;
    let mut printer = Printer { format: cli.format, filter, shown: 0, skipped: 0 };
    let first =
        if arguments.follow && arguments.since.is_none() { TAIL_EVENTS } else { usize::MAX };
    let mut open = printer.print_last(&mut reader, first).map_err(unreadable)?;
    while arguments.follow && open {
        std::thread::sleep(POLL_INTERVAL);
        open = printer.print_last(&mut reader, usize::MAX).map_err(unreadable)?;
    }
    if printer.shown == 0 && cli.format == Format::Text {
        output::note(&format!("no such events in {}", path.display()));
    }
    if printer.skipped > 0 {
        output::note(&format!("lines that are no events: {}", printer.skipped));
    }
    Ok(ExitCode::SUCCESS)
}

fn no_data(data: &std::path::Path) -> CliError {
    CliError::new(Code::NotFound, format!("there is no data directory {}", data.display())).at(data)
}

struct Printer {
    format: Format,
    filter: EventFilter,
    shown: usize,
    skipped: usize,
}

impl Printer {
    /// Prints the last `count` events that the reader has. Returns false once stdout is closed.
    fn print_last(&mut self, reader: &mut LogReader, count: usize) -> io::Result<bool> {
        let mut waiting = VecDeque::new();
        while let Some(line) = reader.next_line()? {
            let Ok(event) = serde_json::from_slice::<Value>(&line) else {
                self.skipped += 1;
                continue;
            };
            if !self.filter.accepts(&event) {
                continue;
            }
            if count == usize::MAX {
                if !self.print(&event, &line)? {
                    return Ok(false);
                }
                continue;
            }
            waiting.push_back((event, line));
            if waiting.len() > count {
                waiting.pop_front();
            }
        }
        for (event, line) in waiting {
            if !self.print(&event, &line)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn print(&mut self, event: &Value, line: &[u8]) -> io::Result<bool> {
        self.shown += 1;
        let text = match self.format {
            Format::Json => [line, b"\n"].concat(),
            Format::Text => format!("{}\n", printable(&text::line(event))).into_bytes(),
        };
        let mut stdout = io::stdout().lock();
        match stdout.write_all(&text).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            written => written.map(|()| true),
        }
    }
}
