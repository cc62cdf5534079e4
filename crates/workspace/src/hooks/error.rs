//! Why a hook did not succeed.

use std::path::PathBuf;
use std::time::Duration;

use carrel_domain::{Code, Coded};
use carrel_exec::{ExitStatus, SpawnError};
use serde_json::{Value, json};

use super::{Hook, HookSandboxError};

/// Why a hook did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// The script ended with an error.
    #[error("hook {} {}, log {}", hook.as_str(), ending(*end, output), log.display())]
    Failed {
        /// Which hook.
        hook: Hook,
        /// How its shell ended.
        end: ExitStatus,
        /// The beginning and end of what it printed.
        output: String,
        /// The file with all that it printed.
        log: PathBuf,
    },
    /// The script ran into its deadline and was ended with everything it had started.
    #[error("hook {} timed out after {} ms, log {}", hook.as_str(), timeout.as_millis(), log.display())]
    TimedOut {
        /// Which hook.
        hook: Hook,
        /// The deadline.
        timeout: Duration,
        /// The beginning and end of what it printed.
        output: String,
        /// The file with all that it printed.
        log: PathBuf,
    },
    /// The login profile ended the shell before the script began.
    #[error(
        "hook {} never began: the login profile ended its shell; leave `exit` and `exec` out of it, log {}",
        hook.as_str(), log.display()
    )]
    NotReached {
        /// Which hook.
        hook: Hook,
        /// The file with what the profile printed.
        log: PathBuf,
    },
    /// The run was cancelled.
    #[error("hook {} was cancelled", hook.as_str())]
    Cancelled {
        /// Which hook.
        hook: Hook,
    },
    /// The shell could not be started.
    #[error("hook {} could not be started", hook.as_str())]
    Start {
        /// Which hook.
        hook: Hook,
        /// Why not.
        #[source]
        source: SpawnError,
    },
    /// What the run needs on disk could not be made.
    #[error("hook {} could not be prepared: {reason}", hook.as_str())]
    Prepare {
        /// Which hook.
        hook: Hook,
        /// Why not.
        reason: String,
        /// The code of the reason.
        code: Code,
    },
    /// The operator wants hooks confined, and that cannot be done.
    #[error("hook {} must run confined (hooks.sandbox) and could not", hook.as_str())]
    Sandbox {
        /// Which hook.
        hook: Hook,
        /// Why not.
        #[source]
        source: HookSandboxError,
    },
}

/// How much of the output a message repeats.
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
    fn hook(&self) -> Hook {
        match self {
            Self::Failed { hook, .. }
            | Self::TimedOut { hook, .. }
            | Self::NotReached { hook, .. }
            | Self::Cancelled { hook }
            | Self::Start { hook, .. }
            | Self::Prepare { hook, .. }
            | Self::Sandbox { hook, .. } => *hook,
        }
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
        let mut detail = json!({ "hook": self.hook().as_str() });
        match self {
            Self::Failed { end, output, log, .. } => {
                detail["end"] = json!(end);
                detail["output"] = json!(output);
                detail["log"] = json!(log.to_string_lossy());
            }
            Self::TimedOut { timeout, output, log, .. } => {
                detail["timeout_ms"] = json!(timeout.as_millis());
                detail["output"] = json!(output);
                detail["log"] = json!(log.to_string_lossy());
            }
            Self::NotReached { log, .. } => detail["log"] = json!(log.to_string_lossy()),
            Self::Cancelled { .. }
            | Self::Start { .. }
            | Self::Prepare { .. }
            | Self::Sandbox { .. } => {}
        }
        detail
    }
}
