//! The records of the service: workspaces, workers, credentials, stored replies, and reads of tasks.
//!
//! Each operation is a statement or two, the same for both databases.

use async_trait::async_trait;
use carrel_domain::{TaskId, Timestamp, WorkspaceId};

use crate::database::{Database, Statement, last, read};
use crate::error::StoreError;
use crate::event::numbered;
use crate::task::task_columns;
use crate::value::values;
use crate::{
    Counts, Event, IdempotencyKey, Page, QueuedTask, Sealed, StoredReply, Task, TaskFilter,
    WorkerId, WorkerRecord, Workspace,
};

/// The records of a [`Store`](crate::Store).
#[async_trait]
pub trait RecordStore: std::fmt::Debug + Send + Sync + 'static {
    /// Adds a workspace. Returns the existing one if the id is taken, and changes nothing then.
    async fn add_workspace(&self, workspace: Workspace) -> Result<Option<Workspace>, StoreError>;

    /// Returns a workspace, or `None` if it does not exist or was deleted.
    async fn workspace(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError>;

    /// Returns up to `limit` workspaces after `after`, ordered by id, which is the order of creation.
    async fn workspaces(
        &self,
        after: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<Vec<Workspace>, StoreError>;

    /// Adds or renews the registration of a worker. Registration has no influence on leases.
    async fn register_worker(&self, worker: WorkerRecord) -> Result<(), StoreError>;

    /// Removes the registration of a worker, if there is one.
    async fn deregister_worker(&self, id: &WorkerId) -> Result<(), StoreError>;

    /// Returns the workers whose registration is not older than `seen_since`, ordered by name.
    async fn workers(&self, seen_since: Timestamp) -> Result<Vec<WorkerRecord>, StoreError>;

    /// Returns up to `limit` queued tasks that were due before `due_before`, by priority and then by age.
    async fn queued_tasks(
        &self,
        due_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<QueuedTask>, StoreError>;

    /// Returns a task with its configuration and result.
    async fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError>;

    /// Returns one page of the tasks of a workspace, newest first.
    async fn tasks(&self, filter: TaskFilter) -> Result<Page, StoreError>;

    /// Returns up to `limit` events of a task with numbers greater than `after`, in order.
    async fn events(&self, task: TaskId, after: u64, limit: u32) -> Result<Vec<Event>, StoreError>;

    /// Stores the reply for an idempotency key, unless there is one. Returns the stored one.
    async fn save_reply(
        &self,
        key: IdempotencyKey,
        status: u16,
        body: String,
        now: Timestamp,
    ) -> Result<StoredReply, StoreError>;

    /// Returns the stored reply for a key; `None` if there is none yet, or the key belongs to a submission.
    async fn reply(&self, scope: &str, key: &str) -> Result<Option<StoredReply>, StoreError>;

    /// Stores a sealed credential, replacing one of the same name.
    async fn put_credential(
        &self,
        workspace: WorkspaceId,
        name: String,
        sealed: Sealed,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Returns a sealed credential, or `None` if there is none of this name.
    async fn credential(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Sealed>, StoreError>;

    /// Returns the names of a workspace's credentials, sorted.
    async fn credential_names(&self, workspace: WorkspaceId) -> Result<Vec<String>, StoreError>;

    /// Deletes a credential. Returns whether there was one.
    async fn delete_credential(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<bool, StoreError>;

    /// Returns the totals over all workspaces, from the counters of their rows.
    async fn counts(&self) -> Result<Counts, StoreError>;
}

pub(crate) const TASK: &str =
    concat!("SELECT ", task_columns!(), " FROM task_executions WHERE id = $1");

/// The events of a task with numbers greater than `$2`, at most `$3`.
pub(crate) const EVENTS: &str = "SELECT number, kind, data, at FROM task_events
    WHERE task = (SELECT sequence FROM task_executions WHERE id = $1) AND number > $2
    ORDER BY number LIMIT $3";

macro_rules! workspace_columns {
    () => {
        "SELECT id, name, layout, network, quota_bytes, created_at, volume FROM workspaces "
    };
}

const WORKSPACE: &str = concat!(workspace_columns!(), "WHERE id = $1");

const REPLY: &str = "SELECT digest, status, body FROM replies
    WHERE scope = $1 AND key = $2 AND status IS NOT NULL";

#[async_trait]
impl<D: Database> RecordStore for D {
    async fn add_workspace(&self, new: Workspace) -> Result<Option<Workspace>, StoreError> {
        let add = Statement::new(
            "INSERT INTO workspaces (id, name, layout, network, quota_bytes, created_at, volume)
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING RETURNING 1",
            values![
                new.id,
                new.name,
                new.layout,
                new.network,
                new.quota_bytes,
                new.created_at,
                new.volume
            ],
        );
        let results = self.write(vec![add, Statement::new(WORKSPACE, values![new.id])]).await?;
        let added = results.first().is_some_and(|rows| !rows.is_empty());
        Ok(if added { None } else { last(results)?.pop() })
    }

    async fn workspace(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        self.first(WORKSPACE, values![id]).await
    }

    async fn workspaces(
        &self,
        after: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<Vec<Workspace>, StoreError> {
        const LIST: &str = concat!(workspace_columns!(), "WHERE id > $1 ORDER BY id LIMIT $2");
        let after = after.unwrap_or_else(|| WorkspaceId::from_bytes([0; 16]));
        self.all(LIST, values![after, limit]).await
    }

    async fn register_worker(&self, worker: WorkerRecord) -> Result<(), StoreError> {
        let WorkerRecord { id, volume, address, concurrency, seen_at } = worker;
        self.execute(
            "INSERT INTO workers (id, volume, address, concurrency, seen_at)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (id) DO UPDATE SET volume = excluded.volume, address = excluded.address,
                 concurrency = excluded.concurrency, seen_at = excluded.seen_at",
            values![&id, volume, address, concurrency, seen_at],
        )
        .await?;
        Ok(())
    }

    async fn deregister_worker(&self, id: &WorkerId) -> Result<(), StoreError> {
        self.execute("DELETE FROM workers WHERE id = $1", values![id]).await?;
        Ok(())
    }

    async fn workers(&self, seen_since: Timestamp) -> Result<Vec<WorkerRecord>, StoreError> {
        const SEEN: &str =
            "SELECT id, volume, address, concurrency, seen_at FROM workers WHERE seen_at >= $1";
        let mut workers: Vec<WorkerRecord> = self.all(SEEN, values![seen_since]).await?;
        workers.sort_by(|one, other| one.id.0.cmp(&other.id.0));
        Ok(workers)
    }

    async fn queued_tasks(
        &self,
        due_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<QueuedTask>, StoreError> {
        const QUEUED: &str = "SELECT t.id, t.workspace_id, t.priority, w.volume
            FROM task_executions t JOIN workspaces w ON w.id = t.workspace_id
            WHERE t.status = 'queued' AND t.due_at < $1 ORDER BY t.priority, t.sequence LIMIT $2";
        self.all(QUEUED, values![due_before, limit]).await
    }

    async fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        self.first(TASK, values![id]).await
    }

    async fn tasks(&self, filter: TaskFilter) -> Result<Page, StoreError> {
        macro_rules! matching {
            () => {
                "FROM task_executions WHERE workspace_id = $1
                 AND (status = $2 OR $2 IS NULL) AND (task_type = $3 OR $3 IS NULL)"
            };
        }
        const TOTAL: &str = concat!("SELECT count(*) ", matching!());
        // Configurations and results may be large and are left out of lists.
        const PAGE: &str = concat!(
            "SELECT id, workspace_id, task_type, priority, status, 'null', timeout_ms,
                 correlation_id, submitted_at, started_at, completed_at, attempt, max_attempts,
                 worker_id, cancel_requested, NULL, error_message, execution_time_ms, last_event ",
            matching!(),
            " ORDER BY sequence DESC LIMIT $4 OFFSET $5"
        );
        let TaskFilter { workspace, status, task_type, limit, offset } = filter;
        let total = Statement::new(TOTAL, values![workspace, status, task_type.clone()]);
        let page = Statement::new(PAGE, values![workspace, status, task_type, limit, offset]);
        let mut results = self.read(vec![total, page]).await?;
        let tasks = read(results.pop().unwrap_or_default())?;
        Ok(Page { tasks, total: last(results)?.pop().unwrap_or_default() })
    }

    async fn events(&self, task: TaskId, after: u64, limit: u32) -> Result<Vec<Event>, StoreError> {
        Ok(numbered(task, self.all(EVENTS, values![task, after, limit]).await?))
    }

    async fn save_reply(
        &self,
        key: IdempotencyKey,
        status: u16,
        body: String,
        now: Timestamp,
    ) -> Result<StoredReply, StoreError> {
        const SAVE: &str = "INSERT INTO replies (scope, key, digest, status, body, at)
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (scope, key) DO NOTHING";
        let IdempotencyKey { scope, key, digest } = key;
        let save = Statement::new(SAVE, values![&scope, &key, digest, status, body, now]);
        let find = Statement::new(REPLY, values![scope, key]);
        let saved = last(self.write(vec![save, find]).await?)?.pop();
        // The row holds a task instead of a reply: scopes of submissions and of other routes never meet.
        let is_submission =
            || StoreError::Unreadable { what: "a key of a submission as one of a reply".into() };
        saved.ok_or_else(is_submission)
    }

    async fn reply(&self, scope: &str, key: &str) -> Result<Option<StoredReply>, StoreError> {
        self.first(REPLY, values![scope, key]).await
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
        self.execute(PUT, values![workspace, name, sealed.0, now]).await?;
        Ok(())
    }

    async fn credential(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Sealed>, StoreError> {
        const FIND: &str = "SELECT sealed FROM credentials WHERE workspace_id = $1 AND name = $2";
        Ok(self.first(FIND, values![workspace, name]).await?.map(Sealed))
    }

    async fn credential_names(&self, workspace: WorkspaceId) -> Result<Vec<String>, StoreError> {
        const NAMES: &str = "SELECT name FROM credentials WHERE workspace_id = $1";
        let mut names: Vec<String> = self.all(NAMES, values![workspace]).await?;
        names.sort();
        Ok(names)
    }

    async fn delete_credential(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<bool, StoreError> {
        const DELETE: &str =
            "DELETE FROM credentials WHERE workspace_id = $1 AND name = $2 RETURNING 1";
        Ok(self.execute(DELETE, values![workspace, name]).await? > 0)
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        const COUNT: &str = "SELECT count(*), CAST(coalesce(sum(queued), 0) AS bigint),
            CAST(coalesce(sum(running), 0) AS bigint) FROM workspaces";
        Ok(self.first(COUNT, Vec::new()).await?.unwrap_or_default())
    }
}
