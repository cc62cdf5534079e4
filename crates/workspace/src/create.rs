//! Making a workspace, or finding it as it was left.

use std::path::{Path, PathBuf};

use carrel_domain::{Identifier, KeyChoice, Layout, WorkspaceKey, message_of};
use carrel_fsroot::{Durability, Problem, Root};
use tracing::{debug, error, info, warn};

use crate::blocking::blocking;
use crate::condition::Condition;
use crate::error::{CwdReason, Error};
use crate::hooks::{Hook, HookContext, Hooks, Site};
use crate::lock::{self, Lock, Mode};
use crate::quota::Quota;
use crate::record::{Record, State, TrackerName};
use crate::workspaces::{Inner, Workspaces};

/// The mode of a workspace directory.
const WORKSPACE_MODE: u32 = 0o700;

/// How often a key is chosen anew because somebody else took it in the meantime.
const MAX_CHOICES: usize = 16;

/// What to make.
#[derive(Clone, Debug)]
pub struct Create {
    /// What the workspace is for.
    pub identifier: Identifier,
    /// The tracker's own id of the issue, where there is one.
    pub issue_id: Option<String>,
    /// The tracker of the issue, where there is one. A workspace that is for an issue of the same name in
    /// another tracker is refused.
    pub tracker: Option<TrackerName>,
    /// How a new workspace is arranged.
    pub layout: Layout,
    /// The limits of a new workspace; the root's own when absent.
    pub quota: Option<Quota>,
    /// Which attempt this is, for the hooks.
    pub attempt: Option<u32>,
}

impl Create {
    /// Asks for a plain workspace with the root's limits.
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

/// A workspace that is ready.
#[derive(Clone, Debug)]
pub struct Created {
    /// Whether this call made it.
    pub created: bool,
    /// Its record.
    pub record: Record,
    /// Its path.
    pub path: PathBuf,
}

/// A workspace on the way to `ready`, locked.
struct Pending {
    record: Record,
    directory: Root,
    lock: Lock,
}

enum Begun {
    Reused(Record),
    Made(Pending),
}

impl Workspaces {
    /// Makes the workspace of an identifier and runs `after_create`, or finds it as it was left.
    ///
    /// A failed hook removes what was made, so that the next call starts afresh.
    pub async fn create(&self, request: Create, hooks: &Hooks) -> Result<Created, Error> {
        let asked = request.issue_id.as_deref().unwrap_or(request.identifier.as_str()).to_owned();
        let result = self.create_unlogged(request, hooks).await;
        match &result {
            Ok(created) => log_created(created),
            Err(error) => {
                let error = &message_of(error);
                error!(issue_id = asked, error, "Workspace creation failed");
            }
        }
        result
    }

    async fn create_unlogged(&self, request: Create, hooks: &Hooks) -> Result<Created, Error> {
        let attempt = request.attempt;
        let hooked = hooks.has(Hook::AfterCreate);
        let inner = self.inner.clone();
        let mut pending = match blocking(move || inner.begin(&request, hooked)).await? {
            Begun::Reused(record) => return Ok(self.created(false, record)),
            Begun::Made(pending) => pending,
        };
        if !hooked {
            return Ok(self.created(true, pending.record.clone()));
        }
        pending.lock.note("creating");
        let ran = hooks.run(Hook::AfterCreate, self.site(&pending, attempt)).await;
        pending.record.hook_runs.extend(ran.run);
        let inner = self.inner.clone();
        blocking(move || match ran.result {
            Ok(()) => inner.finish(&pending),
            Err(error) => Err(inner.abandon(&pending, error.into())),
        })
        .await
        .map(|record| self.created(true, record))
    }

    fn site<'a>(&'a self, pending: &'a Pending, attempt: Option<u32>) -> Site<'a> {
        let context = self.hook_context(&pending.record, attempt);
        Site { context, directory: &pending.directory, lock: &pending.lock, inner: &self.inner }
    }

    fn created(&self, created: bool, record: Record) -> Created {
        let path = self.inner.location(&record.key).workspace;
        Created { created, record, path }
    }

    pub(crate) fn hook_context(&self, record: &Record, attempt: Option<u32>) -> HookContext {
        HookContext {
            issue_id: record.issue_id().to_owned(),
            identifier: record.identifier.clone(),
            key: record.key.clone(),
            workspace: self.inner.location(&record.key).workspace,
            root: self.inner.root.path().to_owned(),
            attempt,
        }
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

impl Inner {
    fn begin(&self, request: &Create, hooked: bool) -> Result<Begun, Error> {
        for _ in 0..MAX_CHOICES {
            let begun = match self.choose(&request.identifier)? {
                KeyChoice::Held(key) => {
                    self.refuse_other_tracker(request, &key)?;
                    self.begin_held(request, &key, hooked)?
                }
                KeyChoice::Free(_) => self.begin_free(request, hooked)?,
            };
            if let Some(begun) = begun {
                return Ok(begun);
            }
        }
        Err(self.no_key_left(&request.identifier))
    }

    fn refuse_other_tracker(&self, request: &Create, key: &WorkspaceKey) -> Result<(), Error> {
        let record = self.records().read(key)?;
        match record.as_ref().and_then(|record| record.foreign_to(request.tracker.as_ref())) {
            // One that was removed by hand is nobody's.
            Some(there) if self.open_directory(key)?.is_some() => Err(Error::ForeignTracker {
                there: there.location.clone(),
                location: self.location(key),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Uses the key the identifier holds; `None` when it lost it in the meantime.
    fn begin_held(
        &self,
        request: &Create,
        key: &WorkspaceKey,
        hooked: bool,
    ) -> Result<Option<Begun>, Error> {
        let shared = self.locks().take(key.as_str(), Mode::Shared)?;
        if let Some(record) = self.reuse(request, key)? {
            return Ok(Some(Begun::Reused(record)));
        }
        drop(shared);
        let lock = self.locks().take(key.as_str(), Mode::Exclusive)?;
        match self.records().read(key)? {
            Some(record) if record.identifier == request.identifier => {
                self.settle(request, record, hooked, lock).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Takes a key that nobody holds; `None` when somebody else was faster.
    ///
    /// Identifiers that derive the same key choose one after the other, so that
    /// one identifier never takes two keys.
    fn begin_free(&self, request: &Create, hooked: bool) -> Result<Option<Begun>, Error> {
        let base = WorkspaceKey::derive(&request.identifier);
        let name = lock::shared_name("choose", &base);
        let _choosing = self.locks().take(&name, Mode::Exclusive)?;
        let KeyChoice::Free(key) = self.choose(&request.identifier)? else { return Ok(None) };
        let lock = self.locks().take(key.as_str(), Mode::Exclusive)?;
        if self.records().read(&key)?.is_some() {
            return Ok(None);
        }
        match self.open_directory(&key)? {
            Some(directory) => self.adopt(request, key, &directory).map(Begun::Reused),
            None => self.make(request, key, hooked, lock).map(Begun::Made),
        }
        .map(Some)
    }

    /// Finds a workspace that is ready; `None` when there is something to mend first.
    fn reuse(&self, request: &Create, key: &WorkspaceKey) -> Result<Option<Record>, Error> {
        let Some(record) = self.records().read(key)? else { return Ok(None) };
        let directory = self.open_directory(key)?;
        let ready = Condition::of(&record, directory.as_ref()) == Condition::Ready;
        let (true, Some(directory)) = (ready && record.identifier == request.identifier, directory)
        else {
            return Ok(None);
        };
        if record.layout != request.layout {
            let (has, asked) = (record.layout.as_str(), request.layout.as_str());
            warn!(%key, has, asked, "Workspace exists with another layout, which it keeps");
        }
        ensure_layout(&directory, record.layout)?;
        let now = self.clock.now();
        let updated = self.update(key, |record| {
            record.last_used_at = now;
            record.issue_id = request.issue_id.clone().or(record.issue_id.take());
            record.tracker = record.tracker.take().or(request.tracker.clone());
        });
        // On a full disk a workspace must still open, not least to make room in it.
        Ok(Some(updated.ok().flatten().unwrap_or(record)))
    }

    /// Brings record and directory together, whatever an earlier process left behind.
    fn settle(
        &self,
        request: &Create,
        record: Record,
        hooked: bool,
        lock: Lock,
    ) -> Result<Begun, Error> {
        let key = record.key.clone();
        let directory = self.open_directory(&key)?;
        match (Condition::of(&record, directory.as_ref()), directory) {
            (Condition::Ready, _) => {
                let reused = self.reuse(request, &key)?;
                return Ok(Begun::Reused(reused.unwrap_or(record)));
            }
            (Condition::HalfMade | Condition::HalfRemoved, Some(directory)) => {
                let workspace = self.location(&key).workspace;
                let issue_identifier = record.identifier.as_str();
                let workspace = workspace.display();
                warn!(issue_identifier, %workspace, "Workspace was left half-way, starting afresh");
                self.discard(&key, &directory)?;
            }
            (Condition::Missing | Condition::HalfMade | Condition::HalfRemoved, _) => {}
        }
        self.accounts().forget(&key)?;
        self.make(request, key, hooked, lock).map(Begun::Made)
    }

    /// Takes over a directory that has no record: it was put there by hand, or its record was lost.
    fn adopt(
        &self,
        request: &Create,
        key: WorkspaceKey,
        directory: &Root,
    ) -> Result<Record, Error> {
        self.refuse_foreign(&key, directory)?;
        let workspace = self.location(&key).workspace;
        warn!(workspace = %workspace.display(), "Workspace directory without a record was adopted");
        let record = self.new_record(request, key, State::Ready);
        ensure_layout(directory, record.layout)?;
        self.records().write(&record, Durability::Synced)?;
        Ok(record)
    }

    fn new_record(&self, request: &Create, key: WorkspaceKey, state: State) -> Record {
        let quota = request.quota.unwrap_or(self.quota);
        let now = self.clock.now();
        let record = Record::new(request.identifier.clone(), key, request.layout, quota, now);
        let (issue_id, tracker) = (request.issue_id.clone(), request.tracker.clone());
        Record { issue_id, tracker, state, ..record }
    }

    /// Writes the record first: a directory that appears is never without one.
    ///
    /// Without a hook the record says `ready` at once. If the process dies before
    /// the directory is there, the workspace counts as absent.
    fn make(
        &self,
        request: &Create,
        key: WorkspaceKey,
        hooked: bool,
        lock: Lock,
    ) -> Result<Pending, Error> {
        let state = if hooked { State::Creating } else { State::Ready };
        let record = self.new_record(request, key, state);
        self.records().write(&record, Durability::Synced)?;
        if let Err(error) = self.make_directory(&record.key) {
            self.records().remove(&record.key)?;
            return Err(error);
        }
        // From here on an error leaves the record, which says how far this came.
        let synced = self.root.directory.sync_directory(Path::new("."));
        synced.map_err(Error::files("could not sync the root"))?;
        let directory = self.open_directory(&record.key)?;
        let directory =
            directory.ok_or_else(|| self.cwd_error(&record.key, CwdReason::PathUnreadable))?;
        ensure_layout(&directory, record.layout)?;
        Ok(Pending { record, directory, lock })
    }

    fn make_directory(&self, key: &WorkspaceKey) -> Result<(), Error> {
        let workspace = self.location(key).workspace;
        let made = self.root.directory.create_directory(Path::new(key.as_str()), WORKSPACE_MODE);
        made.map_err(|error| match error.problem() {
            // It appeared since we looked: whoever put it there is not one of us.
            Problem::Exists => Error::Busy { key: key.to_string(), holder: None },
            _ => Error::files(format!("could not make {}", workspace.display()))(error),
        })?;
        debug!(workspace = %workspace.display(), "directory made");
        Ok(())
    }

    /// Declares a workspace ready, if it still is the directory that the hook was given.
    fn finish(&self, pending: &Pending) -> Result<Record, Error> {
        if let Err(error) = self.check_still_there(&pending.record.key, &pending.directory) {
            return Err(self.abandon(pending, error));
        }
        let record = Record { state: State::Ready, ..pending.record.clone() };
        self.records().write(&record, Durability::Synced)?;
        Ok(record)
    }

    /// Takes back what was made because its hook failed; returns the hook's error.
    fn abandon(&self, pending: &Pending, error: Error) -> Error {
        let key = &pending.record.key;
        let undone = match self.open_directory(key) {
            Ok(Some(directory)) => self.discard(key, &directory),
            Ok(None) => Ok(()),
            // Something that the hook put there, which is not ours to remove.
            Err(Error::Misplaced { .. } | Error::Occupied { .. } | Error::ForeignOwner { .. }) => {
                Ok(())
            }
            Err(error) => Err(error),
        };
        let undone = undone.and_then(|()| self.accounts().forget(key));
        if let Err(undo) = undone.and_then(|()| self.records().remove(key)) {
            // The record still says `creating`, so the next create wipes the directory.
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
