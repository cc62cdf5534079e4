//! What `carrel exec` says about a command that is over.

use std::io;
use std::process::ExitCode;

use carrel_exec::{Captured, End, Outcome};
use carrel_sandbox::{Certainty, Denial};
use carrel_workspace::{Completed, Walls};
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
        End::Exited(status) => status,
        End::Signaled(signal) => SIGNAL_OFFSET + signal,
        End::Lost => SIGNAL_OFFSET + 9,
    };
    u8::try_from(status & 0xff).unwrap_or(u8::MAX)
}

fn as_json(completed: &Completed) -> Value {
    let Completed { outcome, limit, denials, trust, walls } = completed;
    let (exit_code, signal) = match outcome.end {
        End::Exited(status) => (Some(status), None),
        End::Signaled(signal) => (None, Some(signal)),
        End::Lost => (None, None),
    };
    let text = |captured: &Captured| captured.to_text(usize::MAX);
    json!({
        "exit_code": exit_code,
        "signal": signal,
        "timed_out": outcome.timed_out(),
        "limit": limit,
        "stdout": text(&outcome.stdout),
        "stderr": text(&outcome.stderr),
        "stdout_bytes": outcome.stdout.total_bytes,
        "stderr_bytes": outcome.stderr.total_bytes,
        "truncated": outcome.stdout.truncated() || outcome.stderr.truncated(),
        "left_running": outcome.left_running,
        "denials": denials,
        "trust_changes": trust.trust_changes,
        "cost": cost(outcome),
        "sandbox": sandbox(walls),
    })
}

fn cost(outcome: &Outcome) -> Value {
    let cost = &outcome.cost;
    json!({
        "wall_ms": milliseconds(outcome.wall),
        "cpu_ms": milliseconds(cost.user + cost.system),
        "peak_memory_bytes": cost.peak_memory,
        "read_bytes": cost.read,
        "written_bytes": cost.written,
    })
}

fn milliseconds(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn sandbox(walls: &Walls) -> Value {
    let names = |holds| -> Vec<&str> {
        let guarantees = walls.guarantees.iter().filter(move |one| one.holds == holds);
        guarantees.map(|guarantee| guarantee.name).collect()
    };
    json!({
        "tier": walls.tier.map_or("off", |tier| tier.as_str()),
        "enforced": names(true),
        "not_enforced": names(false),
    })
}

/// Tells a person what the exit status does not.
fn notes(completed: &Completed, mut stderr: impl io::Write) -> io::Result<()> {
    let Completed { outcome, limit, denials, trust, .. } = completed;
    if outcome.timed_out() {
        writeln!(stderr, "carrel: ended at its deadline")?;
    }
    if let Some(limit) = limit {
        writeln!(stderr, "carrel: ended by its limit: {}", json!(limit).as_str().unwrap_or(""))?;
    }
    if outcome.left_running > 0 {
        let left = outcome.left_running;
        writeln!(stderr, "carrel: still running at the end, and ended too: {left}")?;
    }
    // What did not make the command fail is for programs only.
    for denial in denials.iter().filter(|_| !outcome.succeeded()) {
        writeln!(stderr, "carrel: {}", printable(&explained(denial)))?;
    }
    for change in &trust.trust_changes {
        let path = printable(&change.path.to_string_lossy());
        let restored = if change.restored { "put back" } else { "left as it is" };
        writeln!(stderr, "carrel: {path} ({}) changed, {restored}", change.what)?;
    }
    Ok(())
}

fn explained(denial: &Denial) -> String {
    let Denial { rule, object, errno, source, allow, hint } = denial;
    let certainty = match source {
        Certainty::Exact => "denied",
        Certainty::Inferred => "probably denied",
    };
    let mut text = format!("{certainty}: {object} ({errno}): {rule}");
    if let Some(allow) = allow {
        text = format!("{text}; policy.toml: {allow}");
    }
    if let Some(hint) = hint {
        text = format!("{text}; {hint}");
    }
    text
}
