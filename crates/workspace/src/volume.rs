//! The volume id of a root, by which servers tell disks apart.

use std::path::Path;

use carrel_domain::VolumeId;
use carrel_fsroot::{Collision, Problem, Root, WriteOptions};

use crate::error::Error;
use crate::json_file::{failed, read_bytes, unreadable};

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
            read(own)?.ok_or_else(|| unreadable(own, file, "it appears and disappears".to_owned()))
        }
        Err(error) => Err(failed("write", own, file, error)),
    }
}

fn read(own: &Root) -> Result<Option<VolumeId>, Error> {
    let file = Path::new(FILE);
    let Some(bytes) = read_bytes(own, file, MAX_BYTES)? else { return Ok(None) };
    let volume = String::from_utf8_lossy(&bytes).trim_end().parse::<VolumeId>();
    volume.map(Some).map_err(|error| unreadable(own, file, error.to_string()))
}
