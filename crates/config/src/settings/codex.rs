//! `codex`: the Codex app server.

use std::time::Duration;

use serde_json::Value;

use crate::reader::Reader;
use crate::schema::keys;

/// Settings of the Codex app server.
#[derive(Clone, Debug, PartialEq)]
pub struct CodexConfig {
    /// The shell command that starts the server.
    pub command: String,
    /// Passed to Codex as written.
    pub approval_policy: Value,
    /// Passed to Codex as written.
    pub thread_sandbox: String,
    /// Passed to Codex as written; derived from the workspace if absent.
    pub turn_sandbox_policy: Option<Value>,
    /// The time for which a turn may be silent.
    pub turn_timeout: Duration,
    /// The time in which Codex must reply to one request.
    pub read_timeout: Duration,
    /// The time for which a run may show no progress; `None` is no limit.
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

/// Zero and below mean no limit.
fn stall_timeout(reader: &mut Reader<'_>) -> Option<Duration> {
    let millis = reader.count(&keys::CODEX_STALL_TIMEOUT).filter(|millis| *millis > 0)?;
    Some(Duration::from_millis(millis))
}
