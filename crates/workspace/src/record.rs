//! What the server remembers about each workspace.

use std::path::{Path, PathBuf};

use carrel_domain::{Identifier, Layout, Timestamp, WorkspaceKey};
use carrel_fsroot::{Durability, Root};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::hooks::HookRun;
use crate::json_file;
use crate::lock::{self, Mode};
use crate::quota::Quota;
use crate::root::{SCHEMA, refuse_newer};
use crate::workspaces::Inner;

/// How far a workspace has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is being made; it counts only when `after_create` has succeeded.
    Creating,
    /// It can be used.
    Ready,
    /// It is being removed; what was begun is finished at the next chance.
    Removing,
}

/// A tracker, told from every other that has issues of the same names.
#[derive(Clone, Debug, Eq, Serialize, Deserialize)]
pub struct TrackerName {
    /// What no other tracker is called.
    pub name: String,
    /// Where people find it.
    pub location: String,
}

impl PartialEq for TrackerName {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The server's record of one workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub(crate) schema: u64,
    /// What the workspace was made for.
    pub identifier: Identifier,
    /// The tracker's own id of the issue, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue_id: Option<String>,
    /// The tracker of the issue, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracker: Option<TrackerName>,
    /// Its directory name.
    pub key: WorkspaceKey,
    /// How it is arranged.
    pub layout: Layout,
    /// How far it has come.
    pub state: State,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used.
    pub last_used_at: Timestamp,
    /// Its limits.
    pub quota: Quota,
    /// The repositories kept in it.
    #[serde(default)]
    pub repos_cached: Vec<String>,
    /// How many tasks ran in it.
    #[serde(default)]
    pub tasks_run: u64,
    /// The last hooks that ran for it, oldest first.
    #[serde(default)]
    pub hook_runs: Vec<HookRun>,
}

/// How many hook runs a record remembers.
const MAX_HOOK_RUNS: usize = 10;

impl Record {
    /// Begins the record of a new workspace.
    pub(crate) fn new(
        identifier: Identifier,
        key: WorkspaceKey,
        layout: Layout,
        quota: Quota,
        now: Timestamp,
    ) -> Self {
        Self {
            schema: SCHEMA,
            identifier,
            issue_id: None,
            tracker: None,
            key,
            layout,
            state: State::Ready,
            created_at: now,
            last_used_at: now,
            quota,
            repos_cached: Vec::new(),
            tasks_run: 0,
            hook_runs: Vec::new(),
        }
    }

    /// Returns the tracker's id of the issue, or the identifier where there is none.
    pub fn issue_id(&self) -> &str {
        self.issue_id.as_deref().unwrap_or(self.identifier.as_str())
    }

    /// Returns whose it is, if it is for an issue of another tracker than this one.
    pub fn foreign_to(&self, tracker: Option<&TrackerName>) -> Option<&TrackerName> {
        self.tracker.as_ref().filter(|there| tracker.is_some_and(|here| here != *there))
    }

    pub(crate) fn remember(&mut self, run: HookRun) {
        if self.hook_runs.len() >= MAX_HOOK_RUNS {
            self.hook_runs.remove(0);
        }
        self.hook_runs.push(run);
    }
}

impl Inner {
    /// Changes the record of a workspace that several processes may be using, and returns it.
    ///
    /// After a power loss the old record or the new one is there.
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

/// The records of a root, one file each.
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
                return Err(Error::RecordUnreadable { path: self.own.path().join(file), reason });
            }
        }
        Ok(record)
    }

    pub(crate) fn write(self, record: &Record, durability: Durability) -> Result<(), Error> {
        json_file::write_with(self.own, &file(&record.key), record, durability)
    }

    pub(crate) fn remove(self, key: &WorkspaceKey) -> Result<(), Error> {
        json_file::remove(self.own, &file(key))
    }

    /// Lists the keys that have a record.
    pub(crate) fn keys(self) -> Result<Vec<WorkspaceKey>, Error> {
        let entries =
            self.own.list(Path::new("records")).map_err(Error::files("could not list records"))?;
        Ok(entries
            .iter()
            .filter_map(|entry| entry.name.to_str()?.strip_suffix(".json"))
            .filter_map(WorkspaceKey::from_name)
            .collect())
    }
}

fn file(key: &WorkspaceKey) -> PathBuf {
    Path::new("records").join(format!("{key}.json"))
}
