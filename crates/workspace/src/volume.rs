//! The volume id of a root, by which servers tell disks apart.

use std::path::Path;

use carrel_domain::VolumeId;
use carrel_fsroot::{Collision, Problem, Root, WriteOptions};

use crate::error::Error;

const FILE: &str = "volume";

const MAX_BYTES: u64 = 100;

/// Returns the volume id, generated on first use. Of several processes at once, one wins.
pub(crate) fn volume(own: &Root) -> Result<VolumeId, Error> {
    if let Some(volume) = read(own)? {
        return Ok(volume);
    }
    let file = Path::new(FILE);
    let options = WriteOptions {
        collision: Collision::Refuse,
        new_mode: Some(0o600),
        ..WriteOptions::default()
    };
    let made = VolumeId::generate();
    match own.write(file, format!("{made}\n").as_bytes(), options) {
        Ok(()) => Ok(made),
        Err(error) if matches!(error.problem(), Problem::Exists) => {
            read(own)?.ok_or_else(|| unreadable(own, "it appears and disappears".to_owned()))
        }
        Err(error) => {
            let doing = format!("could not write {}", own.path().join(file).display());
            Err(Error::files(doing)(error))
        }
    }
}

fn read(own: &Root) -> Result<Option<VolumeId>, Error> {
    let file = Path::new(FILE);
    let bytes = match own.read_strict(file, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => {
            let doing = format!("could not read {}", own.path().join(file).display());
            return Err(Error::files(doing)(error));
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    let volume = text.trim_end().parse::<VolumeId>();
    volume.map(Some).map_err(|error| unreadable(own, error.to_string()))
}

fn unreadable(own: &Root, reason: String) -> Error {
    Error::RecordUnreadable { path: own.path().join(FILE), reason }
}
