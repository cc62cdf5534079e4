//! Everything on a PostgreSQL server, for any number of processes at once.

mod address;
mod answers;
mod attempt;
mod batch;
mod columns;
mod issues;
mod journal;
mod keys;
mod lane;
mod lease;
mod listener;
mod migrate;
mod operation;
mod rows;
mod session;
mod tasks;
mod tenure;
mod tls;
mod trouble;
mod workspaces;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use carrel_domain::{Secret, TaskId, Timestamp, VolumeId, WorkspaceId};

use self::attempt::{in_a_transaction, on_a_session};
use self::lane::{Kind, Lane};
use self::listener::Listener;
use self::operation::{Operation, Wish};
use self::rows::{AsUuid as _, text};
use self::session::{Server, Sessions};
use crate::error::StoreError;
use crate::model::{
    Appended, Cancellation, Claim, ClaimRequest, Claimed, Counts, Event, Finish, Finished,
    Heartbeat, IdempotencyKey, Migration, NewEvent, NewTask, Page, QueuedTask, Release, Released,
    Sealed, StoredReply, Submission, Task, TaskFilter, WorkerId, WorkerRecord, Workspace,
};
use crate::store::Store;

/// Keeps all other transactions of the queue, in any process, from running beside this one. Nothing else
/// takes this number.
const LOCK: &str = "SELECT pg_advisory_xact_lock(4850713926108734466)";

/// How long the server may be away before whoever asks is told so.
const PATIENCE: Duration = Duration::from_secs(3);

/// Where the server is.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// The address, as `DATABASE_URL` has it.
    pub url: Secret,
}

/// A store on a PostgreSQL server. Cheap to clone.
///
/// It connects when it has to, and again when the server was away; whoever asks meanwhile is told within
/// seconds that it is.
#[derive(Clone, Debug)]
pub struct Postgres {
    sessions: Sessions,
    queue: Lane,
    telling: Lane,
    /// Started by the first worker that waits.
    listener: Arc<OnceLock<Listener>>,
}

impl Postgres {
    /// Prepares to use a server, without asking it anything. Has to be called where tasks can be spawned.
    pub fn open(options: &PostgresOptions) -> Result<Self, StoreError> {
        let (config, tls) = address::read(&options.url)?;
        let server = Server { config: Arc::new(config), tls };
        Ok(Self {
            queue: Lane::open(Kind::Queue, server.clone()),
            telling: Lane::open(Kind::Telling, server.clone()),
            sessions: Sessions::new(server),
            listener: Arc::default(),
        })
    }

    /// Brings the schema up to date, and returns what that took. Of several processes one does it and the
    /// others wait.
    pub async fn migrate(&self) -> Result<Vec<Migration>, StoreError> {
        let session = self.sessions.server.connect_to_any_schema().await;
        let mut session = session?;
        Ok(migrate::migrate(&mut session.client).await?)
    }

    fn server(&self) -> &Server {
        &self.sessions.server
    }
}

#[async_trait]
impl Store for Postgres {
    async fn add_workspace(&self, workspace: Workspace) -> Result<Option<Workspace>, StoreError> {
        on_a_session!(self, |session| workspaces::add(session, &workspace).await?)
    }

    async fn workspace(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        on_a_session!(self, |session| workspaces::find(session, id).await?)
    }

    async fn workspaces(
        &self,
        after: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<Vec<Workspace>, StoreError> {
        on_a_session!(self, |session| workspaces::list(session, after, limit).await?)
    }

    async fn delete_workspace(&self, id: WorkspaceId) -> Result<bool, StoreError> {
        in_a_transaction!(self, LONG_TRY, |session| workspaces::forget(session, id).await?)
    }

    async fn assign_volume(
        &self,
        workspace: WorkspaceId,
        among: &[VolumeId],
    ) -> Result<Option<VolumeId>, StoreError> {
        in_a_transaction!(self, |session| workspaces::assign_volume(session, workspace, among)
            .await?)
    }

    async fn register_worker(&self, worker: WorkerRecord) -> Result<(), StoreError> {
        on_a_session!(self, |session| workspaces::announce(session, &worker).await?)
    }

    async fn deregister_worker(&self, id: &WorkerId) -> Result<(), StoreError> {
        const RETIRE: &str = "DELETE FROM workers WHERE id = $1";
        on_a_session!(self, |session| {
            session.execute(RETIRE, &[&text(&id.0)]).await?;
        })
    }

    async fn workers(&self, seen_since: Timestamp) -> Result<Vec<WorkerRecord>, StoreError> {
        on_a_session!(self, |session| workspaces::workers(session, seen_since).await?)
    }

    async fn submit(&self, task: NewTask) -> Result<Submission, StoreError> {
        self.queue.ask(|reply| Operation::Submit(Box::new(task), reply)).await
    }

    async fn try_claim(
        &self,
        request: ClaimRequest,
        now: Timestamp,
    ) -> Result<Option<Claimed>, StoreError> {
        self.queue.ask(|reply| Operation::Claim(Wish::new(request, now), reply)).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError> {
        self.listener.get_or_init(|| Listener::start(self.server().clone(), self.queue.clone()));
        self.queue.wait(request).await
    }

    async fn heartbeat(&self, claim: Claim, until: Timestamp) -> Result<Heartbeat, StoreError> {
        self.telling.ask(|reply| Operation::Heartbeat(claim, until, reply)).await
    }

    async fn append(
        &self,
        claim: Claim,
        after: u64,
        events: Vec<NewEvent>,
    ) -> Result<Appended, StoreError> {
        self.telling.ask(|reply| Operation::Append(claim, after, events, reply)).await
    }

    async fn finish(&self, claim: Claim, finish: Finish) -> Result<Finished, StoreError> {
        self.queue.ask(|reply| Operation::Finish(claim, Box::new(finish), reply)).await
    }

    async fn release(&self, claim: Claim, back: Release) -> Result<Released, StoreError> {
        in_a_transaction!(self, |session| lease::release(session, claim, &back).await?)
    }

    async fn release_expired(
        &self,
        now: Timestamp,
        delay: fn(u32) -> Duration,
    ) -> Result<Vec<Event>, StoreError> {
        let mut all = Vec::new();
        loop {
            let taken: Result<_, StoreError> =
                in_a_transaction!(self, LONG_TRY, |session| lease::release_expired(
                    session, now, delay
                )
                .await?);
            let (told, more) = taken?;
            all.extend(told);
            if !more {
                return Ok(all);
            }
        }
    }

    async fn release_except(
        &self,
        alive: &[WorkerId],
        now: Timestamp,
    ) -> Result<Vec<Event>, StoreError> {
        in_a_transaction!(self, |session| lease::release_except(session, alive, now).await?)
    }

    async fn waiting(
        &self,
        due_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<QueuedTask>, StoreError> {
        on_a_session!(self, |session| tasks::waiting(session, due_before, limit).await?)
    }

    async fn fail_queued(
        &self,
        task: TaskId,
        error: &str,
        now: Timestamp,
    ) -> Result<Option<Vec<Event>>, StoreError> {
        in_a_transaction!(self, |session| lease::fail_queued(session, task, error, now).await?)
    }

    async fn cancel(&self, task: TaskId, now: Timestamp) -> Result<Cancellation, StoreError> {
        in_a_transaction!(self, |session| lease::cancel(session, task, now).await?)
    }

    async fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        on_a_session!(self, |session| tasks::find(session, id).await?)
    }

    async fn tasks(&self, filter: TaskFilter) -> Result<Page, StoreError> {
        on_a_session!(self, |session| tasks::list(session, &filter).await?)
    }

    async fn events(&self, task: TaskId, after: u64, limit: u32) -> Result<Vec<Event>, StoreError> {
        on_a_session!(self, |session| tasks::events(session, task, after, limit).await?)
    }

    async fn save_reply(
        &self,
        repeat: IdempotencyKey,
        status: u16,
        body: String,
        now: Timestamp,
    ) -> Result<StoredReply, StoreError> {
        on_a_session!(self, |session| {
            workspaces::remember(session, &repeat, status, &body, now).await?
        })
    }

    async fn reply(&self, scope: &str, key: &str) -> Result<Option<StoredReply>, StoreError> {
        on_a_session!(self, |session| workspaces::reply(session, scope, key).await?)
    }

    async fn acquire_key(
        &self,
        repeat: &IdempotencyKey,
        holder: &str,
        lease: Duration,
    ) -> Result<bool, StoreError> {
        on_a_session!(self, |session| keys::hold(session, repeat, holder, lease).await?)
    }

    async fn release_key(&self, repeat: &IdempotencyKey, holder: &str) -> Result<(), StoreError> {
        on_a_session!(self, |session| keys::release(session, repeat, holder).await?)
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
        on_a_session!(self, |session| {
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
        on_a_session!(self, |session| {
            let found = session.first(FIND, &[&workspace.uuid(), &text(name)]).await?;
            found.map(|row| rows::get(&row, 0)).transpose()?.map(Sealed)
        })
    }

    async fn credential_names(&self, workspace: WorkspaceId) -> Result<Vec<String>, StoreError> {
        const NAMES: &str = r#"SELECT name FROM credentials WHERE workspace_id = $1
            ORDER BY name COLLATE "C""#;
        on_a_session!(self, |session| {
            let found = session.query(NAMES, &[&workspace.uuid()]).await?;
            found.iter().map(|row| rows::get(row, 0)).collect::<Result<_, _>>()?
        })
    }

    async fn delete_credential(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<bool, StoreError> {
        const FORGET: &str = "DELETE FROM credentials WHERE workspace_id = $1 AND name = $2";
        on_a_session!(self, |session| {
            session.execute(FORGET, &[&workspace.uuid(), &text(name)]).await? > 0
        })
    }

    async fn delete_before(&self, replies: Timestamp, tasks: Timestamp) -> Result<u64, StoreError> {
        const REPLIES: &str = "DELETE FROM replies WHERE at < $1";
        let gone: Result<u64, StoreError> = on_a_session!(self, LONG_TRY, |session| session
            .execute(REPLIES, &[&replies.as_millis()])
            .await?);
        let mut gone = gone?;
        let swept: Result<(), StoreError> =
            on_a_session!(self, |session| keys::forget(session).await?);
        swept?;
        loop {
            let more: Result<u64, StoreError> =
                in_a_transaction!(self, LONG_TRY, |session| tasks::forget(session, tasks).await?);
            let more = more?;
            gone += more;
            if more == 0 {
                return Ok(gone);
            }
        }
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        on_a_session!(self, |session| workspaces::counts(session).await?)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        on_a_session!(self, |session| session.client.batch_execute("SELECT 1").await?)
    }
}
