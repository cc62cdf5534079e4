//! How others look at the conductor, and give it orders.

use std::fs::File;
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use carrel_config::Workflow;
use carrel_domain::{Secret, Timestamp};
use carrel_fsroot::Root;
use carrel_store::{Journal, RunFilter, RunRecord, StoreError};
use serde::Serialize;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use super::transcript;
use super::webhook_secret::{SecretReceipt, WebhookSecretStore};
use crate::command_rejection::CommandRejection;
use crate::event::OperatorCommand;
use crate::notice::Notice;
use crate::state::State;

/// Notices that somebody who listens may be behind.
const BEHIND: usize = 1024;

/// Orders that may wait.
const WAITING: usize = 64;

/// A way to the conductor. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    state: watch::Receiver<Arc<State>>,
    workflow: Arc<ArcSwap<Workflow>>,
    orders: mpsc::Sender<Request>,
    said: broadcast::Sender<Arc<TimedNotice>>,
    journal: Arc<dyn Journal>,
    scope: Arc<str>,
    files: Arc<Root>,
    webhook_secret: WebhookSecretStore,
}

/// Something that people were told.
#[derive(Clone, Debug, Serialize)]
pub struct TimedNotice {
    /// When.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub notice: Notice,
}

/// An order is not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// It makes no sense as things stand.
    #[error(transparent)]
    Rejected(#[from] CommandRejection),
    /// The conductor has ended.
    #[error("the conductor has ended")]
    ConductorStopped,
}

/// An order with the way back.
pub(super) type Request = (OperatorCommand, oneshot::Sender<Result<(), CommandError>>);

/// The conductor's side of the handles.
#[derive(Debug)]
pub(super) struct HandleBackend {
    state: watch::Sender<Arc<State>>,
    pub(super) workflow: Arc<ArcSwap<Workflow>>,
    pub(super) orders: mpsc::Receiver<Request>,
    said: broadcast::Sender<Arc<TimedNotice>>,
}

/// Makes both sides.
pub(super) fn pair(
    state: &State,
    workflow: Arc<Workflow>,
    journal: Arc<dyn Journal>,
    scope: &str,
    files: Arc<Root>,
) -> (Handle, HandleBackend) {
    let (published, seen) = watch::channel(Arc::new(state.clone()));
    let (orders, queue) = mpsc::channel(WAITING);
    let (said, _) = broadcast::channel(BEHIND);
    let workflow = Arc::new(ArcSwap::new(workflow));
    let handle = Handle {
        state: seen,
        workflow: Arc::clone(&workflow),
        orders,
        said: said.clone(),
        journal,
        scope: scope.into(),
        webhook_secret: WebhookSecretStore::new(Arc::clone(&files)),
        files,
    };
    (handle, HandleBackend { state: published, workflow, orders: queue, said })
}

impl HandleBackend {
    /// Shows how things stand.
    pub(super) fn publish(&self, state: &State) {
        self.state.send_replace(Arc::new(state.clone()));
    }

    /// Tells whoever listens.
    pub(super) fn say(&self, at: Timestamp, notice: Notice) {
        // Nobody need listen.
        let _ = self.said.send(Arc::new(TimedNotice { at, notice }));
    }
}

impl Handle {
    /// Returns how things stand.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.borrow())
    }

    /// Waits until things stand differently. Returns false when they never will.
    pub async fn changed(&mut self) -> bool {
        self.state.changed().await.is_ok()
    }

    /// Returns the workflow in force.
    pub fn workflow(&self) -> Arc<Workflow> {
        self.workflow.load_full()
    }

    /// Gives an order, and returns when it is carried out or refused.
    pub async fn send(&self, order: OperatorCommand) -> Result<(), CommandError> {
        let (reply, answer) = oneshot::channel();
        self.orders.send((order, reply)).await.map_err(|_| CommandError::ConductorStopped)?;
        answer.await.map_err(|_| CommandError::ConductorStopped)?
    }

    /// Tells whether the conductor has ended.
    pub fn is_over(&self) -> bool {
        self.orders.is_closed()
    }

    /// Listens to what people are told from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<TimedNotice>> {
        self.said.subscribe()
    }

    /// Returns runs, the latest first.
    pub async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        self.journal.runs(&self.scope, filter).await
    }

    /// Returns the secret that the tracker chose for its webhook, if it did.
    pub async fn webhook_secret(&self) -> Option<Secret> {
        let webhook_secret = self.webhook_secret.clone();
        tokio::task::spawn_blocking(move || webhook_secret.secret()).await.ok().flatten()
    }

    /// Keeps the secret that the tracker chose for its webhook. It is on the disk when this returns.
    pub async fn store_webhook_secret(&self, secret: Secret) -> io::Result<SecretReceipt> {
        let webhook_secret = self.webhook_secret.clone();
        let kept = tokio::task::spawn_blocking(move || webhook_secret.keep(&secret)).await;
        kept.map_err(io::Error::other)?.map_err(io::Error::other)
    }

    /// Opens what was written down about a run, with its present length; nothing if it is not kept any
    /// more. Of the record, only the number and the issue say where that is.
    pub async fn transcript(&self, run: &RunRecord) -> io::Result<Option<(File, u64)>> {
        let (files, identifier, run) = (Arc::clone(&self.files), run.identifier.clone(), run.run);
        let opened = move || transcript::open(&files, &identifier, run);
        let opened = tokio::task::spawn_blocking(opened).await.map_err(io::Error::other)?;
        opened.map_err(io::Error::other)
    }
}
