//! Several forks at once, which share what has to be synced.
//!
//! | step | after a crash |
//! |---|---|
//! | write the records, `ready`, each synced, and then their names | broken forks |
//! | make the empty directories and then the layers, whose mark of the boot is last; fsync the root | broken forks, and whole ones |
//!
//! A record may say `ready` from the start: a fork without its directory or without complete layers is broken, whatever
//! its record says. Copies are made one after the other, since half a copy looks like a whole one.

use std::path::Path;

use carrel_domain::MAX_FORKS;
use carrel_fork::Layers;
use carrel_fsroot::Durability;
use tracing::info;

use crate::create::Created;
use crate::error::Error;
use crate::fork::{ForkKind, MakeFork};
use crate::freeze::FrozenBase;
use crate::lock::Lock;
use crate::record::{Record, State};
use crate::workspaces::{RootInner, Workspaces};

impl Workspaces {
    /// Makes forks of a frozen base, in their order. Returns those that were made also if one fails.
    pub fn fork_many(
        &self,
        base: &FrozenBase,
        requests: &[MakeFork],
    ) -> (Vec<Created>, Result<(), Error>) {
        let (overlays, copies): (Vec<_>, Vec<_>) =
            requests.iter().partition(|request| request.kind == ForkKind::Overlay);
        let (mut made, mut result) = self.overlays(base, &overlays);
        for request in copies {
            if result.is_ok() {
                result = self.fork(base, request).map(|fork| made.push(fork));
            }
        }
        (made, result)
    }

    fn overlays(
        &self,
        base: &FrozenBase,
        requests: &[&MakeFork],
    ) -> (Vec<Created>, Result<(), Error>) {
        let inner = &self.inner;
        let begun = match inner.begin_overlays(base, requests) {
            Ok(begun) => begun,
            Err(error) => return (Vec::new(), Err(error)),
        };
        let (mut made, mut result) = (Vec::new(), Ok(()));
        for (record, _lock) in &begun {
            if result.is_err() {
                // Nothing else is there of it.
                let _ = inner.records().remove(&record.key);
                continue;
            }
            result = inner.make_layers(base, record);
            if result.is_ok() {
                made.push(record.clone());
            }
        }
        let result = result.and_then(|()| if made.is_empty() { Ok(()) } else { inner.sync_root() });
        let created = |record: Record| {
            let path = inner.location(&record.key).workspace;
            let (fork, key) = (record.identifier.as_str(), &base.record.key);
            info!(issue_identifier = fork, base = %key, "Workspace forked");
            Created { created: true, record, path }
        };
        (made.into_iter().map(created).collect(), result)
    }
}

impl RootInner {
    /// Writes the records of forks, and locks them.
    fn begin_overlays(
        &self,
        base: &FrozenBase,
        requests: &[&MakeFork],
    ) -> Result<Vec<(Record, Lock)>, Error> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        if self.forks_of(&base.record.key)?.len() + requests.len() > usize::from(MAX_FORKS) {
            return Err(Error::TooManyForks { key: base.record.key.to_string(), most: MAX_FORKS });
        }
        let mut begun: Vec<(Record, Lock)> = Vec::new();
        let write = |begun: &mut Vec<_>| {
            for request in requests {
                let (record, lock) = self.new_fork(base, request, State::Ready)?;
                self.records().write(&record, Durability::Atomic)?;
                begun.push((record, lock));
            }
            self.records().sync()
        };
        let written = write(&mut begun);
        if written.is_err() {
            for (record, _lock) in &begun {
                let _ = self.records().remove(&record.key);
            }
        }
        written.map(|()| begun)
    }

    fn make_layers(&self, base: &FrozenBase, record: &Record) -> Result<(), Error> {
        self.make_directory(&record.key)?;
        self.give_as(&base.directory, &record.key)?;
        let name = Path::new(record.key.as_str());
        Layers::create(&self.all_layers()?, name, &base.directory)?;
        Ok(())
    }
}
