//! Commands of the operator, run by a login shell that is kept from passing on secrets.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;

use carrel_domain::Secret;
use rustix::fs::fstat;

use crate::helper::{self, Hook};
use crate::memory_file;
use crate::protocol::to_json;
use crate::spawner::Spawner;
use crate::spec::CommandSpec;

/// A script to run after the operator's login profile.
#[derive(Debug)]
pub struct HookCommand {
    /// The script, as `sh` reads it.
    pub script: String,
    /// The environment that the login shell starts with.
    pub environment: Vec<(OsString, OsString)>,
    /// Where the script starts, whatever the profile does.
    pub directory: OwnedFd,
    /// Values that no variable of the script may have or, from eight bytes on, contain.
    pub secrets: Vec<Secret>,
    /// Names of variables that the script must not have.
    pub removed: Vec<String>,
}

impl HookCommand {
    /// Describes the command, for the spawner that is to run it, with a receipt that tells later
    /// whether the script was reached at all.
    ///
    /// Neither script nor secrets are in an argument of the login shell, whose text is constant and
    /// uses no positional parameter that a profile could change.
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

/// Tells whether a hook's script was reached.
#[derive(Debug)]
pub struct Receipt {
    payload: OwnedFd,
}

impl Receipt {
    /// Returns whether the script was handed over to its shell. A login profile that exits, or
    /// replaces its shell, ends the command before that, and with any status.
    pub fn script_was_reached(&self) -> io::Result<bool> {
        // The helper empties the payload when it has taken it.
        Ok(fstat(&self.payload)?.st_size == 0)
    }
}
