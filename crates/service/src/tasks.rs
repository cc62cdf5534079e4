//! What whoever submits tasks can do with them.

use std::sync::Arc;

use carrel_domain::{Clock, TaskId, WorkspaceId};
use carrel_store::{Cancellation, Event, Page, Store, Submission, Task, TaskFilter};
use futures_util::Stream;

use crate::error::ServiceError;
use crate::feed::Feed;
use crate::follow::{Followed, follow};
use crate::request::{InvalidRequest, Submit};

/// Tasks, as whoever submits them sees them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tasks {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) feed: Feed,
    pub(crate) clock: Arc<dyn Clock>,
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    /// The task as it stands.
    pub task: Task,
    /// The same request came before.
    pub repeated: bool,
}

/// What became of a wish for a task's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It is over.
    Done,
    /// Its worker has been told.
    Underway,
}

impl Tasks {
    /// Puts them together.
    pub fn new(store: Arc<dyn Store>, feed: Feed, clock: Arc<dyn Clock>) -> Self {
        Self { store, feed, clock }
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the news.
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Queues a task. When this returns it will run, whatever happens to this process. `scope` tells
    /// the idempotency keys of different callers apart.
    pub async fn submit(&self, submit: Submit, scope: &str) -> Result<Receipt, ServiceError> {
        self.check_credentials(&submit).await?;
        let (id, key) = (submit.workspace, submit.key().unwrap_or_default().to_owned());
        match self.store.submit(submit.task(scope, self.clock.now())).await? {
            Submission::Created(task, events) => {
                self.feed.publish(&events);
                Ok(Receipt { task, repeated: false })
            }
            Submission::Repeated(task) => Ok(Receipt { task, repeated: true }),
            Submission::Mismatch => Err(ServiceError::Mismatch { key }),
            Submission::NoWorkspace => Err(ServiceError::NoWorkspace { id }),
            Submission::Full { limit } => Err(ServiceError::Full { id, limit }),
        }
    }

    /// Refuses names of credentials that the workspace does not have.
    async fn check_credentials(&self, submit: &Submit) -> Result<(), ServiceError> {
        if submit.credentials().next().is_none() {
            return Ok(());
        }
        let known = self.store.credential_names(submit.workspace).await?;
        let is_unknown = |(_, name): &(String, &str)| !known.iter().any(|known| known == name);
        match submit.credentials().find(is_unknown) {
            None => Ok(()),
            Some((field, name)) => {
                let rule = format!("names no credential of the workspace: {name:?}");
                Err(InvalidRequest::new(field, rule).into())
            }
        }
    }

    /// Returns a task of a workspace.
    pub async fn find(&self, workspace: WorkspaceId, id: TaskId) -> Result<Task, ServiceError> {
        let found = self.store.task(id).await?.filter(|task| task.workspace == workspace);
        found.ok_or(ServiceError::NoTask { id })
    }

    /// Returns a task, whosever it is.
    pub async fn find_any(&self, id: TaskId) -> Result<Task, ServiceError> {
        self.store.task(id).await?.ok_or(ServiceError::NoTask { id })
    }

    /// Lists tasks of a workspace.
    pub async fn list(&self, filter: TaskFilter) -> Result<Page, ServiceError> {
        Ok(self.store.tasks(filter).await?)
    }

    /// Asks for a task's end. One that waits is over at once; the worker of one that runs is told.
    pub async fn cancel(&self, id: TaskId) -> Result<Cancelled, ServiceError> {
        match self.store.cancel(id, self.clock.now()).await? {
            Cancellation::Cancelled(events) => {
                self.feed.publish(&events);
                Ok(Cancelled::Done)
            }
            Cancellation::Requested => {
                self.feed.cancel(id);
                Ok(Cancelled::Underway)
            }
            Cancellation::Finished(status) => Err(ServiceError::Finished { id, status }),
            Cancellation::Unknown => Err(ServiceError::NoTask { id }),
        }
    }

    /// Follows a task from behind an event to its last one.
    pub fn follow(&self, id: TaskId, after: u64) -> impl Stream<Item = Followed> + Send + use<> {
        follow(Arc::clone(&self.store), &self.feed, id, after)
    }

    pub(crate) fn publish(&self, events: &[Event]) {
        self.feed.publish(events);
    }
}
