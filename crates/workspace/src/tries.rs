//! The records of tries, below the root's own directory: `.carrel/tries/ID`.
//!
//! | file | what it is |
//! |---|---|
//! | `record.json` | the record, replaced by rename and synced |
//! | `input-N` | the patch or prompt of candidate N |
//! | `run-N.log`, `verify-N.log`, `score-N.log` | whole outputs |
//! | `N.diff` | what candidate N changed |
//!
//! The process that works on a try holds its lock. A crash between making the directory and writing the record leaves
//! a directory without a record, which the next [`Tries::create`] deletes.

use std::fs::File;
use std::path::{Path, PathBuf};

use carrel_domain::TrialId;
use carrel_fsroot::{Durability, WriteOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::json_file;
use crate::lock::{Lock, Mode};
use crate::root::names_in;
use crate::workspaces::Workspaces;

pub(crate) const TRIES: &str = "tries";

const RECORD: &str = "record.json";

/// Bounds a record in memory. A hundred candidates with their outputs stay far below.
const MAX_RECORD_BYTES: u64 = 16 << 20;

const OWNER_ONLY: u32 = 0o700;

/// The records of the tries of a root.
#[derive(Clone, Debug)]
pub struct Tries {
    workspaces: Workspaces,
}

/// The right to work on a try. Released when dropped, or with the process.
#[derive(Debug)]
pub struct TryLock {
    _lock: Lock,
}

impl Workspaces {
    /// Returns the records of tries.
    pub fn tries(&self) -> Tries {
        Tries { workspaces: self.clone() }
    }
}

impl Tries {
    /// Makes the directory of a new try, which the caller alone works on.
    pub fn create(&self) -> Result<(TrialId, TryLock), Error> {
        self.delete_half_made()?;
        loop {
            let id = TrialId::of_number(fastrand::u32(..));
            let Some(lock) = self.lock(&id)? else { continue };
            let failed = Error::files("could not make the directory of a try");
            match self.own().create_directory(&directory(&id), OWNER_ONLY) {
                Err(_) if self.exists(&id) => {}
                made => {
                    made.map_err(failed)?;
                    self.workspaces.inner.sync_own(Path::new(TRIES))?;
                    return Ok((id, lock));
                }
            }
        }
    }

    /// Takes the right to work on a try without waiting; none if another process has it.
    pub fn lock(&self, id: &TrialId) -> Result<Option<TryLock>, Error> {
        let lock = self.workspaces.inner.locks().attempt(&lock_name(id), Mode::Exclusive)?;
        Ok(lock.map(|mut lock| {
            lock.note("works on a try");
            TryLock { _lock: lock }
        }))
    }

    /// Reads the record of a try; fails with [`Error::TryNotFound`] if there is none.
    pub fn read<T: DeserializeOwned>(&self, id: &TrialId) -> Result<T, Error> {
        let file = directory(id).join(RECORD);
        let bytes = json_file::read_bytes(self.own(), &file, MAX_RECORD_BYTES)?;
        let bytes = bytes.ok_or_else(|| self.not_found(id))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| json_file::unreadable(self.own(), &file, error.to_string()))
    }

    /// Writes the record of a try. When it returns, the record survives a power loss.
    pub fn write(&self, id: &TrialId, record: &impl Serialize) -> Result<(), Error> {
        json_file::write(self.own(), &directory(id).join(RECORD), record, Durability::Synced)
    }

    /// Returns the ids of all tries that have a record.
    pub fn ids(&self) -> Result<Vec<TrialId>, Error> {
        let mut ids = self.directories()?;
        ids.retain(|id| self.has_record(id));
        Ok(ids)
    }

    /// Writes a file of a try whole; a synced one survives a power loss.
    pub fn write_file(
        &self,
        id: &TrialId,
        name: &str,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<(), Error> {
        let path = directory(id).join(name);
        let options = WriteOptions { durability, new_mode: Some(0o600), ..WriteOptions::default() };
        let written = self.own().write(&path, bytes, options);
        written.map_err(|error| json_file::failed("write", self.own(), &path, error))
    }

    /// Reads a file of a try; none if it does not exist.
    pub fn read_file(
        &self,
        id: &TrialId,
        name: &str,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        json_file::read_bytes(self.own(), &directory(id).join(name), limit)
    }

    /// Opens a new and empty file of a try for a log.
    pub fn new_log(&self, id: &TrialId, name: &str) -> Result<File, Error> {
        let path = directory(id).join(name);
        json_file::remove(self.own(), &path)?;
        let file = self.own().open_or_create(&path, 0o600);
        file.map_err(|error| json_file::failed("make", self.own(), &path, error))
    }

    /// Returns the path of the directory of a try, for people.
    pub fn path(&self, id: &TrialId) -> PathBuf {
        self.own().path().join(directory(id))
    }

    /// Deletes the record of a try; the next [`Tries::create`] deletes the rest.
    pub fn forget(&self, id: &TrialId) -> Result<(), Error> {
        json_file::remove(self.own(), &directory(id).join(RECORD))
    }

    /// Deletes the record and the files of a try.
    pub fn remove(&self, id: &TrialId, lock: TryLock) -> Result<(), Error> {
        // Without a record it is no try any more, whatever of the rest stays.
        self.forget(id)?;
        let failed = Error::files("could not delete a try");
        match self.own().remove_tree(&directory(id)) {
            Err(error) if !error.is_not_found() => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        drop(lock);
        self.workspaces.inner.locks().remove_idle(&lock_name(id))
    }

    fn own(&self) -> &carrel_fsroot::Root {
        &self.workspaces.inner.root.own
    }

    fn directories(&self) -> Result<Vec<TrialId>, Error> {
        let names = names_in(self.own(), TRIES, "could not list tries")?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    fn exists(&self, id: &TrialId) -> bool {
        self.own().link_metadata(&directory(id)).is_ok()
    }

    fn has_record(&self, id: &TrialId) -> bool {
        self.own().link_metadata(&directory(id).join(RECORD)).is_ok()
    }

    fn delete_half_made(&self) -> Result<(), Error> {
        for id in self.directories()?.iter().filter(|id| !self.has_record(id)) {
            // A process that makes one right now holds the lock.
            if let Some(lock) = self.lock(id)? {
                self.remove(id, lock)?;
            }
        }
        Ok(())
    }

    fn not_found(&self, id: &TrialId) -> Error {
        let root = self.workspaces.path().to_owned();
        Error::TryNotFound { id: id.clone(), root }
    }
}

fn directory(id: &TrialId) -> PathBuf {
    Path::new(TRIES).join(id.as_str())
}

/// No key contains `+`.
fn lock_name(id: &TrialId) -> String {
    format!("+try-{id}")
}
