//! `codex`: the Codex app server.

use std::time::Duration;

use serde_json::Value;

use crate::reader::Reader;
use crate::schema::keys;

/// How the Codex app server is started and what it is told.
#[derive(Clone, Debug, PartialEq)]
pub struct CodexConfig {
    /// The command that starts it.
    pub command: String,
    /// Handed to it as it is written.
    pub approval_policy: Value,
    /// Handed to it as it is written.
    pub thread_sandbox: String,
    /// Handed to it as it is written; made from the workspace when absent.
    pub turn_sandbox_policy: Option<Value>,
    /// How long a turn may stay silent.
    pub turn_timeout: Duration,
    /// How long one answer may take.
    pub read_timeout: Duration,
    /// How long a run may show no progress, if there is a limit.
    pub stall_timeout: Option<Duration>,
}

impl CodexConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            command: reader.text(&keys::CODEX_COMMAND).unwrap_or_default(),
            approval_policy: reader.json(&keys::CODEX_APPROVAL).unwrap_or_default(),
            thread_sandbox: reader.text(&keys::CODEX_THREAD_SANDBOX).unwrap_or_default(),
            turn_sandbox_policy: reader.json(&keys::CODEX_TURN_SANDBOX),
            turn_timeout: reader.millis(&keys::CODEX_TURN_TIMEOUT),
            read_timeout: reader.millis(&keys::CODEX_READ_TIMEOUT),
            stall_timeout: stall_timeout(reader),
        }
    }
}

/// Reads the limit without progress; zero and below mean that there is none.
fn stall_timeout(reader: &mut Reader<'_>) -> Option<Duration> {
    let millis = reader.count(&keys::CODEX_STALL_TIMEOUT).filter(|millis| *millis > 0)?;
    Some(Duration::from_millis(millis))
}
