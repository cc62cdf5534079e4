//! Runs a hook's script after the login profile.
//!
//! The login shell has read the operator's profile and replaced itself with this helper, which removes
//! secrets from the exported variables, returns to the workspace and runs the script. Exported variables,
//! limits and the umask reach the script; functions, aliases and variables that are not exported do not.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use carrel_sandbox::close_on_exec;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::fchdir;
use serde::{Deserialize, Serialize};

use crate::command_spec::CommandSpec;

pub(crate) const PAYLOAD_NUMBER: u32 = CommandSpec::FIRST_INHERITED;

pub(crate) const DIRECTORY_NUMBER: u32 = PAYLOAD_NUMBER + 1;

/// The status by which shells report a program that could not be executed.
const CANNOT_EXECUTE: u8 = 126;

/// The length from which on a secret is also searched inside values; a shorter one would match by chance.
const MIN_CONTAINED_BYTES: usize = 8;

/// The payload of the helper, passed in a memory file.
#[derive(Serialize, Deserialize)]
pub(crate) struct Hook {
    pub(crate) script: String,
    pub(crate) secrets: Vec<String>,
    pub(crate) removed: Vec<String>,
}

impl Hook {
    /// Returns whether the script may see the variable.
    fn allows(&self, name: &OsStr, value: &OsStr) -> bool {
        let removed = self.removed.iter().any(|removed| name == OsStr::new(removed));
        !removed && !self.secrets.iter().any(|secret| reveals(value.as_bytes(), secret.as_bytes()))
    }
}

fn reveals(value: &[u8], secret: &[u8]) -> bool {
    if secret.len() < MIN_CONTAINED_BYTES {
        return !secret.is_empty() && value == secret;
    }
    value.windows(secret.len()).any(|part| part == secret)
}

/// Runs the hook. Returns only if that fails, after a message on stderr.
pub(super) fn run() -> ExitCode {
    let error = take_payload().and_then(|hook| {
        enter_workspace()?;
        Err::<(), _>(execute(&hook))
    });
    if let Err(error) = error {
        // If stderr is closed, the exit status remains.
        let _ = writeln!(io::stderr(), "carrel: could not run the hook: {error}");
    }
    ExitCode::from(CANNOT_EXECUTE)
}

/// Reads the payload from its start, even if the profile has read the descriptor, and empties it.
#[expect(clippy::disallowed_methods, reason = "an inherited descriptor is not a workspace file")]
fn take_payload() -> io::Result<Hook> {
    let payload = std::fs::read(inherited(PAYLOAD_NUMBER))?;
    // Processes that the profile left running have the descriptor too, and must find nothing there.
    std::fs::write(inherited(PAYLOAD_NUMBER), [])?;
    Ok(serde_json::from_slice(&payload)?)
}

fn enter_workspace() -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    fchdir(open(inherited(DIRECTORY_NUMBER), flags, Mode::empty())?)?;
    close_on_exec(PAYLOAD_NUMBER..=DIRECTORY_NUMBER)
}

fn inherited(number: u32) -> String {
    format!("/proc/self/fd/{number}")
}

#[expect(clippy::disallowed_methods, reason = "this is where hooks are executed")]
fn execute(hook: &Hook) -> io::Error {
    let environment: Vec<(OsString, OsString)> =
        std::env::vars_os().filter(|(name, value)| hook.allows(name, value)).collect();
    // The dashes keep a script that begins with one from being read as an option.
    Command::new("/bin/sh").args(["-c", "--", &hook.script]).env_clear().envs(environment).exec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_reveal_a_secret_are_removed() {
        let hook = Hook {
            script: String::new(),
            secrets: vec!["long-secret".into(), "pw".into(), String::new()],
            removed: vec!["SERVER_TOKEN".into()],
        };
        for (name, value, allowed) in [
            ("A", "long-secret", false),
            ("A", "https://x:long-secret@host", false),
            ("A", "long-secre", true),
            ("A", "pw", false),
            ("A", "pwd", true),
            ("A", "", true),
            ("SERVER_TOKEN", "harmless", false),
        ] {
            assert_eq!(hook.allows(name.as_ref(), value.as_ref()), allowed, "{name}={value}");
        }
    }
}
