//! The store in one SQLite file.
//!
//! One thread writes and up to four connections read, each on a snapshot (WAL mode). The database is used
//! by one server at a time, which the lock of its data directory ensures; other processes of the same user
//! may read and write it meanwhile (`carrel issue`), and wait for its lock up to five seconds.

mod claim;
mod connection;
mod issues;
mod lease;
mod migrate;
mod readers;
mod tasks;
mod workspaces;
mod writer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use carrel_domain::{TaskId, Timestamp, VolumeId, WorkspaceId};
use rusqlite::Connection;

use self::connection::Execute as _;
use self::readers::Readers;
use self::writer::Writer;
use crate::database::{Database, Statement, last};
use crate::error::StoreError;
use crate::store::Store;
use crate::tenure::{self, Tenure, TenureOutcome};
use crate::value::{Row, values};
use crate::{
    Appended, Cancellation, Claim, ClaimRequest, Claimed, Event, Finish, Finished, Heartbeat,
    IdempotencyKey, Migration, NewEvent, NewTask, Release, Released, Submission, WorkerId,
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

impl Database for Sqlite {
    async fn read(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, StoreError> {
        self.readers.read(move |connection| connection.execute_all(&statements)).await
    }

    async fn write(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, StoreError> {
        self.writer.write(move |connection| connection.execute_all(&statements)).await
    }

    async fn write_fenced(
        &self,
        tenure: &Tenure,
        statements: Vec<Statement>,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let tenure = tenure.clone();
        let write = move |connection: &Connection| {
            tenure.check(connection.first(tenure::LATEST, values![tenure.scope()])?)?;
            connection.execute_all(&statements)
        };
        self.writer.write(write).await
    }

    /// Always succeeds: the lock of the data directory excludes other conductors.
    async fn acquire_tenure(
        &self,
        scope: &str,
        holder: &str,
        now: Timestamp,
    ) -> Result<TenureOutcome, StoreError> {
        let acquire = Statement::new(tenure::ACQUIRE, values![scope, holder, now]);
        let number = last(self.write(vec![acquire]).await?)?.pop();
        Ok(TenureOutcome::Acquired(Tenure::permanent(scope, number.unwrap_or_default())))
    }
}

#[async_trait]
impl Store for Sqlite {
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
            .write(move |connection| workspaces::assign_volume(connection, workspace, &among))
            .await
    }

    async fn submit(&self, task: NewTask) -> Result<Submission, StoreError> {
        self.writer.write(move |connection| tasks::submit(connection, &task)).await
    }

    async fn try_claim(
        &self,
        request: ClaimRequest,
        now: Timestamp,
    ) -> Result<Option<Claimed>, StoreError> {
        let claim = move |connection: &Connection| {
            let last = connection.first("SELECT coalesce(max(turn), 0) FROM workspaces", vec![])?;
            let turn = claim::next_turn(last.unwrap_or_default(), now);
            claim::claim(connection, &request, turn, now)
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

    async fn fail_queued(
        &self,
        task: TaskId,
        error: &str,
        now: Timestamp,
    ) -> Result<Option<Vec<Event>>, StoreError> {
        let error = error.to_owned();
        self.writer.write(move |connection| tasks::fail(connection, task, error, now)).await
    }

    async fn cancel(&self, task: TaskId, now: Timestamp) -> Result<Cancellation, StoreError> {
        self.writer.write(move |connection| tasks::cancel(connection, task, now)).await
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

    async fn delete_before(&self, replies: Timestamp, tasks: Timestamp) -> Result<u64, StoreError> {
        let delete = move |connection: &_| workspaces::delete_before(connection, replies, tasks);
        self.writer.write(delete).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        // An empty transaction still takes the lock, and so tests the thread and the file.
        self.writer.write(|_| Ok(())).await
    }
}
