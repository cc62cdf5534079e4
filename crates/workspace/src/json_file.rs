//! Small JSON files of the server, replaced by rename.

use std::path::Path;

use carrel_fsroot::{Durability, Root, WriteOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

const MAX_BYTES: u64 = 1024 * 1024;

/// Reads a file; `None` if it does not exist.
pub(crate) fn read<T: DeserializeOwned>(own: &Root, file: &Path) -> Result<Option<T>, Error> {
    let bytes = match own.read_strict(file, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => {
            let doing = format!("could not read {}", own.path().join(file).display());
            return Err(Error::files(doing)(error));
        }
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::RecordUnreadable {
        path: own.path().join(file),
        reason: error.to_string(),
    })
}

pub(crate) fn write(own: &Root, file: &Path, value: &impl Serialize) -> Result<(), Error> {
    write_with(own, file, value, Durability::Synced)
}

pub(crate) fn write_with(
    own: &Root,
    file: &Path,
    value: &impl Serialize,
    durability: Durability,
) -> Result<(), Error> {
    let mut bytes = serde_json::to_vec(value).map_err(|error| {
        Error::Interrupted(format!("a record cannot be written as JSON: {error}"))
    })?;
    bytes.push(b'\n');
    let options = WriteOptions { durability, new_mode: Some(0o600), ..WriteOptions::default() };
    let doing = format!("could not write {}", own.path().join(file).display());
    own.write(file, &bytes, options).map_err(Error::files(doing))
}

/// Removes a file. A missing one is no error.
pub(crate) fn remove(own: &Root, file: &Path) -> Result<(), Error> {
    match own.remove_file(file) {
        Err(error) if !error.is_not_found() => {
            Err(Error::files("could not remove a record")(error))
        }
        _ => Ok(()),
    }
}
