//! A root and its workspaces.
//!
//! An identifier maps to a key, its directory name. Two identifiers may derive the same key; the root's
//! records decide which one has it, and the other gets a suffix. So a key is chosen by reading records,
//! and chosen again under the key's lock, because it may have changed hands in between.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use carrel_config::{Environment, Workflow};
use carrel_domain::{
    Clock, Identifier, KeyCandidates, KeyChoice, SystemClock, VolumeId, WorkspaceKey,
};
use tracing::warn;

use crate::blocking::blocking;
use crate::error::{Error, WorkspaceLocation};
use crate::lock::{Lock, Locks, Mode};
use crate::quota::Quota;
use crate::record::{Record, Records};
use crate::root::WorkspaceRoot;
use crate::usage::UsageCache;

/// The time for which unsaved work outlives its workspace, if no setting says otherwise.
pub const DEFAULT_KEEP_UNSAVED: Duration = Duration::from_hours(14 * 24);

/// The settings of a root.
#[derive(Clone, Debug)]
pub struct RootOptions {
    /// The directory that holds the workspaces, absolute.
    pub root: PathBuf,
    /// The operator's home directory, which is never a root.
    pub home: Option<PathBuf>,
    /// The quota of workspaces without one of their own.
    pub quota: Quota,
    /// The time for which unsaved work outlives a workspace that a clean-up removes; zero keeps none.
    pub keep_unsaved: Duration,
    /// The clock of records and logs.
    pub clock: Arc<dyn Clock>,
}

impl RootOptions {
    /// Reads root and quota from a workflow file, and the home directory from the environment.
    pub fn of(workflow: &Workflow, environment: &Environment) -> Self {
        let config = &workflow.config.workspace;
        Self {
            root: config.root.path.clone(),
            home: environment.home(),
            quota: Quota { bytes: config.quota, files: Some(config.quota_files) },
            keep_unsaved: config.keep_unsaved,
            clock: Arc::new(SystemClock),
        }
    }
}

/// A root and the workspaces in it. Cheap to clone; several processes may have the same root open.
#[derive(Clone, Debug)]
pub struct Workspaces {
    pub(crate) inner: Arc<RootInner>,
}

#[derive(Debug)]
pub(crate) struct RootInner {
    pub(crate) root: WorkspaceRoot,
    pub(crate) quota: Quota,
    pub(crate) keep_unsaved: Duration,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Workspaces {
    /// Opens a root, and creates it for its owner only if it is missing.
    pub fn open_or_create(options: &RootOptions) -> Result<Self, Error> {
        let root = WorkspaceRoot::open_or_create(&options.root, options.home.as_deref())?;
        Ok(Self::new(root, options))
    }

    /// Opens a root that has records already; `None` otherwise. Creates nothing.
    pub fn open_existing(options: &RootOptions) -> Result<Option<Self>, Error> {
        let root = WorkspaceRoot::open_existing(&options.root, options.home.as_deref())?;
        Ok(root.map(|root| Self::new(root, options)))
    }

    fn new(root: WorkspaceRoot, options: &RootOptions) -> Self {
        if let Some(repository) = &root.enclosing_repository {
            warn!(
                root = %root.path().display(),
                repository = %repository.display(),
                "Workspace root lies inside a git work tree"
            );
        }
        let clock = Arc::clone(&options.clock);
        let RootOptions { quota, keep_unsaved, .. } = *options;
        Self { inner: Arc::new(RootInner { root, quota, keep_unsaved, clock }) }
    }

    /// Does file work on a blocking thread.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&RootInner) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let inner = Arc::clone(&self.inner);
        blocking(move || work(&inner)).await
    }

    /// Does file work on the workspace of a key, on a blocking thread.
    pub(crate) async fn with_key<T: Send + 'static>(
        &self,
        key: &WorkspaceKey,
        work: impl FnOnce(&RootInner, &WorkspaceKey) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let key = key.clone();
        self.blocking(move |inner| work(inner, &key)).await
    }

    /// Returns the real path of the root.
    pub fn path(&self) -> &Path {
        self.inner.root.path()
    }

    /// Returns the root's volume id, made on first use and the same for every process.
    pub fn volume(&self) -> Result<VolumeId, Error> {
        crate::volume::volume(&self.inner.root.own)
    }

    /// Returns the key that an identifier has, or would get.
    pub fn key(&self, identifier: &Identifier) -> Result<WorkspaceKey, Error> {
        match self.inner.choose(identifier)? {
            KeyChoice::Held(key) | KeyChoice::Free(key) => Ok(key),
        }
    }

    /// Returns the record of an identifier's workspace, or [`Error::NotFound`]. Takes no lock, so the record
    /// may be outdated at once.
    pub fn record(&self, identifier: &Identifier) -> Result<Record, Error> {
        let inner = &self.inner;
        let record = match inner.choose(identifier)? {
            KeyChoice::Held(key) => inner.records().read(&key)?,
            KeyChoice::Free(_) => None,
        };
        record.ok_or_else(|| inner.not_found(identifier))
    }
}

impl RootInner {
    pub(crate) fn records(&self) -> Records<'_> {
        Records { own: &self.root.own }
    }

    pub(crate) fn locks(&self) -> Locks<'_> {
        Locks { own: &self.root.own }
    }

    pub(crate) fn usage_cache(&self) -> UsageCache<'_> {
        UsageCache { own: &self.root.own }
    }

    pub(crate) fn choose(&self, identifier: &Identifier) -> Result<KeyChoice, Error> {
        let holder = |key: &WorkspaceKey| {
            Ok::<_, Error>(self.records().read(key)?.map(|record| record.identifier))
        };
        let choice = KeyCandidates::of(identifier).choose(identifier, holder)?;
        choice.ok_or_else(|| self.no_key_left(identifier))
    }

    pub(crate) fn no_key_left(&self, identifier: &Identifier) -> Error {
        Error::NoKeyLeft { identifier: identifier.clone(), root: self.root.path().to_owned() }
    }

    /// Locks the workspace of an identifier, or the key that it would get.
    ///
    /// The key is chosen again under the lock: another identifier may have taken it meanwhile.
    pub(crate) fn lock_of(
        &self,
        identifier: &Identifier,
        mode: Mode,
    ) -> Result<(WorkspaceKey, Lock), Error> {
        let (KeyChoice::Held(mut key) | KeyChoice::Free(mut key)) = self.choose(identifier)?;
        loop {
            let lock = self.locks().take(key.as_str(), mode)?;
            let (KeyChoice::Held(now) | KeyChoice::Free(now)) = self.choose(identifier)?;
            if now == key {
                return Ok((key, lock));
            }
            key = now;
        }
    }

    pub(crate) fn not_found(&self, identifier: &Identifier) -> Error {
        Error::NotFound { name: identifier.to_string(), root: self.root.path().to_owned() }
    }

    pub(crate) fn not_found_key(&self, key: &WorkspaceKey) -> Error {
        Error::NotFound { name: key.to_string(), root: self.root.path().to_owned() }
    }

    pub(crate) fn location(&self, key: &WorkspaceKey) -> WorkspaceLocation {
        let root = self.root.path().to_owned();
        WorkspaceLocation { workspace: root.join(key.as_str()), root }
    }
}
