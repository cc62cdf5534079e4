//! The data directory of the service, locked by one server at a time.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use carrel_api::auth::KEY_FILE;
use carrel_config::Environment;
use carrel_config::environment::CARREL_TOKEN_SECRET;
use carrel_domain::Code;
use carrel_store::{Sqlite, SqliteOptions};

use crate::error::{CliError, Result};

/// The lock file of the server that uses the directory.
const LOCK_FILE: &str = "serve.lock";

/// A data directory that this process has locked. The lock ends with the process.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    path: PathBuf,
    _lock: File,
}

impl DataDirectory {
    /// Opens the directory, and makes it if it is missing, for its owner alone.
    #[expect(clippy::disallowed_methods, reason = "the server's own directory, in no workspace")]
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = CliError::data(path);
        let path = make(path)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.join(LOCK_FILE))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(std::fs::TryLockError::WouldBlock) => {
                let message = format!("another carrel serve uses {}", path.display());
                Err(CliError::new(Code::WorkspaceBusy, message).at(&path))
            }
            Err(std::fs::TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether a key for tokens was set or made before.
    pub(super) fn has_key(&self, environment: &Environment) -> bool {
        let set = environment.get(CARREL_TOKEN_SECRET).is_some_and(|secret| !secret.is_empty());
        set || self.path.join(KEY_FILE).exists()
    }
}

/// Makes a directory for its owner alone, if it is missing, and returns where it really is.
#[expect(clippy::disallowed_methods, reason = "the server's own directory, in no workspace")]
pub(crate) fn make(path: &Path) -> Result<PathBuf> {
    let failed = CliError::data(path);
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let path = std::fs::canonicalize(path).map_err(failed)?;
    check_owner(&path).map_err(failed)?;
    Ok(path)
}

/// Opens the database in the directory, and makes it if it is missing.
pub(crate) fn database(directory: &Path) -> Result<Sqlite> {
    let path = directory.join("carrel.db");
    Sqlite::open(&SqliteOptions { path: path.clone() }).map_err(|error| {
        let subject = format!("the database {} cannot be used", path.display());
        CliError::from(error).context(subject).at(&path)
    })
}

/// Refuses a directory that others own or may change.
#[expect(clippy::disallowed_methods, reason = "the server's own directory, in no workspace")]
fn check_owner(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::metadata(path)?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(io::Error::other("others may write to it; `chmod go-w` it"));
    }
    Ok(())
}
