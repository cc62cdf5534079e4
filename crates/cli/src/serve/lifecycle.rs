//! The life of a `serve` or `worker` process: wait for the store, run tasks, answer other servers, stop.
//!
//! At the end tasks are given back first, while the bus still runs, so that another worker hears of them at
//! once; then the workspaces are closed, which ends their commands.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use carrel_api::auth::ServerSecret;
use carrel_config::Environment;
use carrel_domain::Code;
use carrel_github::{GitHub, GitHubSettings};
use carrel_service::credentials::{CredentialError, SealingKey, Vault};
use carrel_service::{Sweep, Worker, WorkerEndpoint, WorkerOptions};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::backend::Backend;
use super::settings::{KEEP, Settings};
use super::volume::{self, LocalVolume};
use super::worker_api::WorkerListener;
use crate::arguments::SandboxArguments;
use crate::error::{CliError, Result};
use crate::output;
use crate::signals::cancel_on_signal;

/// The interval of heartbeats with a shared store. A heartbeat also returns a cancellation that the bus
/// lost, so it bounds the time until a cancelled task stops.
const HEARTBEAT: Duration = Duration::from_millis(700);

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
    pub(crate) stop: CancellationToken,
    signals: JoinHandle<()>,
}

impl ServerProcess {
    /// Opens the workspaces and the credentials. `data` is the directory for the audit log and the keys.
    pub(crate) fn open(
        sandbox: &SandboxArguments,
        environment: &Environment,
        settings: &Settings,
        data: Option<&Path>,
        backend: Backend,
        stop: CancellationToken,
    ) -> Result<Self> {
        let volume = volume::open(sandbox, environment, settings, data, &backend)?;
        let signals = cancel_on_signal(&stop)?;
        let github = GitHub::new(GitHubSettings::read(environment).map_err(CliError::usage)?);
        let secret = match data {
            Some(data) => Some(ServerSecret::CREDENTIALS.load(environment, data)?),
            None => ServerSecret::CREDENTIALS.from_environment(environment)?,
        };
        let vault =
            |secret| Vault::new(Arc::clone(backend.tasks.store()), SealingKey::new(&secret));
        Ok(Self {
            credentials: secret.map(vault),
            backend,
            volume,
            worker: None,
            worker_api: None,
            hosts: Arc::clone(&settings.hosts),
            github,
            forget_credentials: false,
            stop,
            signals,
        })
    }

    /// Adds the worker, and the listener at which servers reach it.
    pub(crate) fn add_worker(
        &mut self,
        settings: &Settings,
        drain: Duration,
        listener: Option<WorkerListener>,
    ) -> &Worker {
        let (usual, shared) = (WorkerOptions::new(settings.concurrency), self.backend.is_shared());
        let address = listener.as_ref().and_then(|listener| listener.address.clone());
        let options = WorkerOptions {
            hosts: Arc::clone(&settings.hosts),
            drain: settings.drain.unwrap_or(drain),
            lease: settings.lease,
            heartbeat: if shared { HEARTBEAT } else { usual.heartbeat },
            credentials: self.credentials.clone(),
            github: Some(self.github.clone()),
            endpoint: shared.then_some(WorkerEndpoint { address }),
            ..usual
        };
        self.worker_api = listener;
        let (tasks, spaces) = (self.backend.tasks.clone(), self.volume.spaces.clone());
        self.worker.insert(Worker::new(options, tasks, spaces))
    }

    /// Runs until `stop` is cancelled, together with the future that serves clients. The store may be
    /// unreachable at first.
    pub(crate) async fn run(mut self, serving: impl Future<Output = ()>) {
        // The bus runs until tasks have been given back.
        let over = CancellationToken::new();
        let bus = self.backend.redis.take();
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
        self.signals.abort();
    }

    async fn serve_worker_api(&self, listener: Option<WorkerListener>) {
        if let (Some(listener), Some(worker)) = (listener, &self.worker) {
            listener.serve(worker, self).await;
        }
    }

    async fn work(&self) {
        if !self.backend.ready(&self.stop).await {
            return;
        }
        if self.backend.is_shared()
            && let Err(error) = self.check_vault().await
        {
            error!(%error, "stored credentials cannot be used here");
        }
        let sweep = Sweep::new(self.backend.tasks.clone(), KEEP);
        let working = async {
            if let Some(worker) = &self.worker {
                // The volume is this process's own.
                self.volume.spaces.resume_tries().await;
                worker.run(self.stop.clone()).await;
            }
        };
        let spaces = &self.volume.spaces;
        tokio::join!(
            working,
            sweep.run(self.stop.clone()),
            spaces.sweep_snapshots(self.stop.clone()),
            spaces.sweep_forks(self.stop.clone()),
        );
    }

    /// Checks that the stored credentials were sealed with the present key. If they are to be forgotten,
    /// they are deleted first.
    pub(crate) async fn check_vault(&self) -> Result<()> {
        let Some(vault) = &self.credentials else { return Ok(()) };
        if self.forget_credentials {
            let forgotten = vault.delete_all().await?;
            output::note(&format!("forgot {forgotten} credentials"));
        }
        match vault.check_key().await {
            Err(CredentialError::OtherKey { .. }) => Err(CliError::new(
                Code::Usage,
                "the stored credentials were sealed with another key; set CARREL_CREDENTIAL_KEY to that one or put it \
                 back as credentials.key, or give them up with --forget-credentials",
            )),
            checked => Ok(checked?),
        }
    }
}
