//! Workers that hold workspaces of other volumes.

pub(crate) mod forward;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use carrel_client::{HttpClient, ServerUrl};
use carrel_domain::{Clock, Code, Secret, Timestamp, VolumeId, sync};
use carrel_service::{ServiceError, WORKER_TTL};
use carrel_store::{Store, WorkerRecord, Workspace};
use serde_json::json;

use crate::response::ErrorResponse;

/// How long what is known of workers is believed.
const KNOWN_FOR: Duration = Duration::from_secs(1);

/// How long a worker that did not answer is asked last.
const DOUBTED_FOR: Duration = Duration::from_secs(5);

/// How other workers are reached.
#[derive(Clone, Debug)]
pub struct WorkerProxyOptions {
    /// The volume of this process, if it works on one.
    pub here: Option<VolumeId>,
    /// The token that opens their doors.
    pub token: Option<Secret>,
    /// Where to ask if no worker has said where it is.
    pub fallback: Option<ServerUrl>,
    /// Where they are known.
    pub store: Arc<dyn Store>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
}

/// Workers that hold workspaces of other volumes.
#[derive(Debug)]
pub struct WorkerProxy {
    options: WorkerProxyOptions,
    connections: HttpClient,
    known: tokio::sync::Mutex<Option<(Instant, Arc<[WorkerRecord]>)>>,
    doubted: Mutex<HashMap<String, Instant>>,
    turn: AtomicUsize,
}

/// Where the directory of a workspace is.
#[derive(Clone, Debug)]
pub(crate) enum Location {
    /// In this process's volume.
    Local,
    /// In another one.
    Remote(RemoteVolume),
}

/// A volume of other workers.
#[derive(Clone, Debug)]
pub(crate) struct RemoteVolume {
    volume: VolumeId,
    /// Where to ask, the best first.
    pub(crate) servers: Vec<ServerUrl>,
}

impl WorkerProxy {
    /// Knows nobody yet.
    pub fn new(options: WorkerProxyOptions) -> Self {
        Self {
            options,
            connections: HttpClient::new(),
            known: tokio::sync::Mutex::default(),
            doubted: Mutex::default(),
            turn: AtomicUsize::new(0),
        }
    }

    pub(crate) fn connections(&self) -> &HttpClient {
        &self.connections
    }

    pub(crate) fn token(&self) -> Option<&Secret> {
        self.options.token.as_ref()
    }

    /// Finds the directory of a workspace. One that lies nowhere is placed on the volume that holds the
    /// fewest.
    pub(crate) async fn locate(&self, workspace: &Workspace) -> Result<Location, ErrorResponse> {
        let volume = match workspace.volume {
            Some(volume) => volume,
            None => self.place(workspace).await?,
        };
        if self.options.here == Some(volume) {
            return Ok(Location::Local);
        }
        let mut servers = self.servers(volume).await?;
        if servers.is_empty() {
            // One may have come since they were last looked at.
            servers = self.servers_now(volume).await?;
        }
        if servers.is_empty() {
            let message = format!(
                "no worker answers for volume {volume}, which workspace {} lies on",
                workspace.id
            );
            return Err(unreachable(message, Some(volume)));
        }
        Ok(Location::Remote(RemoteVolume { volume, servers }))
    }

    async fn place(&self, workspace: &Workspace) -> Result<VolumeId, ErrorResponse> {
        let mut volumes = self.volumes().await?;
        if volumes.is_empty() {
            *self.known.lock().await = None;
            volumes = self.volumes().await?;
        }
        if volumes.is_empty() {
            let message = format!("no worker is there to hold workspace {}", workspace.id);
            return Err(unreachable(message, None));
        }
        let placed = self.options.store.assign_volume(workspace.id, &volumes).await?;
        placed.ok_or_else(|| ServiceError::NoWorkspace { id: workspace.id }.into())
    }

    async fn volumes(&self) -> Result<Vec<VolumeId>, ErrorResponse> {
        let workers = self.alive().await?;
        let volumes = workers.iter().map(|worker| worker.volume).chain(self.options.here);
        Ok(volumes.collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// Returns the servers of a volume that have come since these could not be reached.
    pub(crate) async fn newer(&self, far: &RemoteVolume) -> Vec<ServerUrl> {
        let now = self.servers_now(far.volume).await.unwrap_or_default();
        now.into_iter().filter(|server| !far.servers.contains(server)).collect()
    }

    async fn servers_now(&self, volume: VolumeId) -> Result<Vec<ServerUrl>, ErrorResponse> {
        *self.known.lock().await = None;
        self.servers(volume).await
    }

    /// Returns the servers of a volume in the order in which to ask them.
    async fn servers(&self, volume: VolumeId) -> Result<Vec<ServerUrl>, ErrorResponse> {
        let workers = self.alive().await?;
        let there = workers.iter().filter(|worker| worker.volume == volume);
        let mut addresses: Vec<_> = there.filter_map(|worker| worker.address.as_deref()).collect();
        if !addresses.is_empty() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % addresses.len();
            addresses.rotate_left(turn);
            addresses.sort_by_key(|address| self.is_doubted(address));
        }
        let servers: Vec<_> = addresses.into_iter().filter_map(|text| text.parse().ok()).collect();
        if servers.is_empty() {
            return Ok(self.options.fallback.iter().cloned().collect());
        }
        Ok(servers)
    }

    async fn alive(&self) -> Result<Arc<[WorkerRecord]>, ErrorResponse> {
        let mut known = self.known.lock().await;
        if let Some((at, workers)) = &*known
            && at.elapsed() < KNOWN_FOR
        {
            return Ok(Arc::clone(workers));
        }
        let now = self.options.clock.now().as_millis();
        let since = now.saturating_sub(i64::try_from(WORKER_TTL.as_millis()).unwrap_or(i64::MAX));
        let workers = self.options.store.workers(Timestamp::from_millis(since)).await?;
        let workers: Arc<[_]> = workers.into();
        *known = Some((Instant::now(), Arc::clone(&workers)));
        Ok(workers)
    }

    /// Asks this one last for a while.
    pub(crate) fn doubt(&self, server: &ServerUrl) {
        let mut doubted = sync::lock(&self.doubted);
        doubted.retain(|_, since| since.elapsed() < DOUBTED_FOR);
        doubted.insert(server.to_string(), Instant::now());
    }

    fn is_doubted(&self, address: &str) -> bool {
        let doubted = sync::lock(&self.doubted);
        doubted.get(address).is_some_and(|since| since.elapsed() < DOUBTED_FOR)
    }
}

fn unreachable(message: String, volume: Option<VolumeId>) -> ErrorResponse {
    ErrorResponse::new(Code::WorkerUnreachable, message, json!({ "volume_id": volume }))
}
