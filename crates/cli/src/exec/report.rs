//! The report of `carrel exec` about a command that ended: exit status, JSON, notes on stderr.

use std::io;
use std::process::ExitCode;

use carrel_exec::{Captured, ExitStatus, Outcome};
use carrel_runner::Completed;
use carrel_tools::{CommandFacts, NoteReader};
use serde_json::{Value, json};

use crate::error::Result;
use crate::output::{self, Format, printable};

/// The status of a command that was ended at its deadline, as that of `timeout`.
const TIMED_OUT: u8 = 124;

/// The offset by which shells report a signal as an exit status.
const SIGNAL_OFFSET: i32 = 128;

/// Prints how the command ended and returns the exit status.
pub(super) fn print(completed: &Completed, reader: NoteReader, format: Format) -> Result<ExitCode> {
    match format {
        Format::Json => output::json(&as_json(completed, reader))?,
        // The output was written while it arrived; a closed stderr cannot be reported anywhere.
        Format::Text => drop(notes(completed, reader, io::stderr().lock())),
    }
    Ok(ExitCode::from(status(&completed.outcome)))
}

fn status(outcome: &Outcome) -> u8 {
    if outcome.timed_out() {
        return TIMED_OUT;
    }
    let status = match outcome.end {
        ExitStatus::Exited(status) => status,
        ExitStatus::Signaled(signal) => SIGNAL_OFFSET + signal,
        ExitStatus::Lost => SIGNAL_OFFSET + 9,
    };
    u8::try_from(status & 0xff).unwrap_or(u8::MAX)
}

fn as_json(completed: &Completed, reader: NoteReader) -> Value {
    let text = |captured: &Captured| Value::from(captured.to_text(usize::MAX));
    let mut facts = CommandFacts::of(completed);
    facts.denials = reader.hinted(facts.denials);
    let mut facts = json!(facts);
    facts["stdout"] = text(&completed.outcome.stdout);
    facts["stderr"] = text(&completed.outcome.stderr);
    facts
}

/// Writes what the exit status does not say: deadline, denials, trust changes.
fn notes(completed: &Completed, reader: NoteReader, mut stderr: impl io::Write) -> io::Result<()> {
    if completed.outcome.timed_out() {
        writeln!(stderr, "carrel: ended at its deadline")?;
    }
    for note in carrel_tools::notes(completed, reader) {
        writeln!(stderr, "carrel: {}", printable(&note))?;
    }
    Ok(())
}
