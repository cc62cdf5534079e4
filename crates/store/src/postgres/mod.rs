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
mod issues;
mod lane;
mod lease;
mod listener;
mod migrate;
mod operation;
mod retry;
mod session;
mod tenure;
mod tls;
mod values;
mod workspaces;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use carrel_domain::{Secret, TaskId, Timestamp, VolumeId, WorkspaceId};
use tokio_util::task::AbortOnDropHandle;

use self::lane::{Kind, Lane};
use self::operation::{LaneOperation, PendingClaim};
use self::retry::{in_queue_transaction, in_transaction, with_session};
use self::session::{Server, SessionPool};
use crate::database::{Database, Statement};
use crate::error::StoreError;
use crate::store::Store;
use crate::tenure::{Tenure, TenureOutcome};
use crate::value::{Row, values};
use crate::{
    Appended, Cancellation, Claim, ClaimRequest, Claimed, Event, Finish, Finished, Heartbeat,
    IdempotencyKey, Migration, NewEvent, NewTask, Release, Released, Submission, WorkerId,
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
    listener: Arc<OnceLock<AbortOnDropHandle<()>>>,
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

impl Database for Postgres {
    async fn read(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, StoreError> {
        with_session!(self, |session| session.execute_all(&statements).await?)
    }

    async fn write(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, StoreError> {
        self.read(statements).await
    }

    /// The check of the tenure takes a share lock, which keeps a successor from taking over before the
    /// commit. The lock of the queue is not taken.
    async fn write_fenced(
        &self,
        tenure: &Tenure,
        statements: Vec<Statement>,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        in_transaction!(self, |session| {
            tenure::check(session, tenure).await?;
            session.execute_all(&statements).await?
        })
    }

    async fn acquire_tenure(
        &self,
        scope: &str,
        holder: &str,
        now: Timestamp,
    ) -> Result<TenureOutcome, StoreError> {
        tenure::acquire(self.server(), scope, holder, now).await
    }
}

#[async_trait]
impl Store for Postgres {
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
            .get_or_init(|| listener::start(self.server().clone(), self.queue_lane.clone()));
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
            let (released, more) = in_queue_transaction!(self, LONG_TRY, |session| {
                lease::release_expired(session, now, delay).await?
            })?;
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

    async fn acquire_key(
        &self,
        key: &IdempotencyKey,
        holder: &str,
        lease: Duration,
    ) -> Result<bool, StoreError> {
        with_session!(self, |session| {
            workspaces::acquire_key(session, key, holder, lease).await?
        })
    }

    async fn release_key(&self, key: &IdempotencyKey, holder: &str) -> Result<(), StoreError> {
        const RELEASE: &str =
            "DELETE FROM replies_under_way WHERE scope = $1 AND key = $2 AND holder = $3";
        self.execute(RELEASE, values![&key.scope, &key.key, holder]).await?;
        Ok(())
    }

    async fn delete_before(&self, replies: Timestamp, tasks: Timestamp) -> Result<u64, StoreError> {
        const REPLIES: &str = "DELETE FROM replies WHERE at < $1";
        // Leases that expired an hour ago, whose holders died.
        const KEYS: &str = "DELETE FROM replies_under_way
            WHERE held_until < clock_timestamp() - interval '1 hour'";
        let mut deleted = with_session!(self, LONG_TRY, |session| {
            session.execute(REPLIES, values![replies]).await?
        })?;
        self.execute(KEYS, vec![]).await?;
        loop {
            let more = in_queue_transaction!(self, LONG_TRY, |session| {
                workspaces::delete_tasks(session, tasks).await?
            })?;
            deleted += more;
            if more == 0 {
                return Ok(deleted);
            }
        }
    }

    async fn ping(&self) -> Result<(), StoreError> {
        with_session!(self, |session| session.client.batch_execute("SELECT 1").await?)
    }
}
