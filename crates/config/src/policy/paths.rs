//! The paths of a policy file: absolute, and never what a sandbox must keep to itself.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::paths;

/// What a path of the policy is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Commands may read it.
    Read,
    /// Commands may change it.
    Write,
    /// Commands find programs in it.
    Search,
}

/// Where the sandbox puts its own, or nothing.
const OWN: &[&str] = &["/proc", "/sys", "/dev"];

/// What the host runs and reads as root.
const SYSTEM: &[&str] =
    &["/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", "/usr"];

/// A path that can be used, and what is doubtful about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) path: PathBuf,
    pub(crate) doubts: Vec<String>,
}

/// Resolves a path as it is written, or says why it cannot be used and what to write.
///
/// A missing path is kept, with a doubt. `protected` are the files that no command may change.
pub(crate) fn resolve(
    written: &str,
    purpose: Use,
    environment: &Environment,
    protected: &[&Path],
) -> Result<Resolved, String> {
    let expanded = paths::expand(OsStr::new(written), Path::new("/"), environment)
        .map_err(|error| error.to_string())?;
    if expanded.relative {
        return Err("it is relative; write the absolute path, or begin it with ~/".to_owned());
    }
    let path = expanded.path;
    judge(&path, purpose, protected)?;
    let mut doubts = Vec::new();
    match look(&path) {
        Ok(real) if real != path => judge(&real, purpose, protected)?,
        Ok(_) => {}
        Err(error) => doubts.push(format!("cannot be used and is skipped: {error}")),
    }
    if purpose == Use::Search && is_other_than_directory(&path) {
        return Err("it is not a directory; write the directory that holds the program".to_owned());
    }
    doubts.extend(home_doubt(&path, environment));
    Ok(Resolved { path, doubts })
}

fn judge(path: &Path, purpose: Use, protected: &[&Path]) -> Result<(), String> {
    refuse_shared(path)?;
    match purpose {
        Use::Read => Ok(()),
        Use::Write => refuse_writable(path, protected),
        Use::Search => refuse_colon(path),
    }
}

fn refuse_colon(path: &Path) -> Result<(), String> {
    if path.as_os_str().as_bytes().contains(&b':') {
        return Err("PATH cannot hold a colon; give the directory another name".to_owned());
    }
    Ok(())
}

/// Refuses what no sandbox shares with the host.
pub(crate) fn refuse_shared(path: &Path) -> Result<(), String> {
    if path.parent().is_none() {
        return Err("it is the whole file system; write the directories that commands need".into());
    }
    match OWN.iter().find(|own| path.starts_with(own)) {
        Some(own) => {
            Err(format!("every sandbox has its own {own}, and never the host's; take the path out"))
        }
        None => Ok(()),
    }
}

fn refuse_writable(path: &Path, protected: &[&Path]) -> Result<(), String> {
    if let Some(system) = SYSTEM.iter().find(|system| path.starts_with(system)) {
        return Err(format!(
            "{system} belongs to the host's own programs; write a directory below /srv, /var or ~"
        ));
    }
    match protected.iter().find(|file| file.starts_with(path)) {
        Some(file) => Err(format!(
            "commands could then change the policy {}; write a directory that does not hold it",
            file.display()
        )),
        None => Ok(()),
    }
}

fn home_doubt(path: &Path, environment: &Environment) -> Option<String> {
    let home = environment.home()?;
    home.starts_with(path).then(|| {
        "gives commands the whole home directory, keys and tokens included; write the directories they need".to_owned()
    })
}

/// Returns the path without links, if something is there.
#[expect(
    clippy::disallowed_methods,
    reason = "the operator's own paths lie outside every workspace"
)]
pub(crate) fn look(path: &Path) -> std::io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the operator's own paths lie outside every workspace"
)]
fn is_other_than_directory(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_dir())
}
