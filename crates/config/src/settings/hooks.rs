//! `hooks`: the operator's scripts.

use std::time::Duration;

use super::variable_names;
use crate::reader::Reader;
use crate::schema::{Key, keys};

/// The largest script. The kernel allows 128 KiB for one argument of a program.
pub const MAX_SCRIPT_BYTES: usize = 100 << 10;

/// The operator's hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HooksConfig {
    /// Runs once in a new workspace.
    pub after_create: Option<String>,
    /// Runs before each attempt.
    pub before_run: Option<String>,
    /// Runs after each attempt.
    pub after_run: Option<String>,
    /// Runs before a workspace is removed.
    pub before_remove: Option<String>,
    /// The time that one hook may take.
    pub timeout: Duration,
    /// True if hooks run in the workspace's sandbox.
    pub sandbox: bool,
    /// Names of further environment variables that hooks see.
    pub env: Vec<String>,
}

impl HooksConfig {
    /// Returns settings without hooks.
    pub fn none() -> Self {
        Self {
            after_create: None,
            before_run: None,
            after_run: None,
            before_remove: None,
            timeout: Duration::from_mins(1),
            sandbox: false,
            env: Vec::new(),
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            after_create: script(reader, &keys::HOOK_AFTER_CREATE),
            before_run: script(reader, &keys::HOOK_BEFORE_RUN),
            after_run: script(reader, &keys::HOOK_AFTER_RUN),
            before_remove: script(reader, &keys::HOOK_BEFORE_REMOVE),
            timeout: reader.millis(&keys::HOOK_TIMEOUT),
            sandbox: reader.flag(&keys::HOOK_SANDBOX),
            env: variable_names::read(reader, &keys::HOOK_ENV),
        }
    }
}

/// Reads a script; a blank one counts as absent.
fn script(reader: &mut Reader<'_>, key: &Key) -> Option<String> {
    let text = reader.text(key).filter(|text| !text.trim().is_empty())?;
    if text.len() > MAX_SCRIPT_BYTES {
        let complaint = format!(
            "has {} bytes, more than the {MAX_SCRIPT_BYTES} a hook may have; put the script into \
             a file and call it",
            text.len()
        );
        reader.problem(key, complaint);
    }
    if text.contains('\0') {
        reader.problem(key, "contains a NUL byte");
    }
    if text.contains("{{") || text.contains("{%") {
        let message = format!(
            "{} is a script, not a template: `{{{{` and `{{%` are passed to the shell as they \
             are; use $CARREL_ISSUE_IDENTIFIER and the other variables of hooks",
            key.path
        );
        reader.warn(key, message);
    }
    Some(text)
}
