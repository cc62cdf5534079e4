//! The record of a workspace: a JSON file of the server, outside the workspace.
//!
//! Records are replaced by rename, so a reader sees the old or the new one. Several processes may update
//! one record; they do so under one of a few locks that all keys share.

use std::path::{Path, PathBuf};

use carrel_domain::{Identifier, Layout, Timestamp, WorkspaceKey};
use carrel_fsroot::{Durability, Root};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::fork::Fork;
use crate::hooks::HookRun;
use crate::json_file;
use crate::lock::{self, Mode};
use crate::quota::Quota;
use crate::root::{names_in, refuse_newer};
use crate::workspaces::RootInner;

/// The state of a workspace in its life.
///
/// A workspace `creating` has not passed `after_create`, and its directory is discarded by the next create;
/// one `removing` is finished by the next create or clean-up. Both are normal only while the lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the summary defines the variants")]
pub enum State {
    Creating,
    Ready,
    Removing,
}

/// The name of a tracker. Equal names are the same tracker; the location is for people.
#[derive(Clone, Debug, Eq, Serialize, Deserialize)]
pub struct TrackerName {
    /// A name that no other tracker has.
    pub name: String,
    /// A description of where it is, for messages.
    pub location: String,
}

impl PartialEq for TrackerName {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The record of a workspace, as its file in `.carrel/records` has it.
///
/// Written by create, remove and hook runs; opening a workspace updates `last_used_at`, at most every ten
/// seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the undocumented names say it all")]
pub struct Record {
    pub(crate) schema: u64,
    pub identifier: Identifier,
    /// The tracker's own id of the issue, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue_id: Option<String>,
    /// The tracker of the issue, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracker: Option<TrackerName>,
    pub key: WorkspaceKey,
    pub layout: Layout,
    pub state: State,
    /// The removal in progress keeps unsaved work, also if another process finishes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) keep_unsaved: bool,
    pub created_at: Timestamp,
    /// The time of its last use, precise to ten seconds.
    pub last_used_at: Timestamp,
    pub quota: Quota,
    /// The base, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
    #[serde(default)]
    pub repos_cached: Vec<String>,
    #[serde(default)]
    pub tasks_run: u64,
    /// The last ten hook runs, oldest first.
    #[serde(default)]
    pub hook_runs: Vec<HookRun>,
}

const MAX_HOOK_RUNS: usize = 10;

impl Record {
    /// Returns the tracker's id of the issue, or the identifier if there is none.
    pub fn issue_id(&self) -> &str {
        self.issue_id.as_deref().unwrap_or(self.identifier.as_str())
    }

    /// Returns the record's tracker, if it is another one than `tracker`.
    pub fn foreign_to(&self, tracker: Option<&TrackerName>) -> Option<&TrackerName> {
        self.tracker.as_ref().filter(|own| tracker.is_some_and(|other| other != *own))
    }

    pub(crate) fn add_hook_run(&mut self, run: HookRun) {
        if self.hook_runs.len() >= MAX_HOOK_RUNS {
            self.hook_runs.remove(0);
        }
        self.hook_runs.push(run);
    }
}

impl RootInner {
    /// Updates the record of a workspace that several processes may use, and returns it; `None` if there
    /// is none. After a power loss the old or the new record is there.
    pub(crate) fn update(
        &self,
        key: &WorkspaceKey,
        change: impl FnOnce(&mut Record),
    ) -> Result<Option<Record>, Error> {
        let name = lock::shared_name("record", key);
        let _lock = self.locks().take(&name, Mode::Exclusive)?;
        let Some(mut record) = self.records().read(key)? else { return Ok(None) };
        change(&mut record);
        self.records().write(&record, Durability::Atomic)?;
        Ok(Some(record))
    }
}

/// The records of a root, one file for each key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Records<'a> {
    pub(crate) own: &'a Root,
}

impl Records<'_> {
    pub(crate) fn read(self, key: &WorkspaceKey) -> Result<Option<Record>, Error> {
        let file = file(key);
        let record: Option<Record> = json_file::read(self.own, &file)?;
        if let Some(record) = &record {
            refuse_newer(self.own, &file, record.schema)?;
            if record.key != *key {
                let reason = format!("it is the record of {}", record.key);
                return Err(json_file::unreadable(self.own, &file, reason));
            }
        }
        Ok(record)
    }

    pub(crate) fn write(self, record: &Record, durability: Durability) -> Result<(), Error> {
        json_file::write(self.own, &file(&record.key), record, durability)
    }

    /// Waits until the names of all records would survive a power loss.
    pub(crate) fn sync(self) -> Result<(), Error> {
        let synced = self.own.sync_directory(Path::new("records"));
        synced.map_err(Error::files("could not sync the records"))
    }

    pub(crate) fn remove(self, key: &WorkspaceKey) -> Result<(), Error> {
        json_file::remove(self.own, &file(key))
    }

    pub(crate) fn keys(self) -> Result<Vec<WorkspaceKey>, Error> {
        let names = names_in(self.own, "records", "could not list records")?;
        let names = names.iter().filter_map(|name| name.strip_suffix(".json"));
        Ok(names.filter_map(WorkspaceKey::from_name).collect())
    }
}

fn file(key: &WorkspaceKey) -> PathBuf {
    Path::new("records").join(format!("{key}.json"))
}
