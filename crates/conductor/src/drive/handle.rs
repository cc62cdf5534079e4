//! Handles: the interface of a conductor to the API and the terminal.
//!
//! A [`Handle`] reads published copies of the state, the latest notices among it, without the loop, and
//! sends commands through a bounded queue. It stays valid after the conductor has ended and then shows the
//! last state.

use std::fs::File;
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use carrel_config::Workflow;
use carrel_domain::Secret;
use carrel_fsroot::Root;
use carrel_store::{Journal, RunFilter, RunRecord, StoreError};
use tokio::sync::{mpsc, oneshot, watch};

use super::transcript;
use super::webhook_secret::{SecretReceipt, WebhookSecretStore};
use crate::command_rejection::CommandRejection;
use crate::event::OperatorCommand;
use crate::state::State;

/// Commands that wait for the loop; further senders wait themselves.
const COMMAND_BUFFER: usize = 64;

/// A handle to a conductor: the published state, journaled runs and commands. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    state: watch::Receiver<Arc<State>>,
    pub(super) workflow: Arc<ArcSwap<Workflow>>,
    commands: mpsc::Sender<Request>,
    journal: Arc<dyn Journal>,
    scope: Arc<str>,
    files: Arc<Root>,
    webhook_secret: WebhookSecretStore,
}

/// The reason for which a command has no effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// It does not apply to the current state.
    #[error(transparent)]
    Rejected(#[from] CommandRejection),
    /// The conductor has ended, before or while the command waited.
    #[error("the conductor has ended")]
    ConductorStopped,
}

pub(super) type Request = (OperatorCommand, oneshot::Sender<Result<(), CommandError>>);

/// Creates a handle, and the ends of its channels that the conductor holds.
pub(super) fn open(
    state: &State,
    workflow: Arc<Workflow>,
    journal: Arc<dyn Journal>,
    scope: &str,
    files: Arc<Root>,
) -> (Handle, watch::Sender<Arc<State>>, mpsc::Receiver<Request>) {
    let (published, seen) = watch::channel(Arc::new(state.clone()));
    let (commands, queue) = mpsc::channel(COMMAND_BUFFER);
    let handle = Handle {
        state: seen,
        workflow: Arc::new(ArcSwap::new(workflow)),
        commands,
        journal,
        scope: scope.into(),
        webhook_secret: WebhookSecretStore::new(Arc::clone(&files)),
        files,
    };
    (handle, published, queue)
}

impl Handle {
    /// Returns the latest published state, which may be up to 50 ms old while much happens.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.borrow())
    }

    /// Waits for the next published state. Returns false when the conductor has ended.
    pub async fn changed(&mut self) -> bool {
        self.state.changed().await.is_ok()
    }

    /// Returns the workflow in force, which a reload replaces.
    pub fn workflow(&self) -> Arc<Workflow> {
        self.workflow.load_full()
    }

    /// Sends a command, and returns when its effect is journaled or when it is rejected.
    pub async fn send(&self, command: OperatorCommand) -> Result<(), CommandError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send((command, reply)).await.map_err(|_| CommandError::ConductorStopped)?;
        answer.await.map_err(|_| CommandError::ConductorStopped)?
    }

    /// Returns true when the conductor has ended. Commands fail then, and the state does not change.
    pub fn is_over(&self) -> bool {
        self.commands.is_closed()
    }

    /// Returns journaled runs of this tracker, the latest first, for at most 30 days.
    pub async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        self.journal.runs(&self.scope, filter).await
    }

    /// Returns the secret that the tracker chose for its webhook.
    pub async fn webhook_secret(&self) -> Option<Secret> {
        let webhook_secret = self.webhook_secret.clone();
        carrel_exec::blocking(move || webhook_secret.secret()).await.ok().flatten()
    }

    /// Stores the secret that the tracker chose for its webhook. It is durable when this returns.
    pub async fn store_webhook_secret(&self, secret: Secret) -> io::Result<SecretReceipt> {
        let webhook_secret = self.webhook_secret.clone();
        let kept = carrel_exec::blocking(move || webhook_secret.keep(&secret)).await;
        kept.map_err(io::Error::other)?.map_err(io::Error::other)
    }

    /// Opens the transcript of a run and returns it with its current length; `None` if it was deleted. The path
    /// is derived from number and identifier, never read from the record.
    pub async fn transcript(&self, run: &RunRecord) -> io::Result<Option<(File, u64)>> {
        let (files, identifier, run) = (Arc::clone(&self.files), run.identifier.clone(), run.run);
        let opened = move || transcript::open(&files, &identifier, run);
        let opened = carrel_exec::blocking(opened).await.map_err(io::Error::other)?;
        opened.map_err(io::Error::other)
    }
}
