//! The paths in a policy file: absolute, and never part of the sandbox's own or the system's directories.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::path_expansion;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathUse {
    Read,
    Write,
    /// Commands find programs in it.
    Search,
}

/// Directories that every sandbox has for itself and never shares with the host.
const SANDBOX_OWN: &[&str] = &["/proc", "/sys", "/dev"];

/// Directories that the host runs and reads as root, which no command may change.
const SYSTEM: &[&str] =
    &["/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", "/usr"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) path: PathBuf,
    pub(crate) warnings: Vec<String>,
}

/// Resolves a path as written; the error says why it cannot be used and what to write. A missing path is
/// kept, with a warning. `protected` are files that no command may change.
pub(crate) fn resolve(
    written: &str,
    purpose: PathUse,
    environment: &Environment,
    protected: &[&Path],
) -> Result<Resolved, String> {
    let expanded = path_expansion::expand(OsStr::new(written), Path::new("/"), environment)
        .map_err(|error| error.to_string())?;
    if expanded.relative {
        return Err("it is relative; write the absolute path, or begin it with ~/".to_owned());
    }
    let path = expanded.path;
    check(&path, purpose, protected)?;
    let mut warnings = Vec::new();
    match real_path(&path) {
        Ok(real) if real != path => check(&real, purpose, protected)?,
        Ok(_) => {}
        Err(error) => warnings.push(format!("cannot be used and is skipped: {error}")),
    }
    if purpose == PathUse::Search && path.exists() && !path.is_dir() {
        return Err("it is not a directory; write the directory that holds the program".to_owned());
    }
    warnings.extend(home_warning(&path, environment));
    Ok(Resolved { path, warnings })
}

fn check(path: &Path, purpose: PathUse, protected: &[&Path]) -> Result<(), String> {
    refuse_shared(path)?;
    match purpose {
        PathUse::Write => refuse_writable(path, protected),
        PathUse::Search if path.as_os_str().as_bytes().contains(&b':') => {
            Err("PATH cannot hold a colon; give the directory another name".to_owned())
        }
        PathUse::Read | PathUse::Search => Ok(()),
    }
}

/// Rejects paths that no sandbox shares with the host.
pub(crate) fn refuse_shared(path: &Path) -> Result<(), String> {
    if path.parent().is_none() {
        return Err("it is the whole file system; write the directories that commands need".into());
    }
    match SANDBOX_OWN.iter().find(|own| path.starts_with(own)) {
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

fn home_warning(path: &Path, environment: &Environment) -> Option<String> {
    let home = environment.home()?;
    home.starts_with(path).then(|| {
        "gives commands the whole home directory, keys and tokens included; write the directories they need".to_owned()
    })
}

/// Returns the path with all links resolved; fails if nothing exists there.
#[expect(clippy::disallowed_methods, reason = "the operator's paths lie outside every workspace")]
pub(crate) fn real_path(path: &Path) -> std::io::Result<PathBuf> {
    std::fs::canonicalize(path)
}
