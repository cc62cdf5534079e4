//! The task API of the service: submit, find, list, cancel and follow tasks.

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
use crate::request::{InvalidRequest, TaskSubmission};

/// The treatment of a submission whose hint could not be sent to workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEnqueueFailure {
    /// The task stays queued; a worker or the sweep finds it in the store.
    #[default]
    Keep,
    /// The task becomes `failed` and its idempotency key can be used again.
    Fail,
}

/// The tasks of a store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tasks {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hub: EventHub,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) clock: Arc<dyn Clock>,
    on_enqueue_failure: OnEnqueueFailure,
}

/// The result of a successful submission.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    /// The task as it is now.
    pub task: Task,
    /// The same request was submitted before with the same idempotency key, and made this task.
    pub repeated: bool,
}

/// The result of a successful cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The task was queued and is cancelled.
    Done,
    /// The task runs; its worker ends it.
    Requested,
}

impl Tasks {
    /// Creates the tasks of a process that is alone on its store.
    pub fn new(store: Arc<dyn Store>, hub: EventHub, clock: Arc<dyn Clock>) -> Self {
        let on_enqueue_failure = OnEnqueueFailure::Keep;
        Self { store, hub, bus: Arc::new(LocalBus::default()), clock, on_enqueue_failure }
    }

    /// Adds a bus to other processes.
    #[must_use]
    pub fn with_bus(self, bus: Arc<dyn Bus>, on_enqueue_failure: OnEnqueueFailure) -> Self {
        Self { bus, on_enqueue_failure, ..self }
    }

    /// Returns the store that holds the tasks.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the event hub of this process.
    pub fn hub(&self) -> &EventHub {
        &self.hub
    }

    /// Returns the bus to other processes.
    pub fn bus(&self) -> &Arc<dyn Bus> {
        &self.bus
    }

    /// Queues a task. The task is durable when this returns: it will run even if this process dies at
    /// once. `scope` separates the idempotency keys of different callers.
    pub async fn submit(
        &self,
        submit: TaskSubmission,
        scope: &str,
    ) -> Result<Receipt, ServiceError> {
        self.check_credentials(&submit).await?;
        let id = submit.workspace;
        let key = submit.idempotency_key().unwrap_or_default().to_owned();
        let submission = self.store.submit(submit.into_task(scope, self.clock.now())).await?;
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

    /// Fails if a step names a credential that the workspace does not have.
    async fn check_credentials(&self, submit: &TaskSubmission) -> Result<(), ServiceError> {
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

    /// Sends workers a hint for a task that is in the store.
    async fn offer(&self, task: Task) -> Result<Receipt, ServiceError> {
        let Err(error) = self.bus.offer(&[Hint::of(&task)]).await else {
            return Ok(Receipt { task, repeated: false });
        };
        if self.on_enqueue_failure == OnEnqueueFailure::Fail {
            let reason = format!("Redis enqueue failed: {error}");
            // `None` if a worker has claimed the task meanwhile: it runs.
            if let Some(events) = self.store.fail_queued(task.id, &reason, self.clock.now()).await?
            {
                self.publish(&events);
                return Err(ServiceError::NotEnqueued { id: task.id, reason });
            }
        }
        warn!(%error, task = %task.id, "could not send a hint for a task; workers find it in the store");
        Ok(Receipt { task, repeated: false })
    }

    /// Returns a task, if it belongs to the workspace.
    pub async fn find(&self, workspace: WorkspaceId, id: TaskId) -> Result<Task, ServiceError> {
        let found = self.store.task(id).await?.filter(|task| task.workspace == workspace);
        found.ok_or(ServiceError::NoTask { id })
    }

    /// Returns a task of any workspace.
    pub async fn find_any(&self, id: TaskId) -> Result<Task, ServiceError> {
        self.store.task(id).await?.ok_or(ServiceError::NoTask { id })
    }

    /// Lists the tasks of a workspace, newest first.
    pub async fn list(&self, filter: TaskFilter) -> Result<Page, ServiceError> {
        Ok(self.store.tasks(filter).await?)
    }

    /// Cancels a task: at once if it is queued, through its worker if it runs. Fails for a task that is
    /// terminal.
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

    /// Streams the events of a task after the number `after`, up to and including the terminal one.
    pub fn follow(&self, id: TaskId, after: u64) -> impl Stream<Item = FollowItem> + Send + use<> {
        follow(self.clone(), id, after)
    }

    /// Publishes events that are in the store, in this process and to others.
    pub(crate) fn publish(&self, events: &[Event]) {
        self.hub.publish(events);
        self.bus.publish(events);
    }

    /// Sends a hint for a released task if that is queued again.
    pub(crate) async fn offer_again(&self, task: &Task, status: TaskStatus) {
        if status == TaskStatus::Queued {
            // If this fails, the sweep offers the task.
            let _ = self.bus.offer(&[Hint::of(task)]).await;
        }
    }
}
