//! Errors of hooks.

use std::path::PathBuf;
use std::time::Duration;

use carrel_domain::{Code, Coded, message_of};
use carrel_exec::{ExitStatus, SpawnError};
use serde_json::{Value, json};

use super::{Hook, HookSandboxError};

/// The reason why a hook did not succeed.
///
/// `output` has the beginning and the end of what the hook printed, with known secrets masked; `log` is the
/// file with all of it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum HookError {
    #[error("hook {} {}, log {}", hook.as_str(), ending(*end, output), log.display())]
    Failed { hook: Hook, end: ExitStatus, output: String, log: PathBuf },
    #[error("hook {} timed out after {} ms, log {}", hook.as_str(), timeout.as_millis(), log.display())]
    TimedOut { hook: Hook, timeout: Duration, output: String, log: PathBuf },
    #[error(
        "hook {} never began: the login profile ended its shell; leave `exit` and `exec` out of it, log {}",
        hook.as_str(), log.display()
    )]
    NotReached { hook: Hook, log: PathBuf },
    #[error("hook {} was cancelled", hook.as_str())]
    Cancelled { hook: Hook },
    #[error("hook {} could not be started", hook.as_str())]
    Start {
        hook: Hook,
        #[source]
        source: SpawnError,
    },
    #[error("hook {} could not be prepared: {reason}", hook.as_str())]
    Prepare { hook: Hook, reason: String, code: Code },
    #[error("hook {} must run confined (hooks.sandbox) and could not", hook.as_str())]
    Sandbox {
        hook: Hook,
        #[source]
        source: HookSandboxError,
    },
}

/// The most characters of the last output line in a message.
const MAX_MESSAGE_LINE: usize = 200;

fn ending(end: ExitStatus, output: &str) -> String {
    let ended = match end {
        ExitStatus::Exited(status) => format!("failed with status {status}"),
        ExitStatus::Signaled(signal) => format!("was ended by signal {signal}"),
        ExitStatus::Lost => "was killed together with its supervisor".to_owned(),
    };
    match output.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => {
            format!("{ended}: {}", line.trim().chars().take(MAX_MESSAGE_LINE).collect::<String>())
        }
        None => ended,
    }
}

impl HookError {
    pub(super) fn unprepared(hook: Hook, error: &impl Coded) -> Self {
        Self::Prepare { hook, reason: message_of(error), code: error.code() }
    }
}

impl Coded for HookError {
    fn code(&self) -> Code {
        match self {
            Self::Failed { .. } | Self::NotReached { .. } | Self::Cancelled { .. } => {
                Code::HookFailed
            }
            Self::TimedOut { .. } => Code::HookTimeout,
            Self::Start { .. } => Code::SpawnFailed,
            Self::Prepare { code, .. } => *code,
            Self::Sandbox { source, .. } => source.code(),
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Failed { hook, end, output, log } => {
                let log = log.to_string_lossy();
                json!({ "hook": hook, "end": end, "output": output, "log": log })
            }
            Self::TimedOut { hook, timeout, output, log } => {
                let (timeout, log) = (timeout.as_millis(), log.to_string_lossy());
                json!({ "hook": hook, "timeout_ms": timeout, "output": output, "log": log })
            }
            Self::NotReached { hook, log } => json!({ "hook": hook, "log": log.to_string_lossy() }),
            Self::Cancelled { hook }
            | Self::Start { hook, .. }
            | Self::Prepare { hook, .. }
            | Self::Sandbox { hook, .. } => json!({ "hook": hook }),
        }
    }
}
