//! Hooks: scripts of the operator, run after the login profile without passing on secrets.
//!
//! The operator's profile sets up tools such as version managers, so a hook needs a login shell. But a
//! profile may also export the very secrets that Carrel withholds. So the login shell does not run the
//! script: it executes this program's `__hook` helper, which filters the environment and then runs the
//! script (see `helper/hook.rs`). Script and secrets travel in an anonymous memory file, not in
//! arguments or variables that other processes could read.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;

use carrel_domain::Secret;
use rustix::fs::fstat;

use crate::command_spec::CommandSpec;
use crate::helper::{self, Hook};
use crate::memory_file;
use crate::protocol::to_json;
use crate::spawner::Spawner;

/// A script to run after the operator's login profile.
#[derive(Debug)]
pub struct HookCommand {
    /// The script, as `sh` reads it.
    pub script: String,
    /// The environment that the login shell starts with.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory of the script, wherever the profile goes.
    pub directory: OwnedFd,
    /// Values that no variable of the script may have or, from eight bytes on, contain.
    pub secrets: Vec<Secret>,
    /// Names of variables that the script must not have.
    pub removed: Vec<String>,
}

impl HookCommand {
    /// Returns the command for a spawner, and a receipt that shows afterwards whether the script was
    /// reached.
    ///
    /// The login shell's own text is constant and uses no positional parameter that a profile could
    /// change.
    pub fn into_spec(self, spawner: &Spawner) -> io::Result<(CommandSpec, Receipt)> {
        let hook = Hook {
            script: self.script,
            secrets: self.secrets.iter().map(|secret| secret.expose().to_owned()).collect(),
            removed: self.removed,
        };
        let payload = memory_file::holding(&to_json(&hook))?;
        let receipt = Receipt { payload: payload.try_clone()? };
        let inherited = vec![payload, self.directory.try_clone()?];
        let argv = vec![
            "/bin/sh".into(),
            "-lc".into(),
            format!("exec \"$0\" {}", helper::HOOK).into(),
            spawner.program().into(),
        ];
        let spec = CommandSpec::new(argv, self.directory);
        Ok((CommandSpec { environment: self.environment, inherited, ..spec }, receipt))
    }
}

/// Shows whether a hook's script was reached.
#[derive(Debug)]
pub struct Receipt {
    payload: OwnedFd,
}

impl Receipt {
    /// Returns whether the helper has taken the script. A login profile that exits or replaces its shell
    /// ends the command before that, with any status.
    pub fn script_was_reached(&self) -> io::Result<bool> {
        // The helper empties the payload when it has taken it.
        Ok(fstat(&self.payload)?.st_size == 0)
    }
}
