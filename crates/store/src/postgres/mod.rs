//! The store on a PostgreSQL server, for any number of processes.
//!
//! Operations of the queue are batched in two lanes, each a connection with one transaction at a time
//! (`lane`, `batch`). Everything else runs on a small pool of connections (`session`) and is retried while
//! the server may come back (`retry`). Transactions that change the queue take one advisory lock of the
//! database, so that they run one after the other over all processes. `LISTEN` wakes claims that wait
//! (`listener`). A conductor holds its tenure with a connection of its own (`tenure`).
//!
//! The server may be restarted or fail over at any time. An operation whose reply was lost is repeated with
//! the same values, which takes effect once; callers see an error only when the server stays away for
//! [`OUTAGE_LIMIT`].

mod address;
mod batch;
mod batch_reply;
mod columns;
mod error;
mod idempotency_keys;
mod issues;
mod journal;
mod lane;
mod lease;
mod listener;
mod migrate;
mod operation;
mod retry;
mod rows;
mod session;
mod tasks;
mod tenure;
mod tls;
mod workspaces;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use carrel_domain::{Secret, TaskId, Timestamp, VolumeId, WorkspaceId};

use self::lane::{Kind, Lane};
use self::listener::Listener;
use self::operation::{LaneOperation, PendingClaim};
use self::retry::{in_queue_transaction, with_session};
use self::rows::{AsUuid as _, text};
use self::session::{Server, SessionPool};
use crate::error::StoreError;
use crate::store::Store;
use crate::{
    Appended, Cancellation, Claim, ClaimRequest, Claimed, Counts, Event, Finish, Finished,
    Heartbeat, IdempotencyKey, Migration, NewEvent, NewTask, Page, QueuedTask, Release, Released,
    Sealed, StoredReply, Submission, Task, TaskFilter, WorkerId, WorkerRecord, Workspace,
};

/// Excludes all other transactions of the queue, in any process, until this one ends. The number is an
/// arbitrary constant of Carrel.
const QUEUE_LOCK: &str = "SELECT pg_advisory_xact_lock(4850713926108734466)";

/// The time that the server may be away before a caller gets an error.
const OUTAGE_LIMIT: Duration = Duration::from_secs(3);

/// The settings of a PostgreSQL store.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// The connection URL, as in `DATABASE_URL`.
    pub url: Secret,
}

/// A store on a PostgreSQL server. Cheap to clone.
///
/// Connects when it is first used, and again after an outage. During an outage calls fail within seconds.
#[derive(Clone, Debug)]
pub struct Postgres {
    sessions: SessionPool,
    queue_lane: Lane,
    claim_lane: Lane,
    listener: Arc<OnceLock<Listener>>,
}

impl Postgres {
    /// Parses the URL and starts the lanes, without connecting. Must be called inside a tokio runtime.
    pub fn open(options: &PostgresOptions) -> Result<Self, StoreError> {
        let (config, tls) = address::parse(&options.url)?;
        let server = Server { config: Arc::new(config), tls };
        Ok(Self {
            queue_lane: Lane::open(Kind::Queue, server.clone()),
            claim_lane: Lane::open(Kind::ClaimWrites, server.clone()),
            sessions: SessionPool::new(server),
            listener: Arc::default(),
        })
    }

    /// Applies missing migrations and returns them. Of several processes one does, and the others wait.
    pub async fn migrate(&self) -> Result<Vec<Migration>, StoreError> {
        let mut session = self.sessions.server.connect_to_any_schema().await?;
        Ok(migrate::migrate(&mut session.client).await?)
    }

    fn server(&self) -> &Server {
        &self.sessions.server
    }
}

#[async_trait]
impl Store for Postgres {
    async fn add_workspace(&self, workspace: Workspace) -> Result<Option<Workspace>, StoreError> {
        with_session!(self, |session| workspaces::add(session, &workspace).await?)
    }

    async fn workspace(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        with_session!(self, |session| workspaces::find(session, id).await?)
    }

    async fn workspaces(
        &self,
        after: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<Vec<Workspace>, StoreError> {
        with_session!(self, |session| workspaces::list(session, after, limit).await?)
    }

    async fn delete_workspace(&self, id: WorkspaceId) -> Result<bool, StoreError> {
        in_queue_transaction!(self, LONG_TRY, |session| workspaces::delete(session, id).await?)
    }

    async fn assign_volume(
        &self,
        workspace: WorkspaceId,
        among: &[VolumeId],
    ) -> Result<Option<VolumeId>, StoreError> {
        in_queue_transaction!(self, |session| workspaces::assign_volume(session, workspace, among)
            .await?)
    }

    async fn register_worker(&self, worker: WorkerRecord) -> Result<(), StoreError> {
        with_session!(self, |session| workspaces::register_worker(session, &worker).await?)
    }

    async fn deregister_worker(&self, id: &WorkerId) -> Result<(), StoreError> {
        const DEREGISTER: &str = "DELETE FROM workers WHERE id = $1";
        with_session!(self, |session| {
            session.execute(DEREGISTER, &[&text(&id.0)]).await?;
        })
    }

    async fn workers(&self, seen_since: Timestamp) -> Result<Vec<WorkerRecord>, StoreError> {
        with_session!(self, |session| workspaces::workers(session, seen_since).await?)
    }

    async fn submit(&self, task: NewTask) -> Result<Submission, StoreError> {
        self.queue_lane.submit(|reply| LaneOperation::Submit(Box::new(task), reply)).await
    }

    async fn try_claim(
        &self,
        request: ClaimRequest,
        now: Timestamp,
    ) -> Result<Option<Claimed>, StoreError> {
        self.queue_lane
            .submit(|reply| LaneOperation::Claim(PendingClaim::new(request, now), reply))
            .await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError> {
        self.listener
            .get_or_init(|| Listener::start(self.server().clone(), self.queue_lane.clone()));
        self.queue_lane.wait_for_task(request).await
    }

    async fn heartbeat(&self, claim: Claim, until: Timestamp) -> Result<Heartbeat, StoreError> {
        self.claim_lane.submit(|reply| LaneOperation::Heartbeat(claim, until, reply)).await
    }

    async fn append(
        &self,
        claim: Claim,
        after: u64,
        events: Vec<NewEvent>,
    ) -> Result<Appended, StoreError> {
        self.claim_lane.submit(|reply| LaneOperation::Append(claim, after, events, reply)).await
    }

    async fn finish(&self, claim: Claim, finish: Finish) -> Result<Finished, StoreError> {
        self.queue_lane.submit(|reply| LaneOperation::Finish(claim, Box::new(finish), reply)).await
    }

    async fn release(&self, claim: Claim, release: Release) -> Result<Released, StoreError> {
        in_queue_transaction!(self, |session| lease::release(session, claim, &release).await?)
    }

    async fn release_expired(
        &self,
        now: Timestamp,
        delay: fn(u32) -> Duration,
    ) -> Result<Vec<Event>, StoreError> {
        let mut events = Vec::new();
        loop {
            let released: Result<_, StoreError> = in_queue_transaction!(
                self,
                LONG_TRY,
                |session| lease::release_expired(session, now, delay).await?
            );
            let (released, more) = released?;
            events.extend(released);
            if !more {
                return Ok(events);
            }
        }
    }

    async fn release_except(
        &self,
        alive: &[WorkerId],
        now: Timestamp,
    ) -> Result<Vec<Event>, StoreError> {
        in_queue_transaction!(self, |session| lease::release_except(session, alive, now).await?)
    }

    async fn queued_tasks(
        &self,
        due_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<QueuedTask>, StoreError> {
        with_session!(self, |session| tasks::queued(session, due_before, limit).await?)
    }

    async fn fail_queued(
        &self,
        task: TaskId,
        error: &str,
        now: Timestamp,
    ) -> Result<Option<Vec<Event>>, StoreError> {
        in_queue_transaction!(self, |session| lease::fail_queued(session, task, error, now).await?)
    }

    async fn cancel(&self, task: TaskId, now: Timestamp) -> Result<Cancellation, StoreError> {
        in_queue_transaction!(self, |session| lease::cancel(session, task, now).await?)
    }

    async fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        with_session!(self, |session| tasks::find(session, id).await?)
    }

    async fn tasks(&self, filter: TaskFilter) -> Result<Page, StoreError> {
        with_session!(self, |session| tasks::list(session, &filter).await?)
    }

    async fn events(&self, task: TaskId, after: u64, limit: u32) -> Result<Vec<Event>, StoreError> {
        with_session!(self, |session| tasks::events(session, task, after, limit).await?)
    }

    async fn save_reply(
        &self,
        key: IdempotencyKey,
        status: u16,
        body: String,
        now: Timestamp,
    ) -> Result<StoredReply, StoreError> {
        with_session!(self, |session| {
            workspaces::save_reply(session, &key, status, &body, now).await?
        })
    }

    async fn reply(&self, scope: &str, key: &str) -> Result<Option<StoredReply>, StoreError> {
        with_session!(self, |session| workspaces::reply(session, scope, key).await?)
    }

    async fn acquire_key(
        &self,
        key: &IdempotencyKey,
        holder: &str,
        lease: Duration,
    ) -> Result<bool, StoreError> {
        with_session!(self, |session| idempotency_keys::acquire(session, key, holder, lease)
            .await?)
    }

    async fn release_key(&self, key: &IdempotencyKey, holder: &str) -> Result<(), StoreError> {
        with_session!(self, |session| idempotency_keys::release(session, key, holder).await?)
    }

    async fn put_credential(
        &self,
        workspace: WorkspaceId,
        name: String,
        sealed: Sealed,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        const PUT: &str = "INSERT INTO credentials (workspace_id, name, sealed, at)
            VALUES ($1, $2, $3, $4) ON CONFLICT (workspace_id, name) DO UPDATE
            SET sealed = excluded.sealed, at = excluded.at";
        with_session!(self, |session| {
            let at = now.as_millis();
            session.execute(PUT, &[&workspace.uuid(), &text(&name), &sealed.0, &at]).await?;
        })
    }

    async fn credential(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Sealed>, StoreError> {
        const FIND: &str = "SELECT sealed FROM credentials WHERE workspace_id = $1 AND name = $2";
        with_session!(self, |session| {
            let found = session.first(FIND, &[&workspace.uuid(), &text(name)]).await?;
            found.map(|row| rows::get(&row, 0)).transpose()?.map(Sealed)
        })
    }

    async fn credential_names(&self, workspace: WorkspaceId) -> Result<Vec<String>, StoreError> {
        const NAMES: &str = r#"SELECT name FROM credentials WHERE workspace_id = $1
            ORDER BY name COLLATE "C""#;
        with_session!(self, |session| {
            let found = session.query(NAMES, &[&workspace.uuid()]).await?;
            found.iter().map(|row| rows::get(row, 0)).collect::<Result<_, _>>()?
        })
    }

    async fn delete_credential(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<bool, StoreError> {
        const DELETE: &str = "DELETE FROM credentials WHERE workspace_id = $1 AND name = $2";
        with_session!(self, |session| {
            session.execute(DELETE, &[&workspace.uuid(), &text(name)]).await? > 0
        })
    }

    async fn delete_before(&self, replies: Timestamp, tasks: Timestamp) -> Result<u64, StoreError> {
        const REPLIES: &str = "DELETE FROM replies WHERE at < $1";
        let deleted: Result<u64, StoreError> = with_session!(self, LONG_TRY, |session| session
            .execute(REPLIES, &[&replies.as_millis()])
            .await?);
        let mut deleted = deleted?;
        let expired: Result<(), StoreError> =
            with_session!(self, |session| idempotency_keys::delete_expired(session).await?);
        expired?;
        loop {
            let more: Result<u64, StoreError> =
                in_queue_transaction!(self, LONG_TRY, |session| tasks::delete_before(
                    session, tasks
                )
                .await?);
            let more = more?;
            deleted += more;
            if more == 0 {
                return Ok(deleted);
            }
        }
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        with_session!(self, |session| workspaces::counts(session).await?)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        with_session!(self, |session| session.client.batch_execute("SELECT 1").await?)
    }
}
