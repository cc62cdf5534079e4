//! Workers of other volumes: which worker serves a workspace, and how to reach it.
//!
//! A workspace is placed on one volume, and several workers may serve it. A server without that volume
//! forwards the request to one of them. The list of live workers comes from the store and is cached for a
//! second; a worker that could not be reached is tried last for five seconds. Placement happens here as well:
//! the first request for a workspace without a volume assigns it to the volume with the fewest workspaces, in
//! one operation of the store, so that two servers agree.

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

use crate::response::{ErrorResponse, Result};

/// Age up to which the list of workers is used. It saves a query for each request.
const WORKERS_CACHED_FOR: Duration = Duration::from_secs(1);

/// Time for which a worker that could not be reached is tried last.
const UNREACHABLE_FOR: Duration = Duration::from_secs(5);

/// Options of the proxy.
#[derive(Clone, Debug)]
pub struct WorkerProxyOptions {
    /// The volume of this process, if it has one.
    pub local_volume: Option<VolumeId>,
    /// The internal token that workers expect.
    pub token: Option<Secret>,
    /// The server to use while no worker has published its address.
    pub fallback: Option<ServerUrl>,
    /// The store with the list of workers.
    pub store: Arc<dyn Store>,
    /// The clock that the list's timestamps are compared with.
    pub clock: Arc<dyn Clock>,
}

/// The directory of workers, and the connections to them.
#[derive(Debug)]
pub struct WorkerProxy {
    options: WorkerProxyOptions,
    connections: HttpClient,
    workers: tokio::sync::Mutex<Option<(Instant, Arc<[WorkerRecord]>)>>,
    unreachable_since: Mutex<HashMap<String, Instant>>,
    next: AtomicUsize,
}

#[derive(Clone, Debug)]
pub(crate) enum Location {
    /// On the volume of this process.
    Local,
    /// On the volume of other workers.
    Remote(RemoteVolume),
}

#[derive(Clone, Debug)]
pub(crate) struct RemoteVolume {
    volume: VolumeId,
    pub(crate) servers: Vec<ServerUrl>,
}

impl WorkerProxy {
    /// Creates a proxy. The list of workers is read at the first request.
    pub fn new(options: WorkerProxyOptions) -> Self {
        Self {
            options,
            connections: HttpClient::new(),
            workers: tokio::sync::Mutex::default(),
            unreachable_since: Mutex::default(),
            next: AtomicUsize::new(0),
        }
    }

    pub(crate) fn connections(&self) -> &HttpClient {
        &self.connections
    }

    pub(crate) fn token(&self) -> Option<&Secret> {
        self.options.token.as_ref()
    }

    /// Returns the location of a workspace. One without a volume is placed first.
    pub(crate) async fn locate(&self, workspace: &Workspace) -> Result<Location> {
        let volume = match workspace.volume {
            Some(volume) => volume,
            None => self.place(workspace).await?,
        };
        if self.options.local_volume == Some(volume) {
            return Ok(Location::Local);
        }
        let mut servers = self.servers(volume).await?;
        if servers.is_empty() {
            // A worker may have started since the list was read.
            servers = self.refreshed_servers(volume).await?;
        }
        if servers.is_empty() {
            let message = format!(
                "no worker answers for volume {volume}, where workspace {} is",
                workspace.id
            );
            return Err(unreachable(message, Some(volume)));
        }
        Ok(Location::Remote(RemoteVolume { volume, servers }))
    }

    async fn place(&self, workspace: &Workspace) -> Result<VolumeId> {
        let mut volumes = self.volumes().await?;
        if volumes.is_empty() {
            *self.workers.lock().await = None;
            volumes = self.volumes().await?;
        }
        if volumes.is_empty() {
            let message = format!("no worker is available for workspace {}", workspace.id);
            return Err(unreachable(message, None));
        }
        let placed = self.options.store.assign_volume(workspace.id, &volumes).await?;
        placed.ok_or_else(|| ServiceError::NoWorkspace { id: workspace.id }.into())
    }

    async fn volumes(&self) -> Result<Vec<VolumeId>> {
        let workers = self.alive().await?;
        let volumes = workers.iter().map(|worker| worker.volume).chain(self.options.local_volume);
        Ok(volumes.collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// Returns workers of a volume that have started since its known ones could not be reached.
    pub(crate) async fn started_since(&self, remote: &RemoteVolume) -> Vec<ServerUrl> {
        let refreshed = self.refreshed_servers(remote.volume).await.unwrap_or_default();
        refreshed.into_iter().filter(|server| !remote.servers.contains(server)).collect()
    }

    async fn refreshed_servers(&self, volume: VolumeId) -> Result<Vec<ServerUrl>> {
        *self.workers.lock().await = None;
        self.servers(volume).await
    }

    /// Returns the workers of a volume in round-robin order, unreachable ones last.
    async fn servers(&self, volume: VolumeId) -> Result<Vec<ServerUrl>> {
        let workers = self.alive().await?;
        let there = workers.iter().filter(|worker| worker.volume == volume);
        let mut addresses: Vec<_> = there.filter_map(|worker| worker.address.as_deref()).collect();
        if !addresses.is_empty() {
            let next = self.next.fetch_add(1, Ordering::Relaxed) % addresses.len();
            addresses.rotate_left(next);
            addresses.sort_by_key(|address| self.is_unreachable(address));
        }
        let servers: Vec<_> = addresses.into_iter().filter_map(|text| text.parse().ok()).collect();
        if servers.is_empty() {
            return Ok(self.options.fallback.iter().cloned().collect());
        }
        Ok(servers)
    }

    async fn alive(&self) -> Result<Arc<[WorkerRecord]>> {
        let mut cached = self.workers.lock().await;
        if let Some((at, workers)) = &*cached
            && at.elapsed() < WORKERS_CACHED_FOR
        {
            return Ok(Arc::clone(workers));
        }
        let now = self.options.clock.now().as_millis();
        let since = now.saturating_sub(i64::try_from(WORKER_TTL.as_millis()).unwrap_or(i64::MAX));
        let workers = self.options.store.workers(Timestamp::from_millis(since)).await?;
        let workers: Arc<[_]> = workers.into();
        *cached = Some((Instant::now(), Arc::clone(&workers)));
        Ok(workers)
    }

    pub(crate) fn mark_unreachable(&self, server: &ServerUrl) {
        let mut unreachable_since = sync::lock(&self.unreachable_since);
        unreachable_since.retain(|_, since| since.elapsed() < UNREACHABLE_FOR);
        unreachable_since.insert(server.to_string(), Instant::now());
    }

    fn is_unreachable(&self, address: &str) -> bool {
        let unreachable_since = sync::lock(&self.unreachable_since);
        unreachable_since.get(address).is_some_and(|since| since.elapsed() < UNREACHABLE_FOR)
    }
}

fn unreachable(message: String, volume: Option<VolumeId>) -> ErrorResponse {
    ErrorResponse::new(Code::WorkerUnreachable, message, json!({ "volume_id": volume }))
}
