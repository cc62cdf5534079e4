//! The store in one SQLite file.
//!
//! One thread writes and up to four connections read, each on a snapshot (WAL mode). The database is used
//! by one server at a time, which the lock of its data directory ensures; other processes of the same user
//! may read and write it meanwhile (`carrel issue`), and wait for its lock up to five seconds.

mod claim;
mod connection;
mod events;
mod idempotency;
mod issues;
mod journal;
mod lease;
mod migrate;
mod placement;
mod readers;
mod rows;
mod tasks;
mod workspaces;
mod writer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use carrel_domain::{TaskId, Timestamp, VolumeId, WorkspaceId};

use self::readers::Readers;
use self::writer::Writer;
use crate::error::StoreError;
use crate::store::Store;
use crate::{
    Appended, Cancellation, Claim, ClaimRequest, Claimed, Counts, Event, Finish, Finished,
    Heartbeat, IdempotencyKey, Migration, NewEvent, NewTask, Page, QueuedTask, Release, Released,
    Sealed, StoredReply, Submission, Task, TaskFilter, WorkerId, WorkerRecord, Workspace,
};

/// The settings of a SQLite store.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The database file. SQLite keeps two more beside it while it is open (`-wal`, `-shm`).
    pub path: PathBuf,
}

/// A store in one SQLite file. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sqlite {
    writer: Writer,
    readers: Readers,
}

impl Sqlite {
    /// Opens or creates the file, applies missing migrations, and starts the writer thread. After a crash SQLite
    /// recovers the write-ahead log here: committed transactions are there, others are not.
    pub fn open(options: &SqliteOptions) -> Result<Self, StoreError> {
        let path: &Path = &options.path;
        let (connection, _) = connection::open_writer(path)?;
        Ok(Self { writer: Writer::start(connection)?, readers: Readers::new(path) })
    }

    /// Opens or creates the file and applies missing migrations, which are returned.
    pub fn migrate(options: &SqliteOptions) -> Result<Vec<Migration>, StoreError> {
        Ok(connection::open_writer(&options.path)?.1)
    }
}

#[async_trait]
impl Store for Sqlite {
    async fn add_workspace(&self, workspace: Workspace) -> Result<Option<Workspace>, StoreError> {
        self.writer.write(move |connection| workspaces::add(connection, &workspace)).await
    }

    async fn workspace(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        self.readers.read(move |connection| workspaces::find(connection, id)).await
    }

    async fn workspaces(
        &self,
        after: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<Vec<Workspace>, StoreError> {
        self.readers.read(move |connection| workspaces::list(connection, after, limit)).await
    }

    async fn delete_workspace(&self, id: WorkspaceId) -> Result<bool, StoreError> {
        self.writer.write(move |connection| workspaces::delete(connection, id)).await
    }

    async fn assign_volume(
        &self,
        workspace: WorkspaceId,
        among: &[VolumeId],
    ) -> Result<Option<VolumeId>, StoreError> {
        let among = among.to_vec();
        self.writer
            .write(move |connection| placement::assign_volume(connection, workspace, &among))
            .await
    }

    async fn register_worker(&self, worker: WorkerRecord) -> Result<(), StoreError> {
        self.writer.write(move |connection| placement::register(connection, &worker)).await
    }

    async fn deregister_worker(&self, id: &WorkerId) -> Result<(), StoreError> {
        let id = id.clone();
        self.writer.write(move |connection| placement::deregister(connection, &id)).await
    }

    async fn workers(&self, seen_since: Timestamp) -> Result<Vec<WorkerRecord>, StoreError> {
        self.readers.read(move |connection| placement::workers(connection, seen_since)).await
    }

    async fn submit(&self, task: NewTask) -> Result<Submission, StoreError> {
        self.writer.write(move |connection| tasks::submit(connection, &task)).await
    }

    async fn try_claim(
        &self,
        request: ClaimRequest,
        now: Timestamp,
    ) -> Result<Option<Claimed>, StoreError> {
        let claim = move |connection: &rusqlite::Connection| {
            let last = connection
                .prepare_cached("SELECT coalesce(max(turn), 0) FROM workspaces")?
                .query_row([], |row| row.get(0))?;
            claim::claim(connection, &request, claim::next_turn(last, now), now)
        };
        self.writer.write(claim).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError> {
        self.writer.claim(request).await
    }

    async fn heartbeat(&self, claim: Claim, until: Timestamp) -> Result<Heartbeat, StoreError> {
        self.writer.write(move |connection| lease::heartbeat(connection, claim, until)).await
    }

    async fn append(
        &self,
        claim: Claim,
        after: u64,
        events: Vec<NewEvent>,
    ) -> Result<Appended, StoreError> {
        self.writer.write(move |connection| lease::append(connection, claim, after, events)).await
    }

    async fn finish(&self, claim: Claim, finish: Finish) -> Result<Finished, StoreError> {
        self.writer.write(move |connection| lease::finish(connection, claim, finish)).await
    }

    async fn release(&self, claim: Claim, release: Release) -> Result<Released, StoreError> {
        self.writer.write(move |connection| lease::release(connection, claim, &release)).await
    }

    async fn release_expired(
        &self,
        now: Timestamp,
        delay: fn(u32) -> Duration,
    ) -> Result<Vec<Event>, StoreError> {
        self.writer.write(move |connection| lease::release_expired(connection, now, delay)).await
    }

    async fn release_except(
        &self,
        alive: &[WorkerId],
        now: Timestamp,
    ) -> Result<Vec<Event>, StoreError> {
        let alive = alive.to_vec();
        let release = move |connection: &_| lease::release_except(connection, &alive, now);
        self.writer.write(release).await
    }

    async fn queued_tasks(
        &self,
        due_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<QueuedTask>, StoreError> {
        self.readers.read(move |connection| tasks::queued(connection, due_before, limit)).await
    }

    async fn fail_queued(
        &self,
        task: TaskId,
        error: &str,
        now: Timestamp,
    ) -> Result<Option<Vec<Event>>, StoreError> {
        let error = error.to_owned();
        self.writer.write(move |connection| tasks::fail(connection, task, &error, now)).await
    }

    async fn cancel(&self, task: TaskId, now: Timestamp) -> Result<Cancellation, StoreError> {
        self.writer.write(move |connection| tasks::cancel(connection, task, now)).await
    }

    async fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        self.readers.read(move |connection| tasks::find(connection, id)).await
    }

    async fn tasks(&self, filter: TaskFilter) -> Result<Page, StoreError> {
        self.readers.read(move |connection| tasks::list(connection, &filter)).await
    }

    async fn events(&self, task: TaskId, after: u64, limit: u32) -> Result<Vec<Event>, StoreError> {
        self.readers.read(move |connection| events::after(connection, task, after, limit)).await
    }

    async fn save_reply(
        &self,
        key: IdempotencyKey,
        status: u16,
        body: String,
        now: Timestamp,
    ) -> Result<StoredReply, StoreError> {
        let save = move |connection: &_| idempotency::save(connection, &key, status, &body, now);
        self.writer.write(save).await
    }

    async fn reply(&self, scope: &str, key: &str) -> Result<Option<StoredReply>, StoreError> {
        let (scope, key) = (scope.to_owned(), key.to_owned());
        self.readers.read(move |connection| idempotency::find(connection, &scope, &key)).await
    }

    async fn acquire_key(
        &self,
        _: &IdempotencyKey,
        _: &str,
        _: Duration,
    ) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn release_key(&self, _: &IdempotencyKey, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn put_credential(
        &self,
        workspace: WorkspaceId,
        name: String,
        sealed: Sealed,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let put = move |connection: &_| {
            workspaces::put_credential(connection, workspace, &name, &sealed, now)
        };
        self.writer.write(put).await
    }

    async fn credential(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Sealed>, StoreError> {
        let name = name.to_owned();
        self.readers
            .read(move |connection| workspaces::credential(connection, workspace, &name))
            .await
    }

    async fn credential_names(&self, workspace: WorkspaceId) -> Result<Vec<String>, StoreError> {
        self.readers
            .read(move |connection| workspaces::credential_names(connection, workspace))
            .await
    }

    async fn delete_credential(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<bool, StoreError> {
        let name = name.to_owned();
        let delete =
            move |connection: &_| workspaces::delete_credential(connection, workspace, &name);
        self.writer.write(delete).await
    }

    async fn delete_before(&self, replies: Timestamp, tasks: Timestamp) -> Result<u64, StoreError> {
        let delete = move |connection: &_| {
            let deleted = idempotency::delete_before(connection, replies)?
                + workspaces::delete_tasks(connection, tasks)?;
            Ok(deleted as u64)
        };
        self.writer.write(delete).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.readers.read(workspaces::counts).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        // An empty transaction still takes the lock, and so tests the thread and the file.
        self.writer.write(|_| Ok(())).await
    }
}
