//! Small files of the server, most of them JSON, replaced by rename.

use std::path::Path;

use carrel_fsroot::{Durability, Root, WriteOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

const MAX_BYTES: u64 = 1024 * 1024;

/// Reads a file; `None` if it does not exist.
pub(crate) fn read<T: DeserializeOwned>(own: &Root, file: &Path) -> Result<Option<T>, Error> {
    let Some(bytes) = read_bytes(own, file, MAX_BYTES)? else { return Ok(None) };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| unreadable(own, file, error.to_string()))
}

/// Reads the bytes of a file; `None` if it does not exist.
pub(crate) fn read_bytes(own: &Root, file: &Path, limit: u64) -> Result<Option<Vec<u8>>, Error> {
    match own.read_strict(file, limit) {
        Err(error) if error.is_not_found() => Ok(None),
        read => read.map(Some).map_err(|error| failed("read", own, file, error)),
    }
}

pub(crate) fn write(
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
    own.write(file, &bytes, options).map_err(|error| failed("write", own, file, error))
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

/// Adds the failed verb and the absolute path to the error of a file.
pub(crate) fn failed(verb: &str, own: &Root, file: &Path, error: carrel_fsroot::Error) -> Error {
    Error::files(format!("could not {verb} {}", own.path().join(file).display()))(error)
}

pub(crate) fn unreadable(own: &Root, file: &Path, reason: String) -> Error {
    Error::RecordUnreadable { path: own.path().join(file), reason }
}
