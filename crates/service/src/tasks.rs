//! What whoever submits tasks can do with them.

use std::sync::Arc;

use carrel_domain::{Clock, TaskId, TaskStatus, WorkspaceId};
use carrel_store::{Cancellation, Event, Page, Store, Submission, Task, TaskFilter};
use futures_util::Stream;
use tracing::field::display;
use tracing::{Span, warn};

use crate::bus::{Bus, Hint, LocalBus};
use crate::error::ServiceError;
use crate::event_hub::EventHub;
use crate::event_stream::{FollowItem, follow};
use crate::request::{InvalidRequest, Submit};

/// What becomes of a submission that workers cannot be told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEnqueueFailure {
    /// It waits; the sweep or a worker finds it in the store.
    #[default]
    Keep,
    /// It fails, and its idempotency key is free again.
    Fail,
}

/// Tasks, as whoever submits them sees them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tasks {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hub: EventHub,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) clock: Arc<dyn Clock>,
    on_enqueue_failure: OnEnqueueFailure,
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
    Requested,
}

impl Tasks {
    /// Puts them together, for a process that works by itself.
    pub fn new(store: Arc<dyn Store>, hub: EventHub, clock: Arc<dyn Clock>) -> Self {
        let on_enqueue_failure = OnEnqueueFailure::Keep;
        Self { store, hub, bus: Arc::new(LocalBus::default()), clock, on_enqueue_failure }
    }

    /// Tells other processes, too.
    #[must_use]
    pub fn with_bus(self, bus: Arc<dyn Bus>, on_enqueue_failure: OnEnqueueFailure) -> Self {
        Self { bus, on_enqueue_failure, ..self }
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the news.
    pub fn hub(&self) -> &EventHub {
        &self.hub
    }

    /// Returns what other processes are told with.
    pub fn bus(&self) -> &Arc<dyn Bus> {
        &self.bus
    }

    /// Queues a task. When this returns it will run, whatever happens to this process. `scope` tells
    /// the idempotency keys of different callers apart.
    pub async fn submit(&self, submit: Submit, scope: &str) -> Result<Receipt, ServiceError> {
        self.check_credentials(&submit).await?;
        let (id, key) = (submit.workspace, submit.key().unwrap_or_default().to_owned());
        let submission = self.store.submit(submit.task(scope, self.clock.now())).await?;
        if let Submission::Created(task, _) | Submission::Repeated(task) = &submission {
            Span::current().record("carrel.task.id", display(task.id));
        }
        match submission {
            Submission::Created(task, events) => {
                self.publish(&events);
                self.offer(task).await
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

    /// Tells workers of a task that is in the store.
    async fn offer(&self, task: Task) -> Result<Receipt, ServiceError> {
        let Err(error) = self.bus.offer(&[Hint::of(&task, None)]).await else {
            return Ok(Receipt { task, repeated: false });
        };
        if self.on_enqueue_failure == OnEnqueueFailure::Fail {
            let (reason, now) = (format!("Redis enqueue failed: {error}"), self.clock.now());
            // One that a worker has found all the same runs.
            if let Some(events) = self.store.fail_queued(task.id, &reason, now).await? {
                self.publish(&events);
                return Err(ServiceError::NotEnqueued { id: task.id, reason });
            }
        }
        warn!(%error, task = %task.id, "workers could not be told of a task; they look for it");
        Ok(Receipt { task, repeated: false })
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
                self.publish(&events);
                Ok(Cancelled::Done)
            }
            Cancellation::Requested => {
                self.hub.cancel(id);
                self.bus.cancel(id);
                Ok(Cancelled::Requested)
            }
            Cancellation::Finished(status) => Err(ServiceError::Finished { id, status }),
            Cancellation::Unknown => Err(ServiceError::NoTask { id }),
        }
    }

    /// Follows a task from behind an event to its last one.
    pub fn follow(&self, id: TaskId, after: u64) -> impl Stream<Item = FollowItem> + Send + use<> {
        follow(Arc::clone(&self.store), &self.hub, Arc::clone(&self.bus), id, after)
    }

    /// Tells what happened, here and elsewhere.
    pub(crate) fn publish(&self, events: &[Event]) {
        self.hub.publish(events);
        self.bus.tell(events);
    }

    /// Tells workers that a task waits again, if it does.
    pub(crate) async fn offer_again(&self, task: &Task, status: TaskStatus) {
        if status == TaskStatus::Queued {
            // If this fails the sweep finds it.
            let _ = self.bus.offer(&[Hint::of(task, None)]).await;
        }
    }
}
