//! `hooks`: the operator's scripts.
//!
//! A hook is a script and never a template: a value of an issue pasted into a script would be a way to run commands.
//! Values reach it as environment variables, and template syntax in a script gives a warning.

use std::time::Duration;

use super::variable_names;
use crate::schema::{Setting, SettingReader};
use crate::workflow_keys as keys;

/// The largest script. The kernel allows 128 KiB for one argument of a program.
pub const MAX_SCRIPT_BYTES: usize = 100 << 10;

/// The section `hooks`: the operator's scripts. A blank script counts as absent; one that is present has at most
/// [`MAX_SCRIPT_BYTES`] and no NUL byte.
#[expect(missing_docs, reason = "the fields are keys of the reference page")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HooksConfig {
    pub after_create: Option<String>,
    pub before_run: Option<String>,
    pub after_run: Option<String>,
    pub before_remove: Option<String>,
    pub timeout: Duration,
    /// Run hooks in the workspace's sandbox, or not at all where there is none.
    pub sandbox: bool,
    /// Names of environment variables; never one that holds a secret of a tracker or the server.
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

    pub(super) fn read(reader: &mut SettingReader<'_>) -> Self {
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
fn script(reader: &mut SettingReader<'_>, key: &Setting) -> Option<String> {
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
