//! Creates a workspace, or returns the existing one.
//!
//! The record is written before the directory exists and says `ready` only at the end, so that a crash
//! at any step leaves a state that the next call recognises:
//!
//! | step | after a crash | the next create |
//! |---|---|---|
//! | take the lock | nothing; the kernel releases the lock | starts afresh |
//! | write the record, `creating`, or `ready` without a hook; fsync | a record without a directory | makes the directory |
//! | make the directory; fsync the root | a record `creating` and a directory | moves the directory to the trash and starts afresh |
//! | run `after_create` | the same; the hook's processes hold the lock until they end | the same, once the lock is free |
//! | check that the directory was not replaced; write `ready`; fsync | a workspace | reuses it |
//!
//! A directory without a record, put there by hand or left by a lost record, is adopted.

use std::path::{Path, PathBuf};

use carrel_domain::{Identifier, KeyChoice, Layout, WorkspaceKey, message_of};
use carrel_fsroot::{Durability, Problem, Root};
use tracing::{debug, error, info, warn};

use crate::error::{CwdReason, Error};
use crate::hooks::{Hook, HookSite, Hooks};
use crate::lock::{self, Lock, Mode};
use crate::quota::Quota;
use crate::record::{Record, State, TrackerName};
use crate::root::SCHEMA;
use crate::workspace::LAST_USED_PRECISION;
use crate::workspaces::{RootInner, Workspaces};

const WORKSPACE_MODE: u32 = 0o700;

/// The most attempts to choose a key that another process does not take first.
const MAX_KEY_ATTEMPTS: usize = 16;

/// A request to create a workspace. Layout and quota apply to a new one only; an existing workspace keeps
/// its own.
#[derive(Clone, Debug)]
pub struct Create {
    /// The piece of work.
    pub identifier: Identifier,
    /// The tracker's own id of the issue, where there is one.
    pub issue_id: Option<String>,
    /// The tracker of the issue, where there is one. A workspace of an issue with the same name in another
    /// tracker is an error.
    pub tracker: Option<TrackerName>,
    /// The layout of a new workspace.
    pub layout: Layout,
    /// The quota of a new workspace; the root's if absent.
    pub quota: Option<Quota>,
    /// The number of the attempt, for the hooks.
    pub attempt: Option<u32>,
}

impl Create {
    /// Returns a request for a plain workspace with the root's quota.
    pub fn new(identifier: Identifier) -> Self {
        Self {
            identifier,
            issue_id: None,
            tracker: None,
            layout: Layout::default(),
            quota: None,
            attempt: None,
        }
    }
}

/// A workspace that is ready for use. `created` is false for one that existed already.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the summary defines the fields")]
pub struct Created {
    pub created: bool,
    pub record: Record,
    pub path: PathBuf,
}

/// A new workspace, locked, before its hook has run.
struct Pending {
    record: Record,
    directory: Root,
    lock: Lock,
}

/// A request in progress. `hooked` says that `after_create` has a script.
pub(crate) struct Creation<'a> {
    pub(crate) inner: &'a RootInner,
    pub(crate) request: &'a Create,
    pub(crate) hooked: bool,
}

enum CreateStart {
    Reused(Record),
    Made(Pending),
}

impl Workspaces {
    /// Creates the workspace of an identifier and runs `after_create`, or returns the existing one.
    ///
    /// A failed hook removes the new directory, so that the next call starts afresh.
    pub async fn create(&self, request: Create, hooks: &Hooks) -> Result<Created, Error> {
        let issue_id =
            request.issue_id.as_deref().unwrap_or(request.identifier.as_str()).to_owned();
        let result = self.create_unlogged(request, hooks).await;
        match &result {
            Ok(created) => log_created(created),
            Err(error) => {
                let error = &message_of(error);
                error!(issue_id, error, "Workspace creation failed");
            }
        }
        result
    }

    async fn create_unlogged(&self, request: Create, hooks: &Hooks) -> Result<Created, Error> {
        let attempt = request.attempt;
        let hooked = hooks.has(Hook::AfterCreate);
        let begun =
            self.blocking(move |inner| Creation { inner, request: &request, hooked }.begin());
        let mut pending = match begun.await? {
            CreateStart::Reused(record) => return Ok(self.created(false, record)),
            CreateStart::Made(pending) => pending,
        };
        if !hooked {
            return Ok(self.created(true, pending.record.clone()));
        }
        pending.lock.note("creating");
        let Pending { record, directory, lock } = &pending;
        // The lock for creation keeps forks from being made.
        let site = HookSite { workspaces: self, record, directory, lock, changes: None, attempt };
        let ran = hooks.run(Hook::AfterCreate, site).await;
        pending.record.hook_runs.extend(ran.run);
        self.blocking(move |inner| match ran.result {
            Ok(()) => inner.finish(&pending),
            Err(error) => Err(inner.abandon(&pending, error.into())),
        })
        .await
        .map(|record| self.created(true, record))
    }

    fn created(&self, created: bool, record: Record) -> Created {
        let path = self.inner.location(&record.key).workspace;
        Created { created, record, path }
    }
}

fn log_created(created: &Created) {
    let issue_id = created.record.issue_id();
    let issue_identifier = created.record.identifier.as_str();
    let workspace = created.path.display();
    if created.created {
        info!(issue_id, issue_identifier, %workspace, "Workspace created");
    } else {
        info!(issue_id, issue_identifier, %workspace, "Workspace reused");
    }
}

impl Creation<'_> {
    fn begin(&self) -> Result<CreateStart, Error> {
        for _ in 0..MAX_KEY_ATTEMPTS {
            let begun = match self.inner.choose(&self.request.identifier)? {
                KeyChoice::Held(key) => {
                    self.refuse_other_tracker(&key)?;
                    self.begin_held(&key)?
                }
                KeyChoice::Free(_) => self.begin_free()?,
            };
            if let Some(begun) = begun {
                return Ok(begun);
            }
        }
        Err(self.inner.no_key_left(&self.request.identifier))
    }

    fn refuse_other_tracker(&self, key: &WorkspaceKey) -> Result<(), Error> {
        let record = self.inner.records().read(key)?;
        match record.as_ref().and_then(|record| record.foreign_to(self.request.tracker.as_ref())) {
            // A workspace that was removed by hand belongs to no tracker.
            Some(other) if self.inner.open_directory(key)?.is_some() => {
                Err(Error::ForeignTracker {
                    other: other.location.clone(),
                    location: self.inner.location(key),
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Uses the key that the identifier has; `None` if it was removed meanwhile.
    fn begin_held(&self, key: &WorkspaceKey) -> Result<Option<CreateStart>, Error> {
        let shared = self.inner.locks().take(key.as_str(), Mode::Shared)?;
        if let Some(record) = self.reuse(key)? {
            return Ok(Some(CreateStart::Reused(record)));
        }
        drop(shared);
        let lock = self.inner.locks().take(key.as_str(), Mode::Exclusive)?;
        match self.inner.records().read(key)? {
            Some(record) if record.identifier == self.request.identifier => {
                self.repair(record, lock).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Takes a free key; `None` if another process took it first.
    ///
    /// Identifiers that derive the same key choose one after the other, under a lock that they share, so
    /// that one identifier never gets two keys.
    fn begin_free(&self) -> Result<Option<CreateStart>, Error> {
        let base = WorkspaceKey::derive(&self.request.identifier);
        let name = lock::shared_name("choose", &base);
        let _choosing = self.inner.locks().take(&name, Mode::Exclusive)?;
        let KeyChoice::Free(key) = self.inner.choose(&self.request.identifier)? else {
            return Ok(None);
        };
        let lock = self.inner.locks().take(key.as_str(), Mode::Exclusive)?;
        if self.inner.records().read(&key)?.is_some() {
            return Ok(None);
        }
        match self.inner.open_directory(&key)? {
            Some(directory) => self.adopt(key, &directory).map(CreateStart::Reused),
            None => self.make(key, lock).map(CreateStart::Made),
        }
        .map(Some)
    }

    /// Returns a ready workspace; `None` if it has to be repaired first.
    fn reuse(&self, key: &WorkspaceKey) -> Result<Option<Record>, Error> {
        let Some(record) = self.inner.records().read(key)? else { return Ok(None) };
        let Some(directory) = self.inner.open_directory(key)? else { return Ok(None) };
        if record.state != State::Ready || record.identifier != self.request.identifier {
            return Ok(None);
        }
        if record.layout != self.request.layout {
            let has = record.layout.as_str();
            let requested = self.request.layout.as_str();
            warn!(%key, has, requested, "Workspace exists with another layout, which it keeps");
        }
        if record.fork.is_none() {
            ensure_layout(&directory, record.layout)?;
        }
        let now = self.inner.clock.now();
        if record.last_used_at.age(now) < LAST_USED_PRECISION && !self.has_news(&record) {
            return Ok(Some(record));
        }
        let updated = self.inner.update(key, |record| {
            record.last_used_at = now;
            record.issue_id = self.request.issue_id.clone().or(record.issue_id.take());
            record.tracker = record.tracker.take().or(self.request.tracker.clone());
        });
        // A full disk must not keep a workspace from being opened, and files deleted in it.
        Ok(Some(updated.ok().flatten().unwrap_or(record)))
    }

    /// Returns whether the request says something that the record does not have.
    fn has_news(&self, record: &Record) -> bool {
        let issue = self.request.issue_id.as_ref();
        let has_tracker = record.tracker.is_none() && self.request.tracker.is_some();
        has_tracker || issue.is_some_and(|issue| record.issue_id.as_ref() != Some(issue))
    }

    /// Repairs a workspace that an earlier process left incomplete, and creates it.
    fn repair(&self, record: Record, lock: Lock) -> Result<CreateStart, Error> {
        let key = record.key.clone();
        let directory = self.inner.open_directory(&key)?;
        let is_usable = record.state == State::Ready && directory.is_some();
        if record.fork.is_some() && !is_usable {
            return self.inner.repair_fork(record).map(CreateStart::Reused);
        }
        match (record.state, directory) {
            (State::Ready, Some(_)) => {
                let reused = self.reuse(&key)?;
                return Ok(CreateStart::Reused(reused.unwrap_or(record)));
            }
            (State::Creating | State::Removing, Some(directory)) => {
                let issue_identifier = record.identifier.as_str();
                let workspace = self.inner.location(&key).workspace;
                let workspace = workspace.display();
                warn!(issue_identifier, %workspace, "Workspace was left half-way, starting afresh");
                self.inner.clear(record, &directory)?;
            }
            (_, None) => {}
        }
        self.inner.usage_cache().remove(&key)?;
        self.make(key, lock).map(CreateStart::Made)
    }

    /// Adopts a directory without a record: it was put there by hand, or its record was lost.
    fn adopt(&self, key: WorkspaceKey, directory: &Root) -> Result<Record, Error> {
        self.inner.refuse_foreign(&key, directory)?;
        let workspace = self.inner.location(&key).workspace;
        warn!(workspace = %workspace.display(), "Workspace directory without a record was adopted");
        let record = self.new_record(key, State::Ready);
        ensure_layout(directory, record.layout)?;
        self.inner.records().write(&record, Durability::Synced)?;
        Ok(record)
    }

    pub(crate) fn new_record(&self, key: WorkspaceKey, state: State) -> Record {
        let now = self.inner.clock.now();
        Record {
            schema: SCHEMA,
            identifier: self.request.identifier.clone(),
            issue_id: self.request.issue_id.clone(),
            tracker: self.request.tracker.clone(),
            key,
            layout: self.request.layout,
            state,
            keep_unsaved: false,
            created_at: now,
            last_used_at: now,
            quota: self.request.quota.unwrap_or(self.inner.quota),
            fork: None,
            repos_cached: Vec::new(),
            tasks_run: 0,
            hook_runs: Vec::new(),
        }
    }

    /// Writes the record, then makes the directory, so that a new directory always has a record.
    ///
    /// Without a hook the record says `ready` at once: a record without a directory counts as missing.
    fn make(&self, key: WorkspaceKey, lock: Lock) -> Result<Pending, Error> {
        let state = if self.hooked { State::Creating } else { State::Ready };
        let record = self.new_record(key, state);
        // A removal that was interrupted may have left one.
        self.inner.discard_beside(&record.key)?;
        self.inner.records().write(&record, Durability::Synced)?;
        if let Err(error) = self.inner.make_directory(&record.key) {
            self.inner.records().remove(&record.key)?;
            return Err(error);
        }
        // From here on an error leaves the record, which says how far creation came.
        self.inner.sync_root()?;
        let directory = self.inner.open_directory(&record.key)?;
        let directory = directory
            .ok_or_else(|| self.inner.cwd_error(&record.key, CwdReason::PathUnreadable))?;
        ensure_layout(&directory, record.layout)?;
        Ok(Pending { record, directory, lock })
    }
}

impl RootInner {
    pub(crate) fn make_directory(&self, key: &WorkspaceKey) -> Result<(), Error> {
        let workspace = self.location(key).workspace;
        let made = self.root.directory.create_directory(Path::new(key.as_str()), WORKSPACE_MODE);
        made.map_err(|error| match error.problem() {
            // It appeared since the check, and was not made under the lock.
            Problem::Exists => Error::Busy { key: key.to_string(), holder: None },
            _ => Error::files(format!("could not make {}", workspace.display()))(error),
        })?;
        debug!(workspace = %workspace.display(), "directory made");
        Ok(())
    }

    /// Moves a half-made or half-removed directory out of the way. One whose removal was to keep unsaved work is
    /// kept unasked, since git cannot be asked here.
    fn clear(&self, record: Record, directory: &Root) -> Result<(), Error> {
        let key = record.key.clone();
        let is_empty = directory.list(Path::new(".")).is_ok_and(|entries| entries.is_empty());
        if record.keep_unsaved && !self.keep_unsaved.is_zero() && !is_empty {
            let reasons = vec!["its removal was interrupted".to_owned()];
            return self.keep(&key, Some(record), directory, reasons).map(drop);
        }
        self.discard(&key, directory)
    }

    /// Marks a workspace ready, if its directory is still the one that the hook ran in.
    fn finish(&self, pending: &Pending) -> Result<Record, Error> {
        if let Err(error) = self.check_not_replaced(&pending.record.key, &pending.directory) {
            return Err(self.abandon(pending, error));
        }
        let record = Record { state: State::Ready, ..pending.record.clone() };
        self.records().write(&record, Durability::Synced)?;
        Ok(record)
    }

    /// Removes a new workspace whose hook failed; returns the hook's error.
    fn abandon(&self, pending: &Pending, error: Error) -> Error {
        let key = &pending.record.key;
        let undone = match self.open_directory(key) {
            Ok(Some(directory)) => self.discard(key, &directory),
            Ok(None) => Ok(()),
            // The hook replaced the directory; what is there now is not removed.
            Err(Error::Misplaced { .. } | Error::Occupied { .. } | Error::ForeignOwner { .. }) => {
                Ok(())
            }
            Err(error) => Err(error),
        };
        let undone = undone.and_then(|()| self.discard_beside(key));
        let undone = undone.and_then(|()| self.usage_cache().remove(key));
        if let Err(undo) = undone.and_then(|()| self.records().remove(key)) {
            // The record still says `creating`, so the next create discards the directory.
            warn!(%key, error = %undo, "Workspace could not be taken back after its hook failed");
        }
        error
    }
}

fn ensure_layout(directory: &Root, layout: Layout) -> Result<(), Error> {
    for part in layout.directories() {
        directory
            .create_directories(Path::new(part), 0o755)
            .map_err(Error::files("could not make the directories of the layout"))?;
    }
    Ok(())
}
