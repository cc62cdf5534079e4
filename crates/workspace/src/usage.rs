//! How much a workspace uses, counted only when something may have changed.

use std::path::{Path, PathBuf};

use carrel_domain::{Timestamp, WorkspaceKey};
use carrel_fsroot::{Durability, Root, UsageLimit};
use serde::{Deserialize, Serialize};
use tracing::debug;

use crate::blocking::blocking;
use crate::error::Error;
use crate::json_file;
use crate::quota::Amount;
use crate::workspaces::{Inner, Workspaces};

/// Whether an older count will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// The last count serves as long as nothing was written through Carrel since.
    #[default]
    Cached,
    /// The tree is counted again, for instance after changes by hand.
    Recount,
}

/// What a workspace uses, and when that was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredUsage {
    /// Bytes and files in use.
    pub amount: Amount,
    /// When they were counted.
    pub as_of: Timestamp,
    /// Whether parts of the tree could not be counted.
    pub incomplete: bool,
}

/// The last count of a workspace, good for as long as the mark is the same.
#[derive(Serialize, Deserialize)]
struct Scan {
    mark: String,
    bytes: u64,
    files: u64,
    incomplete: bool,
    as_of: Timestamp,
}

/// The accounts of a root.
///
/// Each writer leaves a new random mark *before* it begins and another when it is
/// done; a scan remembers the mark it found before it began. A scan is clean only
/// while the two agree, so one that overlapped a write never passes for clean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accounts<'a> {
    pub(crate) own: &'a Root,
}

/// The mark of a workspace that somebody has open and writes to without leaving a new one each time. No
/// scan is clean under it.
const HELD: &str = "held----------------------------";

/// How long a mark is.
const MARK_BYTES: usize = HELD.len();

/// More than the file of a mark has.
const MAX_MARK_FILE_BYTES: u64 = 256;

impl Accounts<'_> {
    /// Notes that the workspace may change at any time.
    pub(crate) fn mark_in_use(self, key: &WorkspaceKey) -> Result<(), Error> {
        self.leave_mark(key, HELD)
    }

    /// Notes that the workspace is about to change, or has just changed.
    pub(crate) fn touch(self, key: &WorkspaceKey) -> Result<(), Error> {
        self.leave_mark(key, &format!("{:032x}", fastrand::u128(..)))
    }

    /// Writes a mark over the last one, which takes no new file: a part of each equals neither.
    fn leave_mark(self, key: &WorkspaceKey, mark: &str) -> Result<(), Error> {
        let file = mark_file(key);
        let doing = format!("could not write {}", self.own.path().join(&file).display());
        self.own.overwrite(&file, mark.as_bytes(), 0o600).map_err(Error::files(doing))
    }

    /// Drops what is known, for a workspace that is new or gone.
    pub(crate) fn forget(self, key: &WorkspaceKey) -> Result<(), Error> {
        json_file::remove(self.own, &scan_file(key))?;
        json_file::remove(self.own, &mark_file(key))
    }

    /// Returns the mark, an empty one if none was ever left. One that is not whole is nothing: whoever
    /// writes it is not done.
    fn mark(self, key: &WorkspaceKey) -> Option<String> {
        match self.own.read_strict(&mark_file(key), MAX_MARK_FILE_BYTES) {
            Ok(mark) => String::from_utf8(mark.get(..MARK_BYTES)?.to_vec()).ok(),
            Err(error) => error.is_not_found().then(String::new),
        }
    }

    fn clean_scan(self, key: &WorkspaceKey) -> Option<Scan> {
        let scan: Scan = json_file::read(self.own, &scan_file(key)).ok().flatten()?;
        (scan.mark != HELD && Some(&scan.mark) == self.mark(key).as_ref()).then_some(scan)
    }

    /// Remembers a scan. It only saves work later, so a full disk is no reason to fail.
    fn remember(self, key: &WorkspaceKey, scan: &Scan) {
        let kept = json_file::write_with(self.own, &scan_file(key), scan, Durability::Buffered);
        if let Err(error) = kept {
            debug!(%key, %error, "the count could not be kept");
        }
    }
}

fn scan_file(key: &WorkspaceKey) -> PathBuf {
    Path::new("usage").join(format!("{key}.json"))
}

fn mark_file(key: &WorkspaceKey) -> PathBuf {
    Path::new("usage").join(format!("{key}.mark"))
}

impl Inner {
    pub(crate) fn measure(
        &self,
        key: &WorkspaceKey,
        directory: &Root,
        freshness: Freshness,
    ) -> Result<MeasuredUsage, Error> {
        let accounts = self.accounts();
        if freshness == Freshness::Cached
            && let Some(scan) = accounts.clean_scan(key)
        {
            return Ok(scan.into());
        }
        let mark = accounts.mark(key);
        let as_of = self.clock.now();
        let usage = directory
            .usage(Path::new("."), UsageLimit::NONE)
            .map_err(Error::files("could not count the workspace"))?;
        let keep = mark.as_ref().is_some_and(|mark| mark != HELD);
        let scan = Scan {
            mark: mark.unwrap_or_default(),
            bytes: usage.bytes,
            files: usage.inodes,
            incomplete: usage.unreadable > 0,
            as_of,
        };
        if keep {
            accounts.remember(key, &scan);
        }
        Ok(scan.into())
    }
}

impl From<Scan> for MeasuredUsage {
    fn from(scan: Scan) -> Self {
        let amount = Amount { bytes: scan.bytes, files: scan.files };
        Self { amount, as_of: scan.as_of, incomplete: scan.incomplete }
    }
}

impl Workspaces {
    /// Returns what a workspace uses; `None` when it has no directory.
    pub async fn usage(
        &self,
        key: &WorkspaceKey,
        freshness: Freshness,
    ) -> Result<Option<MeasuredUsage>, Error> {
        let (inner, key) = (self.inner.clone(), key.clone());
        blocking(move || match inner.open_directory(&key)? {
            Some(directory) => inner.measure(&key, &directory, freshness).map(Some),
            None => Ok(None),
        })
        .await
    }

    /// Notes that a workspace is about to change, or has just changed, so that it is counted again.
    pub async fn touch(&self, key: &WorkspaceKey) -> Result<(), Error> {
        let (inner, key) = (self.inner.clone(), key.clone());
        blocking(move || inner.accounts().touch(&key)).await
    }

    /// Notes that a workspace may change at any time, until it is touched. It is counted each time that
    /// somebody asks.
    pub async fn mark_in_use(&self, key: &WorkspaceKey) -> Result<(), Error> {
        let (inner, key) = (self.inner.clone(), key.clone());
        blocking(move || inner.accounts().mark_in_use(&key)).await
    }

    /// Holds a workspace, and returns what it uses as of now; `None` when it has no directory.
    pub async fn mark_in_use_and_measure(
        &self,
        key: &WorkspaceKey,
    ) -> Result<Option<MeasuredUsage>, Error> {
        let (inner, key) = (self.inner.clone(), key.clone());
        blocking(move || {
            let Some(directory) = inner.open_directory(&key)? else { return Ok(None) };
            let known = inner.accounts().clean_scan(&key);
            inner.accounts().mark_in_use(&key)?;
            let count = || inner.measure(&key, &directory, Freshness::Recount);
            known.map_or_else(count, |scan| Ok(scan.into())).map(Some)
        })
        .await
    }

    /// Holds a workspace, and checks it against its quota; `None` when it has no directory.
    pub async fn mark_in_use_and_check_quota(
        &self,
        key: &WorkspaceKey,
    ) -> Result<Option<MeasuredUsage>, Error> {
        let (inner, key) = (self.inner.clone(), key.clone());
        blocking(move || {
            inner.accounts().mark_in_use(&key)?;
            inner.check_quota(&key, Freshness::Recount)
        })
        .await
    }

    /// Checks a workspace against its quota; `None` when it has no directory.
    pub async fn check_quota(
        &self,
        key: &WorkspaceKey,
        freshness: Freshness,
    ) -> Result<Option<MeasuredUsage>, Error> {
        let (inner, key) = (self.inner.clone(), key.clone());
        blocking(move || inner.check_quota(&key, freshness)).await
    }
}

impl Inner {
    fn check_quota(
        &self,
        key: &WorkspaceKey,
        freshness: Freshness,
    ) -> Result<Option<MeasuredUsage>, Error> {
        let record = self.records().read(key)?;
        let quota = record.map_or(self.quota, |record| record.quota);
        let Some(directory) = self.open_directory(key)? else { return Ok(None) };
        let mut measured = self.measure(key, &directory, freshness)?;
        // A count that was made while something was written may have seen more than there is since. It
        // would stand for ever, because whoever is refused changes nothing.
        if quota.check(measured.amount, measured.incomplete).is_err() {
            measured = self.measure(key, &directory, Freshness::Recount)?;
        }
        quota.check(measured.amount, measured.incomplete).map_err(|exceeded| {
            Error::QuotaExceeded {
                key: key.to_string(),
                used: exceeded.used,
                limit: exceeded.limit,
                used_bytes: exceeded.bytes,
            }
        })?;
        Ok(Some(measured))
    }
}
