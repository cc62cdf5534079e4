//! What `carrel exec` says about a command that is over.

use std::io;
use std::process::ExitCode;

use carrel_exec::{Captured, ExitStatus, Outcome};
use carrel_runner::Completed;
use carrel_tools::CommandFacts;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::{self, Format, printable};

/// The status when the time is over.
const TIMED_OUT: u8 = 124;

/// What shells add to the number of a signal.
const SIGNAL_OFFSET: i32 = 128;

/// Says how the command ended and returns the status to end with.
pub(super) fn give(completed: &Completed, format: Format) -> Result<ExitCode, Failure> {
    match format {
        Format::Json => output::json(&as_json(completed))?,
        // The output was shown while it arrived; nobody is left to be told if stderr is gone.
        Format::Text => drop(notes(completed, io::stderr().lock())),
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

fn as_json(completed: &Completed) -> Value {
    let text = |captured: &Captured| Value::from(captured.to_text(usize::MAX));
    let mut facts = json!(CommandFacts::of(completed));
    facts["stdout"] = text(&completed.outcome.stdout);
    facts["stderr"] = text(&completed.outcome.stderr);
    facts
}

/// Tells a person what the exit status does not.
fn notes(completed: &Completed, mut stderr: impl io::Write) -> io::Result<()> {
    if completed.outcome.timed_out() {
        writeln!(stderr, "carrel: ended at its deadline")?;
    }
    for note in carrel_tools::notes(completed) {
        writeln!(stderr, "carrel: {}", printable(&note))?;
    }
    Ok(())
}
