//! What a server and a worker alone have in common: everything but the API for clients.

use std::sync::Arc;
use std::time::Duration;

use carrel_github::GitHub;
use carrel_service::credentials::{CredentialError, Vault};
use carrel_service::{Sweep, Worker};
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::backend::Backend;
use super::door::{Door, Inside};
use super::machine::Machine;
use crate::failure::Failure;
use crate::output;

/// What a server and a worker alone have in common.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) backend: Backend,
    pub(crate) machine: Machine,
    /// Runs tasks, if this process does.
    pub(crate) worker: Option<Worker>,
    /// Where other servers come in, if they do.
    pub(crate) door: Option<Door>,
    pub(crate) hosts: Arc<[String]>,
    pub(crate) github: GitHub,
    pub(crate) credentials: Option<Vault>,
    pub(crate) forget_credentials: bool,
    /// How long finished tasks are kept.
    pub(crate) keep: Duration,
    pub(crate) stop: CancellationToken,
}

impl Process {
    /// Runs until it is told to stop, together with what serves clients. The store may be away at first.
    pub(crate) async fn run(mut self, serving: impl Future<Output = ()>) {
        // What the bus needs goes on until tasks have been given back.
        let over = CancellationToken::new();
        let (bus, door) = (self.backend.take_bus(), self.door.take());
        let feed = self.backend.tasks.hub().clone();
        let telling = async {
            if let Some(bus) = bus {
                bus.run(feed, over.clone()).await;
            }
        };
        let working = async {
            self.work().await;
            over.cancel();
        };
        tokio::join!(serving, telling, self.answer(door), working);
        self.machine.spaces.close().await;
    }

    /// Answers other servers.
    async fn answer(&self, door: Option<Door>) {
        if let (Some(door), Some(worker)) = (door, &self.worker) {
            let sandbox = self.machine.diagnosis().await;
            let inside = Inside {
                tasks: &self.backend.tasks,
                spaces: &self.machine.spaces,
                hosts: &self.hosts,
                events: &self.machine.events,
                github: &self.github,
            };
            door.serve(worker, inside, sandbox, &self.stop).await;
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

/// Sees that credentials were sealed with the key that is there, or forgets them first.
pub(crate) async fn check_vault(vault: &Vault, forget: bool) -> Result<(), Failure> {
    if forget {
        let forgotten = vault.delete_all().await?;
        output::note(&format!("forgot {forgotten} credentials"));
    }
    match vault.check_key().await {
        Err(CredentialError::OtherKey { .. }) => Err(Failure::CredentialKey),
        checked => Ok(checked?),
    }
}
