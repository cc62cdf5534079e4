//! Lists the workspaces of a root.

use std::path::PathBuf;

use carrel_domain::WorkspaceKey;
use carrel_fsroot::Root;
use serde::Serialize;
use tracing::warn;

use crate::error::Error;
use crate::record::{Record, State};
use crate::usage::{Freshness, MeasuredUsage};
use crate::workspaces::{RootInner, Workspaces};

/// The state of a workspace on disk.
///
/// `Creating` and `Removing` are in progress or interrupted. `Missing` has a record and no directory, and is
/// made again by the next create. `Broken` has something at its path that is not a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the summary defines the variants")]
pub enum ListingState {
    Creating,
    Ready,
    Removing,
    Missing,
    Broken,
}

/// A workspace of a root with its record, its absolute path and, if it has a directory, its usage.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the summary defines the fields")]
pub struct WorkspaceListing {
    pub record: Record,
    pub path: PathBuf,
    pub state: ListingState,
    pub usage: Option<MeasuredUsage>,
}

impl Workspaces {
    /// Lists the workspaces in the order of their keys. A record that cannot be read is logged and left
    /// out.
    pub async fn list(&self, freshness: Freshness) -> Result<Vec<WorkspaceListing>, Error> {
        self.blocking(move |inner| {
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

    /// Lists the forks of the root in the order of their keys, without what they use. A record that cannot be read is
    /// logged and left out.
    pub async fn forks(&self) -> Result<Vec<WorkspaceListing>, Error> {
        self.blocking(|inner| {
            let mut forks = Vec::new();
            for key in inner.records().keys()? {
                match inner.fork_listing(&key) {
                    Ok(listing) => forks.extend(listing),
                    Err(error) => warn!(%key, %error, "Workspace cannot be listed"),
                }
            }
            Ok(forks)
        })
        .await
    }

    /// Returns one workspace; `None` without a record.
    pub async fn show(
        &self,
        key: &WorkspaceKey,
        freshness: Freshness,
    ) -> Result<Option<WorkspaceListing>, Error> {
        self.with_key(key, move |inner, key| inner.listing(key, freshness)).await
    }
}

impl RootInner {
    pub(crate) fn listing(
        &self,
        key: &WorkspaceKey,
        freshness: Freshness,
    ) -> Result<Option<WorkspaceListing>, Error> {
        let Some(record) = self.records().read(key)? else { return Ok(None) };
        let path = self.location(key).workspace;
        let (state, directory) = self.state_of(&record)?;
        let measure = |directory: Root| self.measure(key, &directory, freshness).ok();
        Ok(Some(WorkspaceListing { record, path, state, usage: directory.and_then(measure) }))
    }

    fn fork_listing(&self, key: &WorkspaceKey) -> Result<Option<WorkspaceListing>, Error> {
        let record = self.records().read(key)?.filter(|record| record.fork.is_some());
        let Some(record) = record else { return Ok(None) };
        let path = self.location(key).workspace;
        let (state, _) = self.state_of(&record)?;
        Ok(Some(WorkspaceListing { record, path, state, usage: None }))
    }

    fn state_of(&self, record: &Record) -> Result<(ListingState, Option<Root>), Error> {
        let key = &record.key;
        let Ok(directory) = self.open_directory(key) else {
            return Ok((ListingState::Broken, None));
        };
        let state = match (record.state, &directory) {
            // One that is being made or removed is not complete either.
            _ if !self.locks().is_held(key.as_str()) && self.is_broken(record)? => {
                ListingState::Broken
            }
            (_, None) => ListingState::Missing,
            (State::Ready, Some(_)) => ListingState::Ready,
            (State::Creating, Some(_)) => ListingState::Creating,
            (State::Removing, Some(_)) => ListingState::Removing,
        };
        Ok((state, directory))
    }
}
