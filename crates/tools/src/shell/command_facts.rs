//! Facts and notes about an ended command.

use std::time::Duration;

use carrel_domain::WorkspaceKey;
use carrel_exec::{ExitStatus, Outcome};
use carrel_runner::{Completed, LimitReached, SandboxReport, TrustChange};
use carrel_sandbox::{Certainty, Denial};
use carrel_wire::{CommandCost, CommandDenial, CommandReply, CommandSandbox};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::control_sequences::strip_control;
use super::denial_notes::{NoteReader, denial_lines, is_noteworthy};
use crate::text::line;

/// The tier of a command that ran without a sandbox.
pub(crate) const NO_SANDBOX: &str = "off";

/// The exit code on the wire of a command that a signal killed.
const NO_STATUS: i32 = -1;

/// The facts about an ended command.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CommandFacts {
    /// The exit status; null if a signal killed it.
    pub exit_code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// It was killed at its deadline.
    pub timed_out: bool,
    /// It was killed because the call was cancelled.
    pub cancelled: bool,
    /// The limit that it exceeded: `memory`, `processes`, `cpu`, `file_size` or `quota`.
    #[schemars(with = "Option<String>")]
    pub limit: Option<LimitReached>,
    /// Bytes written to stdout, or to both streams if they are combined.
    pub stdout_bytes: u64,
    /// Bytes written to stderr.
    pub stderr_bytes: u64,
    /// The text lacks a part of the output.
    pub truncated: bool,
    /// Processes that were still running at its end, and were killed.
    pub left_running: usize,
    /// Operations that the sandbox denied, with the policy line that would allow each.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub denials: Vec<Denial>,
    /// Changed files that would run later outside the sandbox, and whether they were restored.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub trust_changes: Vec<TrustChange>,
    /// Time, memory and I/O.
    pub cost: CommandCost,
    /// The sandbox that was applied.
    pub sandbox: CommandSandbox,
}

impl CommandFacts {
    /// Collects the facts of an ended command.
    pub fn of(completed: &Completed) -> Self {
        let Completed { outcome, limit, denials, trust, sandbox: report, .. } = completed;
        let (exit_code, signal) = match outcome.end {
            ExitStatus::Exited(status) => (Some(status), None),
            ExitStatus::Signaled(signal) => (None, Some(signal)),
            ExitStatus::Lost => (None, None),
        };
        Self {
            exit_code,
            signal,
            timed_out: outcome.timed_out(),
            cancelled: outcome.stop == Some(carrel_exec::Stop::Cancelled),
            limit: *limit,
            stdout_bytes: outcome.stdout.total_bytes,
            stderr_bytes: outcome.stderr.total_bytes,
            truncated: outcome.stdout.truncated() || outcome.stderr.truncated(),
            left_running: outcome.left_running,
            denials: denials.clone(),
            trust_changes: trust.trust_changes.clone(),
            cost: cost(outcome),
            sandbox: sandbox(report),
        }
    }

    /// Returns the reply of the REST API: the facts and the output as one value.
    ///
    /// The exit code is a number in every case, [`NO_STATUS`] for a command that a signal killed.
    pub(crate) fn reply(&self, outcome: &Outcome) -> CommandReply {
        CommandReply {
            success: outcome.succeeded(),
            exit_code: self.exit_code.unwrap_or(NO_STATUS),
            signal: self.signal,
            timed_out: self.timed_out,
            cancelled: self.cancelled,
            limit: self.limit.map(|limit| json!(limit).as_str().unwrap_or_default().to_owned()),
            stdout_bytes: self.stdout_bytes,
            stderr_bytes: self.stderr_bytes,
            truncated: self.truncated,
            left_running: self.left_running as u64,
            denials: self.denials.iter().map(denial).collect(),
            trust_changes: self.trust_changes.iter().map(object).collect(),
            cost: self.cost,
            sandbox: self.sandbox.clone(),
            stdout: outcome.stdout.to_text(usize::MAX),
            stderr: outcome.stderr.to_text(usize::MAX),
            duration_ms: u64::try_from(outcome.wall.as_millis()).unwrap_or(u64::MAX),
            snapshot: None,
        }
    }
}

fn denial(denial: &Denial) -> CommandDenial {
    let Denial { rule, object, errno, source, count, allow, hint, network: _, class: _ } = denial;
    CommandDenial {
        rule: rule.clone(),
        object: object.clone(),
        errno: errno.clone(),
        source: match source {
            Certainty::Exact => "exact".to_owned(),
            Certainty::Inferred => "inferred".to_owned(),
        },
        count: *count,
        allow: allow.clone(),
        hint: hint.clone(),
    }
}

pub(crate) fn object(value: &impl Serialize) -> Map<String, Value> {
    match json!(value) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn cost(outcome: &Outcome) -> CommandCost {
    let cost = &outcome.cost;
    CommandCost {
        wall_ms: milliseconds(outcome.wall),
        cpu_ms: milliseconds(cost.user + cost.system),
        peak_memory_bytes: cost.peak_memory.as_u64(),
        read_bytes: cost.read.as_u64(),
        written_bytes: cost.written.as_u64(),
    }
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn sandbox(report: &SandboxReport) -> CommandSandbox {
    let names = |holds| {
        let guarantees = report.guarantees.iter().filter(move |one| one.holds == holds);
        guarantees.map(|guarantee| guarantee.name.into()).collect()
    };
    CommandSandbox {
        tier: report.tier.map_or(NO_SANDBOX, |tier| tier.as_str()).into(),
        enforced: names(true),
        not_enforced: names(false),
    }
}

/// Returns what the exit status does not tell, one line each: the exceeded limit, killed processes,
/// denials, restored files.
pub fn notes(completed: &Completed, reader: NoteReader) -> Vec<String> {
    let Completed { outcome, limit, denials, trust, frozen, .. } = completed;
    let mut notes = Vec::new();
    if let Some(limit) = limit {
        notes.push(format!("ended by its limit: {}", json!(limit).as_str().unwrap_or("")));
    }
    if outcome.left_running > 0 {
        notes.push(format!("still running at the end, and killed: {}", outcome.left_running));
    }
    // A pipeline hides the status of its first command, so success does not show that all went well.
    let explains = |denial: &&Denial| !outcome.succeeded() || is_noteworthy(denial);
    let shown: Vec<_> = denials.iter().filter(explains).cloned().collect();
    notes.extend(denial_lines(&shown, reader));
    if !frozen.is_empty() && (!outcome.succeeded() || !shown.is_empty()) {
        let forks = frozen.iter().map(WorkspaceKey::as_str).collect::<Vec<_>>().join(", ");
        notes.push(format!(
            "the workspace has forks ({forks}) and is read-only; work in a fork, or promote or remove them"
        ));
    }
    notes.extend(trust.trust_changes.iter().map(|change| {
        let restored = if change.restored { "restored" } else { "not restored" };
        format!("{} ({}) changed, {restored}", change.path.to_string_lossy(), change.what)
    }));
    notes
}

/// Appends the notes about a command to the text of a reply.
pub(crate) fn add_notes(text: &mut String, completed: &Completed) {
    add_note_lines(text, &notes(completed, NoteReader::Caller));
}

pub(crate) fn add_note_lines(text: &mut String, notes: &[String]) {
    for note in notes {
        line(text, &format!("carrel: {}", strip_control(note)));
    }
}
