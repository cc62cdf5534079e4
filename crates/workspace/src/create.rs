//! Making a workspace, or finding it as it was left.

use std::path::{Path, PathBuf};

use carrel_domain::{Choice, Identifier, Layout, WorkspaceKey};
use carrel_fsroot::{Durability, Problem, Root};
use tracing::{debug, error, info, warn};

use crate::blocking::blocking;
use crate::error::Error;
use crate::hooks::{Hook, HookContext, Hooks};
use crate::lock::{Lock, Mode, WAIT};
use crate::manager::{Inner, Workspaces};
use crate::quota::Quota;
use crate::record::{Record, State};

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
        Self { identifier, issue_id: None, layout: Layout::default(), quota: None, attempt: None }
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
    _locks: Vec<Lock>,
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
        let issue_id =
            request.issue_id.as_deref().unwrap_or(request.identifier.as_str()).to_owned();
        let result = self.create_unlogged(request, hooks).await;
        match &result {
            Ok(created) => log_created(created, &issue_id),
            Err(error) => {
                let error = &carrel_domain::ErrorEnvelope::of(error).error.message;
                error!(issue_id, error, "Workspace creation failed");
            }
        }
        result
    }

    async fn create_unlogged(&self, request: Create, hooks: &Hooks) -> Result<Created, Error> {
        let context = (request.issue_id.clone(), request.attempt);
        let hooked = hooks.has(Hook::AfterCreate);
        let inner = self.inner.clone();
        let pending = match blocking(move || inner.begin(&request, hooked)).await? {
            Begun::Reused(record) => return Ok(self.created(false, record)),
            Begun::Made(pending) => pending,
        };
        if !hooked {
            return Ok(self.created(true, pending.record));
        }
        let mut pending = pending;
        let context = self.hook_context(&pending.record, context.0, context.1);
        let ran = hooks.run(Hook::AfterCreate, &context, &pending.directory, &self.inner).await;
        pending.record.hook_runs.extend(ran.run);
        let inner = self.inner.clone();
        blocking(move || match ran.result {
            Ok(()) => inner.finish(pending),
            Err(error) => Err(inner.abandon(&pending, error.into())),
        })
        .await
        .map(|record| self.created(true, record))
    }

    fn created(&self, created: bool, record: Record) -> Created {
        let path = self.inner.place(&record.key).workspace;
        Created { created, record, path }
    }

    pub(crate) fn hook_context(
        &self,
        record: &Record,
        issue_id: Option<String>,
        attempt: Option<u32>,
    ) -> HookContext {
        let issue_id = issue_id.or_else(|| record.issue_id.clone());
        HookContext {
            issue_id: issue_id.unwrap_or_else(|| record.identifier.to_string()),
            identifier: record.identifier.clone(),
            key: record.key.clone(),
            workspace: self.inner.place(&record.key).workspace,
            root: self.inner.root.path().to_owned(),
            attempt,
        }
    }
}

fn log_created(created: &Created, issue_id: &str) {
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
        let identifier = &request.identifier;
        // Everybody who could get this key asks here first, so that one identifier
        // never takes two keys at once.
        let base = WorkspaceKey::derive(identifier);
        let mut locks = vec![self.lock_for_creation(&base)?];
        for _ in 0..MAX_CHOICES {
            let (Choice::Held(key) | Choice::Free(key)) = self.choose(identifier)?;
            if key != base {
                locks.truncate(1);
                locks.push(self.lock_for_creation(&key)?);
            }
            let record = self.records().read(&key)?;
            match record {
                // Taken while the lock was awaited.
                Some(record) if record.identifier != *identifier => {}
                record => return self.settle(request, key, record, hooked, locks),
            }
        }
        Err(Error::NoKeyLeft { identifier: identifier.clone(), root: self.root.path().to_owned() })
    }

    fn lock_for_creation(&self, key: &WorkspaceKey) -> Result<Lock, Error> {
        self.locks().take(key.as_str(), Mode::Exclusive, WAIT, "creating")
    }

    /// Brings record and directory together, whatever an earlier process left behind.
    fn settle(
        &self,
        request: &Create,
        key: WorkspaceKey,
        record: Option<Record>,
        hooked: bool,
        locks: Vec<Lock>,
    ) -> Result<Begun, Error> {
        let directory = self.open_directory(&key)?;
        match (record.map(|record| (record.state, record)), directory) {
            (Some((State::Ready, record)), Some(directory)) => {
                self.reuse(request, record, &directory).map(Begun::Reused)
            }
            (None, Some(directory)) => self.adopt(request, key, &directory).map(Begun::Reused),
            (Some((State::Creating | State::Removing, record)), Some(_)) => {
                warn!(
                    issue_identifier = record.identifier.as_str(),
                    workspace = %self.place(&key).workspace.display(),
                    "Workspace was left half-made or half-removed, starting afresh"
                );
                self.discard(&key)?;
                self.make(request, key, hooked, locks).map(Begun::Made)
            }
            (_, None) => self.make(request, key, hooked, locks).map(Begun::Made),
        }
    }

    fn reuse(
        &self,
        request: &Create,
        mut record: Record,
        directory: &Root,
    ) -> Result<Record, Error> {
        ensure_layout(directory, record.layout)?;
        record.issue_id = request.issue_id.clone().or(record.issue_id);
        record.last_used_at = self.clock.now();
        self.records().write(&record, Durability::Buffered)?;
        Ok(record)
    }

    /// Takes over a directory that has no record: it was put there by hand, or its record was lost.
    fn adopt(
        &self,
        request: &Create,
        key: WorkspaceKey,
        directory: &Root,
    ) -> Result<Record, Error> {
        let workspace = self.place(&key).workspace;
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
        Record { state, issue_id: request.issue_id.clone(), ..record }
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
        locks: Vec<Lock>,
    ) -> Result<Pending, Error> {
        let state = if hooked { State::Creating } else { State::Ready };
        let record = self.new_record(request, key, state);
        self.records().write(&record, Durability::Synced)?;
        self.accounts().forget(&record.key)?;
        let name = Path::new(record.key.as_str());
        let place = self.place(&record.key);
        let doing = format!("could not make {}", place.workspace.display());
        let made = self.root.directory.create_directory(name, WORKSPACE_MODE);
        if let Err(error) = made {
            self.records().remove(&record.key)?;
            return Err(match error.problem() {
                // It appeared since we looked: whoever put it there is not one of us.
                Problem::Exists => Error::Busy { key: record.key.to_string(), holder: None },
                _ => Error::files(doing)(error),
            });
        }
        let synced = self.root.directory.sync_directory(Path::new("."));
        synced.map_err(Error::files(doing))?;
        let directory = self.open_directory(&record.key)?;
        let directory = directory.ok_or_else(|| self.not_found(&record.identifier))?;
        ensure_layout(&directory, record.layout)?;
        debug!(workspace = %place.workspace.display(), "directory made");
        Ok(Pending { record, directory, _locks: locks })
    }

    fn finish(&self, pending: Pending) -> Result<Record, Error> {
        let record = Record { state: State::Ready, ..pending.record };
        self.records().write(&record, Durability::Synced)?;
        Ok(record)
    }

    /// Takes back what was made because its hook failed; returns the hook's error.
    fn abandon(&self, pending: &Pending, error: Error) -> Error {
        let key = &pending.record.key;
        let undone = self.discard(key).and_then(|()| self.records().remove(key));
        if let Err(undo) = undone {
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
