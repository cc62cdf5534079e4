//! Looking at all workspaces of a root.

use std::path::PathBuf;

use carrel_domain::WorkspaceKey;
use carrel_fsroot::Root;
use serde::Serialize;
use tracing::warn;

use crate::blocking::blocking;
use crate::condition::Condition;
use crate::error::Error;
use crate::record::Record;
use crate::usage::{Freshness, MeasuredUsage};
use crate::workspaces::{Inner, Workspaces};

/// What a workspace looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ListingState {
    /// It is being made, or was left half-made.
    Creating,
    /// It can be used.
    Ready,
    /// It is being removed, or was left half-removed.
    Removing,
    /// It has a record and no directory; the next create makes it again.
    Missing,
    /// Something stands in its place that cannot be used.
    Broken,
}

/// One workspace of a root.
#[derive(Clone, Debug)]
pub struct WorkspaceListing {
    /// Its record.
    pub record: Record,
    /// Its path.
    pub path: PathBuf,
    /// What it looks like on disk.
    pub state: ListingState,
    /// What it uses, where it has a directory.
    pub usage: Option<MeasuredUsage>,
}

impl Workspaces {
    /// Lists the workspaces in the order of their keys. A record that cannot be
    /// read is logged and left out; it must not hide the others.
    pub async fn list(&self, freshness: Freshness) -> Result<Vec<WorkspaceListing>, Error> {
        let inner = self.inner.clone();
        blocking(move || {
            let listed = |key: &WorkspaceKey| {
                inner.listing(key, freshness).unwrap_or_else(|error| {
                    warn!(%key, %error, "Workspace cannot be listed");
                    None
                })
            };
            Ok(inner.records().keys()?.iter().filter_map(listed).collect())
        })
        .await
    }

    /// Counts the workspaces that have a record.
    pub fn count(&self) -> Result<usize, Error> {
        Ok(self.inner.records().keys()?.len())
    }

    /// Looks at one workspace.
    pub async fn show(
        &self,
        key: &WorkspaceKey,
        freshness: Freshness,
    ) -> Result<Option<WorkspaceListing>, Error> {
        let (inner, key) = (self.inner.clone(), key.clone());
        blocking(move || inner.listing(&key, freshness)).await
    }
}

impl Inner {
    pub(crate) fn listing(
        &self,
        key: &WorkspaceKey,
        freshness: Freshness,
    ) -> Result<Option<WorkspaceListing>, Error> {
        let Some(record) = self.records().read(key)? else { return Ok(None) };
        let path = self.location(key).workspace;
        let Ok(directory) = self.open_directory(key) else {
            return Ok(Some(WorkspaceListing {
                record,
                path,
                state: ListingState::Broken,
                usage: None,
            }));
        };
        let state = Condition::of(&record, directory.as_ref()).into();
        let measure = |directory: Root| self.measure(key, &directory, freshness).ok();
        Ok(Some(WorkspaceListing { record, path, state, usage: directory.and_then(measure) }))
    }
}

impl From<Condition> for ListingState {
    fn from(condition: Condition) -> Self {
        match condition {
            Condition::Ready => Self::Ready,
            Condition::Missing => Self::Missing,
            Condition::HalfMade => Self::Creating,
            Condition::HalfRemoved => Self::Removing,
        }
    }
}
