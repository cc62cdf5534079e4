//! The life of a `serve` or `worker` process: wait for the store, run tasks, answer other servers, stop.
//!
//! At the end tasks are given back first, while the bus still runs, so that another worker hears of them at
//! once; then the workspaces are closed, which ends their commands.

use std::sync::Arc;
use std::time::Duration;

use carrel_github::GitHub;
use carrel_service::credentials::{CredentialError, Vault};
use carrel_service::{Sweep, Worker};
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::backend::Backend;
use super::volume::LocalVolume;
use super::worker_api::{WorkerContext, WorkerListener};
use crate::error::CliError;
use crate::output;

/// The parts of a process that runs tasks.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    pub(crate) backend: Backend,
    pub(crate) volume: LocalVolume,
    /// None with `--no-worker`.
    pub(crate) worker: Option<Worker>,
    pub(crate) worker_api: Option<WorkerListener>,
    pub(crate) hosts: Arc<[String]>,
    pub(crate) github: GitHub,
    pub(crate) credentials: Option<Vault>,
    pub(crate) forget_credentials: bool,
    pub(crate) keep: Duration,
    pub(crate) stop: CancellationToken,
}

impl ServerProcess {
    /// Runs until `stop` is cancelled, together with the future that serves clients. The store may be
    /// unreachable at first.
    pub(crate) async fn run(mut self, serving: impl Future<Output = ()>) {
        // The bus runs until tasks have been given back.
        let over = CancellationToken::new();
        let bus = self.backend.take_bus();
        let worker_api = self.worker_api.take();
        let feed = self.backend.tasks.hub().clone();
        let running_bus = async {
            if let Some(bus) = bus {
                bus.run(feed, over.clone()).await;
            }
        };
        let working = async {
            self.work().await;
            over.cancel();
        };
        tokio::join!(serving, running_bus, self.serve_worker_api(worker_api), working);
        self.volume.spaces.close().await;
    }

    async fn serve_worker_api(&self, listener: Option<WorkerListener>) {
        if let (Some(listener), Some(worker)) = (listener, &self.worker) {
            let sandbox = self.volume.diagnosis().await;
            let context = WorkerContext {
                tasks: &self.backend.tasks,
                spaces: &self.volume.spaces,
                hosts: &self.hosts,
                events: &self.volume.events,
                github: &self.github,
            };
            listener.serve(worker, context, sandbox, &self.stop).await;
        }
    }

    async fn work(&self) {
        if !self.backend.ready(&self.stop).await {
            return;
        }
        if let (Some(vault), true) = (&self.credentials, self.backend.is_shared())
            && let Err(error) = check_vault(vault, self.forget_credentials).await
        {
            let error = carrel_domain::message_of(&error);
            error!(%error, "stored credentials cannot be used here");
        }
        let sweep = Sweep::new(self.backend.tasks.clone(), self.keep);
        let working = async {
            if let Some(worker) = &self.worker {
                worker.run(self.stop.clone()).await;
            }
        };
        tokio::join!(working, sweep.run(self.stop.clone()));
    }
}

/// Checks that the stored credentials were sealed with the present key; `forget` deletes them first.
pub(crate) async fn check_vault(vault: &Vault, forget: bool) -> Result<(), CliError> {
    if forget {
        let forgotten = vault.delete_all().await?;
        output::note(&format!("forgot {forgotten} credentials"));
    }
    match vault.check_key().await {
        Err(CredentialError::OtherKey { .. }) => Err(CliError::CredentialKey),
        checked => Ok(checked?),
    }
}
