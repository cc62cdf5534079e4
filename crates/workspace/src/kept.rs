//! Kept work: trees with unsaved work that outlive their workspace, until their time is over.
//!
//! A clean-up removes a workspace at once, so that its name is free again. If the tree has work that is saved
//! nowhere else, it is moved into `.carrel/kept` instead of the trash, beside a record of the same name, and can
//! be restored. Both moves are a rename, so they take the same time for any size. A crash at any step leaves the
//! workspace or the kept tree:
//!
//! | step of keeping | after a crash |
//! |---|---|
//! | write the kept record; fsync | the workspace, and a kept record without a tree, which clean-up deletes |
//! | move the directory; fsync both directories | the kept tree, and a workspace record without a directory, which counts as absent |
//! | delete the workspace's record | the kept tree |
//!
//! | step of restoring | after a crash |
//! |---|---|
//! | write the workspace's record; fsync | the kept tree, and a workspace record without a directory; the next restore goes on |
//! | move the directory; fsync both directories | the workspace, and a kept record without a tree |
//! | delete the kept record | the workspace |
//!
//! One process at a time restores, drops or expires kept work, under a lock of its own. A workspace that is kept
//! or restored is locked exclusively as well.

use std::path::{Path, PathBuf};

use carrel_domain::{Identifier, KeyChoice, Layout, Timestamp, WorkspaceKey};
use carrel_fsroot::{Collision, Durability, FileKind, Root};
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use crate::error::Error;
use crate::gc::{GcAction, GcReport};
use crate::json_file;
use crate::lock::{self, Lock, Mode};
use crate::quota::Amount;
use crate::record::{Record, State};
use crate::root::{SCHEMA, names_in, refuse_newer};
use crate::trash::TRASH;
use crate::usage::Freshness;
use crate::workspaces::{RootInner, Workspaces};

pub(crate) const KEPT: &str = "kept";

const KEPT_LOCK: &str = "+kept";

/// A tree that is kept because it has unsaved work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptWork {
    /// The name, by which it is restored and dropped.
    pub name: String,
    /// The identifier of the workspace; `None` if the workspace had no record.
    pub identifier: Option<Identifier>,
    /// The key that the workspace had.
    pub key: WorkspaceKey,
    /// The directory of the tree.
    #[serde(with = "carrel_domain::lossy_path")]
    pub path: PathBuf,
    /// The unsaved work, in words.
    pub reasons: Vec<String>,
    /// The time since which it is kept; `None` if its record is lost.
    pub kept_at: Option<Timestamp>,
    /// The time after which a clean-up deletes it; `None` if its record is lost, and then no clean-up does.
    pub until: Option<Timestamp>,
    /// Bytes and files, as they were counted when it was kept; `None` if they could not be.
    pub usage: Option<Amount>,
}

/// A request to make a workspace of kept work again.
#[derive(Clone, Debug)]
pub struct Restore {
    /// The name of the kept work, or the key or identifier of its workspace if only one is kept of it.
    pub name: String,
    /// The identifier of the restored workspace; that of the former one if absent.
    pub identifier: Option<Identifier>,
}

/// A restored workspace, and the name that its tree was kept under.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the summary defines the fields")]
pub struct Restored {
    pub record: Record,
    pub path: PathBuf,
    pub name: String,
}

/// The file beside a kept tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptRecord {
    schema: u64,
    key: WorkspaceKey,
    reasons: Vec<String>,
    kept_at: Timestamp,
    until: Timestamp,
    usage: Option<Amount>,
    /// The record of the workspace, from which it is restored.
    workspace: Option<Record>,
}

impl Workspaces {
    /// Lists the kept work in the order of names.
    pub async fn kept(&self) -> Result<Vec<KeptWork>, Error> {
        self.blocking(RootInner::kept).await
    }

    /// Makes a workspace of kept work again: the same tree, under its former identifier and, if it is free, its
    /// former key. No hook runs.
    pub async fn restore(&self, request: Restore) -> Result<Restored, Error> {
        let restored = self.blocking(move |inner| inner.restore(&request)).await?;
        let issue_identifier = restored.record.identifier.as_str();
        let (workspace, name) = (restored.path.display(), restored.name.as_str());
        info!(issue_identifier, %workspace, name, "Kept work restored");
        Ok(restored)
    }

    /// Moves kept work into the trash, by its name.
    pub async fn drop_kept(&self, name: &str) -> Result<KeptWork, Error> {
        let name = name.to_owned();
        self.blocking(move |inner| {
            let _turn = inner.locks().take(KEPT_LOCK, Mode::Exclusive)?;
            let all = inner.kept()?;
            let found = all.into_iter().find(|kept| kept.name == name);
            let kept = found.ok_or_else(|| inner.no_kept_work(&name))?;
            inner.discard_kept(&kept.name)?;
            info!(name, "Kept work dropped");
            Ok(kept)
        })
        .await
    }

    /// Returns true if a sweep has something to do: the trash is not empty, or the time of kept work is over.
    pub fn needs_sweep(&self) -> Result<bool, Error> {
        let now = self.inner.clock.now();
        Ok(!self.trash()?.is_empty() || self.inner.kept()?.iter().any(|kept| kept.is_over(now)))
    }

    /// Moves kept work whose time is over into the trash, or all of it, unless another process is at it.
    pub(crate) fn expire_kept(&self, all: bool, report: &mut GcReport) -> Result<(), Error> {
        let inner = &self.inner;
        let Some(_turn) = inner.locks().attempt(KEPT_LOCK, Mode::Exclusive)? else {
            return Ok(());
        };
        let now = inner.clock.now();
        for kept in inner.kept()?.into_iter().filter(|kept| all || kept.is_over(now)) {
            match inner.discard_kept(&kept.name) {
                Ok(()) => {
                    info!(name = kept.name, "Kept work dropped");
                    report.actions.push(GcAction::DropKept { name: kept.name });
                }
                Err(error) => report.failed.push(format!("{}: {error}", kept.name)),
            }
        }
        inner.delete_stale_kept_records()
    }
}

impl KeptWork {
    /// Returns true if the time of the kept work is over.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

impl RootInner {
    /// Moves the directory of a locked workspace into the kept part of the trash.
    pub(crate) fn keep(
        &self,
        key: &WorkspaceKey,
        workspace: Option<Record>,
        directory: &Root,
        reasons: Vec<String>,
    ) -> Result<KeptWork, Error> {
        let kept_at = self.clock.now();
        let name = format!("{key}.{}.{:08x}", kept_at.as_millis(), fastrand::u32(..));
        let usage = self.measure(key, directory, Freshness::Cached).ok().map(|found| found.amount);
        let until = kept_at.after(self.keep_unsaved);
        let key = key.clone();
        let record = KeptRecord { schema: SCHEMA, key, reasons, kept_at, until, usage, workspace };
        let file = record_file(&name);
        json_file::write(&self.root.own, &file, &record, Durability::Synced)?;
        if let Err(error) = self.move_out(&record.key, directory, Path::new(KEPT), &name) {
            json_file::remove(&self.root.own, &file)?;
            return Err(error);
        }
        let kept = self.kept_work(name, Some(record))?;
        let KeptWork { name, identifier, reasons, path, .. } = &kept;
        let issue_identifier = identifier.as_ref().map(Identifier::as_str);
        let (reasons, path) = (reasons.join(", "), path.display());
        info!(issue_identifier, name, %path, %until, reasons, "Unsaved work kept");
        Ok(kept)
    }

    pub(crate) fn kept(&self) -> Result<Vec<KeptWork>, Error> {
        let entries = self.root.own.list(Path::new(KEPT));
        let entries = entries.map_err(Error::files("could not list the kept work"))?;
        let trees = entries.into_iter().filter(|entry| entry.kind == FileKind::Directory);
        let names = trees.map(|entry| entry.name.to_string_lossy().into_owned());
        let found = names.map(|name| {
            let record = self.kept_record(&name);
            self.kept_work(name, record)
        });
        // A directory under another name was put there by hand.
        Ok(found.filter_map(Result::ok).collect())
    }

    /// Reads the record of kept work; `None` if it is missing or damaged.
    fn kept_record(&self, name: &str) -> Option<KeptRecord> {
        let file = record_file(name);
        let read = json_file::read::<KeptRecord>(&self.root.own, &file);
        let checked = read.and_then(|record| {
            let schema = record.as_ref().map_or(SCHEMA, |record| record.schema);
            refuse_newer(&self.root.own, &file, schema).map(|()| record)
        });
        checked.unwrap_or_else(|error| {
            warn!(name, %error, "The record of kept work cannot be read");
            None
        })
    }

    fn kept_work(&self, name: String, record: Option<KeptRecord>) -> Result<KeptWork, Error> {
        let path = self.root.own.path().join(KEPT).join(&name);
        let Some(record) = record else {
            let key = name.rsplitn(3, '.').nth(2).and_then(WorkspaceKey::from_name);
            let key = key.ok_or_else(|| self.no_kept_work(&name))?;
            let reasons = vec!["its record is lost".to_owned()];
            let (identifier, kept_at, until, usage) = (None, None, None, None);
            return Ok(KeptWork { name, identifier, key, path, reasons, kept_at, until, usage });
        };
        let KeptRecord { key, reasons, kept_at, until, usage, workspace, .. } = record;
        let identifier = workspace.map(|record| record.identifier);
        let (kept_at, until) = (Some(kept_at), Some(until));
        Ok(KeptWork { name, identifier, key, path, reasons, kept_at, until, usage })
    }

    fn no_kept_work(&self, name: &str) -> Error {
        Error::KeptNotFound { name: name.to_owned(), root: self.root.path().to_owned() }
    }

    /// Returns the kept work of a name, or the only one of a key or an identifier.
    fn find_kept(&self, name: &str) -> Result<KeptWork, Error> {
        let is_of = |kept: &KeptWork| {
            let identifier = kept.identifier.as_ref().map(Identifier::as_str);
            kept.key.as_str() == name || identifier == Some(name)
        };
        let all = self.kept()?;
        if let Some(kept) = all.iter().find(|kept| kept.name == name) {
            return Ok(kept.clone());
        }
        let mut found: Vec<KeptWork> = all.into_iter().filter(is_of).collect();
        match found.pop() {
            None => Err(self.no_kept_work(name)),
            Some(only) if found.is_empty() => Ok(only),
            Some(last) => {
                let names = found.into_iter().chain([last]).map(|kept| kept.name).collect();
                Err(Error::KeptAmbiguous { name: name.to_owned(), names })
            }
        }
    }

    fn restore(&self, request: &Restore) -> Result<Restored, Error> {
        let _turn = self.locks().take(KEPT_LOCK, Mode::Exclusive)?;
        let kept = self.find_kept(&request.name)?;
        let saved = self.kept_record(&kept.name).and_then(|record| record.workspace);
        let former = saved.as_ref().map(|record| record.identifier.clone());
        let Some(identifier) = request.identifier.clone().or(former) else {
            return Err(Error::KeptUnnamed { name: kept.name });
        };
        let (key, _lock) = self.lock_for_restore(&identifier, &kept)?;
        let location = self.location(&key);
        if self.open_directory(&key)?.is_some() {
            return Err(Error::Exists { identifier, location });
        }
        let record = self.restored_record(identifier, key, saved);
        let path = location.workspace;
        self.usage_cache().remove(&record.key)?;
        self.records().write(&record, Durability::Synced)?;
        // From here on an error leaves a record without a directory, which counts as absent.
        let source = Path::new(KEPT).join(&kept.name);
        let target = Path::new(record.key.as_str());
        let own = &self.root.own;
        let moved = own.rename_into(&source, &self.root.directory, target, Collision::Refuse);
        moved.map_err(Error::files(format!("could not move {} back", kept.path.display())))?;
        self.sync_root()?;
        self.sync_own(Path::new(KEPT))?;
        json_file::remove(own, &record_file(&kept.name))?;
        Ok(Restored { record, path, name: kept.name })
    }

    /// Locks the key that the restored workspace gets: one that the identifier holds, else its former one, else
    /// the first that is free.
    fn lock_for_restore(
        &self,
        identifier: &Identifier,
        kept: &KeptWork,
    ) -> Result<(WorkspaceKey, Lock), Error> {
        let base = WorkspaceKey::derive(identifier);
        let name = lock::shared_name("choose", &base);
        let _choosing = self.locks().take(&name, Mode::Exclusive)?;
        let key = match self.choose(identifier)? {
            KeyChoice::Held(key) => key,
            KeyChoice::Free(key) => {
                let is_same = kept.identifier.as_ref() == Some(identifier);
                let is_free = is_same && self.records().read(&kept.key)?.is_none();
                if is_free { kept.key.clone() } else { key }
            }
        };
        let lock = self.locks().take(key.as_str(), Mode::Exclusive)?;
        Ok((key, lock))
    }

    fn restored_record(
        &self,
        identifier: Identifier,
        key: WorkspaceKey,
        saved: Option<Record>,
    ) -> Record {
        let now = self.clock.now();
        let fresh = || Record {
            schema: SCHEMA,
            identifier: identifier.clone(),
            issue_id: None,
            tracker: None,
            key: key.clone(),
            layout: Layout::default(),
            state: State::Ready,
            keep_unsaved: false,
            created_at: now,
            last_used_at: now,
            quota: self.quota,
            fork: None,
            repos_cached: Vec::new(),
            tasks_run: 0,
            hook_runs: Vec::new(),
        };
        let saved = saved.unwrap_or_else(fresh);
        // The tracker's id belongs to the former identifier.
        let issue_id = saved.issue_id.clone().filter(|_| saved.identifier == identifier);
        let (state, keep_unsaved) = (State::Ready, false);
        Record { identifier, issue_id, key, state, keep_unsaved, last_used_at: now, ..saved }
    }

    fn discard_kept(&self, name: &str) -> Result<(), Error> {
        let own = &self.root.own;
        let (source, target) = (Path::new(KEPT).join(name), Path::new(TRASH).join(name));
        let moved = own.rename(&source, &target, Collision::Refuse);
        moved.map_err(Error::files(format!("could not move the kept work {name} to the trash")))?;
        self.sync_own(Path::new(KEPT))?;
        json_file::remove(own, &record_file(name))
    }

    /// Deletes records without a tree, which crashes left, unless their workspace is being kept right now.
    fn delete_stale_kept_records(&self) -> Result<(), Error> {
        let names = names_in(&self.root.own, KEPT, "could not list the kept work")?;
        for name in names.iter().filter_map(|name| name.strip_suffix(".json")) {
            let is_tree =
                |name: &str| self.root.own.link_metadata(&Path::new(KEPT).join(name)).is_ok();
            let key = name.rsplitn(3, '.').nth(2).and_then(WorkspaceKey::from_name);
            let Some(key) = key.filter(|_| !is_tree(name)) else { continue };
            let lock = self.locks().attempt(key.as_str(), Mode::Exclusive)?;
            if lock.is_some() && !is_tree(name) {
                json_file::remove(&self.root.own, &record_file(name))?;
            }
        }
        Ok(())
    }
}

fn record_file(name: &str) -> PathBuf {
    Path::new(KEPT).join(format!("{name}.json"))
}
