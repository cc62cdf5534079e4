//! `codex`: the Codex app server.

use std::time::Duration;

use serde_json::Value;

use crate::schema::SettingReader;
use crate::workflow_keys as keys;

/// The section `codex`, for agents that speak the protocol of the Codex app server. `approval_policy`,
/// `thread_sandbox` and `turn_sandbox_policy` are passed to Codex as written, without a check of their meaning.
#[expect(missing_docs, reason = "the fields are keys of the reference page")]
#[derive(Clone, Debug, PartialEq)]
pub struct CodexConfig {
    pub command: String,
    pub approval_policy: Value,
    pub thread_sandbox: String,
    /// `None` if absent; the policy is then derived from the workspace.
    pub turn_sandbox_policy: Option<Value>,
    /// The longest silence during a turn. The turn as a whole has no limit.
    pub turn_timeout: Duration,
    /// The time for the reply to one request.
    pub read_timeout: Duration,
    /// The time for which a run may show no progress; `None` if the file has 0 or less, which is no limit.
    pub stall_timeout: Option<Duration>,
}

impl CodexConfig {
    pub(super) fn read(reader: &mut SettingReader<'_>) -> Self {
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

fn stall_timeout(reader: &mut SettingReader<'_>) -> Option<Duration> {
    let millis = reader.count(&keys::CODEX_STALL_TIMEOUT).filter(|millis| *millis > 0)?;
    Some(Duration::from_millis(millis))
}
