//! The shared state of the API: services, permits and limits.
//!
//! Concurrency is bounded by permits, and a request that gets none within [`PERMIT_WAIT`] is answered with
//! 429 instead of queueing without bound. There are separate permits for work (commands and writes; shared
//! with tasks on a worker), reads, uploads and downloads, whose duration the client controls, and event streams,
//! counted for each workspace.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, OnceLock};

use axum::body::Bytes;
use axum::http::request::Parts;
use carrel_domain::{Clock, Code, Timestamp, TokenScope, WorkspaceId, sync};
use carrel_github::GitHub;
use carrel_service::credentials::Vault;
use carrel_service::{HostedWorkspaces, OpenWorkspace, ServiceError, Slots, Tasks, WorkspaceSpec};
use carrel_store::Workspace;
use carrel_tools::AuditLog;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::audit::{self, RequestCounts};
use crate::auth::{
    Authority, Caller, ConsoleLink, InternalToken, RateLimitOptions, RateLimits, Tickets,
    Transport, jwks::Provider,
};
use crate::host_check::HostRules;
use crate::idempotency::InFlight;
use crate::limits::{
    MAX_BUFFERED_MEBIBYTES, MAX_CONCURRENT_WORK, MAX_DOWNLOADS, MAX_REFUSED_CALLERS,
    MAX_STREAMS_PER_WORKSPACE, MAX_UPLOADS, PERMIT_WAIT, REFUSAL_AUDIT_BURST,
};
use crate::response::{ErrorResponse, Result};
use crate::worker_proxy::{Location, WorkerProxy};

/// Options of the public API, and of a worker's.
#[derive(Debug)]
pub struct ApiOptions {
    /// The task service.
    pub tasks: Tasks,
    /// The workspaces of this process's volume.
    pub spaces: HostedWorkspaces,
    /// The authority that signs and verifies tokens.
    pub authority: Authority,
    /// The identity provider, if one is configured.
    pub provider: Option<Provider>,
    /// The one-time link to the console page.
    pub console: Option<ConsoleLink>,
    /// The kind of connection that session cookies travel over.
    pub transport: Transport,
    /// The hosts under which browsers reach the server.
    pub host_rules: HostRules,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The rate limit of each workspace.
    pub rates: RateLimitOptions,
    /// Hosts that repositories may be cloned from.
    pub hosts: Arc<[String]>,
    /// The audit log.
    pub events: AuditLog,
    /// The credential vault; without one, no credentials can be stored.
    pub credentials: Option<Vault>,
    /// The token sources for GitHub.
    pub github: GitHub,
    /// The kind of credentials that requests carry.
    pub auth_mode: AuthMode,
    /// The proxy to workers of other volumes; `None` if all workspaces are local.
    pub worker_proxy: Option<Arc<WorkerProxy>>,
    /// Slots that requests share with tasks; `None` for permits of their own.
    pub slots: Option<Slots>,
    /// Closes streams and connections when it is cancelled.
    pub stop: CancellationToken,
}

/// The kind of credentials that requests carry.
#[derive(Clone, Debug)]
pub enum AuthMode {
    /// Tokens of the service or of the identity provider.
    Public,
    /// The internal token of the installation. The server that forwards a request has verified its caller.
    Internal(InternalToken),
}

/// The shared state of all requests. Clones refer to the same state.
#[derive(Clone, Debug)]
pub struct Api {
    pub(crate) options: Arc<ApiOptions>,
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) tickets: Tickets,
    rates: RateLimits<WorkspaceId>,
    work: Arc<Semaphore>,
    uploads: Arc<Semaphore>,
    downloads: Arc<Semaphore>,
    streams: Arc<Mutex<HashMap<WorkspaceId, usize>>>,
    pub(crate) in_flight: InFlight,
    pub(crate) requests: RequestCounts,
    pub(crate) refusals: RateLimits<String>,
    pub(crate) bodies: Arc<Semaphore>,
    /// The `OpenAPI` document, generated at the first request for it.
    pub(crate) document: OnceLock<Bytes>,
}

impl Api {
    /// Creates the shared state.
    pub fn new(options: ApiOptions) -> Self {
        let inner = Inner {
            tickets: options.authority.tickets(),
            rates: RateLimits::new(options.rates),
            work: Arc::new(Semaphore::new(MAX_CONCURRENT_WORK)),
            uploads: Arc::new(Semaphore::new(MAX_UPLOADS)),
            downloads: Arc::new(Semaphore::new(MAX_DOWNLOADS)),
            streams: Arc::default(),
            in_flight: InFlight::default(),
            requests: RequestCounts::default(),
            refusals: RateLimits::new(RateLimitOptions {
                per_second: NonZeroU32::MIN,
                burst: REFUSAL_AUDIT_BURST,
                max_buckets: MAX_REFUSED_CALLERS,
            }),
            bodies: Arc::new(Semaphore::new(MAX_BUFFERED_MEBIBYTES)),
            document: OnceLock::new(),
        };
        Self { options: Arc::new(options), inner: Arc::new(inner) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    /// Returns the kind of connection that the cookies of a request travel over. Behind a proxy that ends TLS
    /// it is a network.
    pub(crate) fn transport(&self, parts: &Parts) -> Transport {
        let forwarded = self.options.host_rules.forwarded(&parts.extensions, &parts.headers);
        if forwarded.is_encrypted { Transport::Network } else { self.options.transport }
    }

    /// Verifies a token with the provider or the authority, as its header demands.
    pub(crate) async fn verify(&self, token: &str) -> Result<Caller> {
        let now = self.now();
        Ok(match &self.options.provider {
            Some(provider) if provider.is_for(token) => provider.verify(token, now).await?,
            Some(_) | None => self.options.authority.verify(token, now)?,
        })
    }

    /// Returns the workspace of a request after checking scope, coverage and rate limit.
    ///
    /// A workspace that the token names and that does not exist is created: the issuer of the token has
    /// decided that it shall exist.
    pub(crate) async fn workspace(
        &self,
        caller: &Caller,
        scope: TokenScope,
        requested: Option<WorkspaceId>,
    ) -> Result<Workspace> {
        let id = caller.workspace(requested)?;
        audit::record_workspace(id);
        caller.check(scope, id)?;
        self.check_rate_limit(id)?;
        self.find_or_provision(caller, Some(id)).await
    }

    /// Returns the workspace of a request without checking scopes. One that the token names and that does not
    /// exist is created.
    pub(crate) async fn find_or_provision(
        &self,
        caller: &Caller,
        requested: Option<WorkspaceId>,
    ) -> Result<Workspace> {
        let id = caller.workspace(requested)?;
        match (self.options.spaces.find(id).await, caller.coverage.names(id)) {
            (Err(ServiceError::NoWorkspace { .. }), true) => {
                Ok(self.options.spaces.provision(WorkspaceSpec::with_defaults(id)).await?.0)
            }
            (found, _) => Ok(found?),
        }
    }

    /// Counts a request against the rate limit of its workspace.
    pub(crate) fn check_rate_limit(&self, workspace: WorkspaceId) -> Result<()> {
        match self.options.auth_mode {
            AuthMode::Public => Ok(self.inner.rates.check(workspace, self.now())?),
            // The server that forwarded the request has counted it.
            AuthMode::Internal(_) => Ok(()),
        }
    }

    pub(crate) fn streams(&self) -> usize {
        sync::lock(&self.inner.streams).values().sum()
    }

    /// Checks a request and opens its workspace, which must be on the local volume.
    pub(crate) async fn open_workspace(
        &self,
        caller: &Caller,
        scope: TokenScope,
        id: WorkspaceId,
    ) -> Result<Arc<OpenWorkspace>> {
        let workspace = self.workspace(caller, scope, Some(id)).await?;
        self.check_local(&workspace).await?;
        Ok(self.options.spaces.open_workspace(workspace.id).await?)
    }

    pub(crate) fn vault(&self) -> Result<&Vault> {
        Ok(self.options.credentials.as_ref().ok_or(ServiceError::NoCredentialKey)?)
    }

    /// Refuses a workspace on another volume: opening it would create a second directory here.
    async fn check_local(&self, workspace: &Workspace) -> Result<()> {
        if let Some(worker_proxy) = &self.options.worker_proxy {
            return match worker_proxy.locate(workspace).await? {
                Location::Local => Ok(()),
                Location::Remote(_) => {
                    let message = format!(
                        "workspace {} lies on another volume, which requests over /mcp reach with a token \
                         for this workspace alone",
                        workspace.id
                    );
                    Err(ErrorResponse::plain(Code::WorkerUnreachable, message))
                }
            };
        }
        let AuthMode::Internal(_) = self.options.auth_mode else { return Ok(()) };
        let own = self.options.spaces.volume();
        let placed = match workspace.volume {
            None => self.options.tasks.store().assign_volume(workspace.id, &[own]).await?,
            placed => placed,
        };
        if placed == Some(own) {
            return Ok(());
        }
        let message =
            format!("workspace {} lies on another volume than this worker's", workspace.id);
        let detail = json!({ "volume_id": placed, "own_volume_id": own });
        Err(ErrorResponse::new(Code::WorkerUnreachable, message, detail))
    }

    pub(crate) async fn work_permit(&self) -> Result<OwnedSemaphorePermit> {
        let full = "too many requests run at once";
        match &self.options.slots {
            None => acquire_permit(&self.inner.work, MAX_CONCURRENT_WORK, full).await,
            Some(slots) => {
                let detail = json!({ "limit": slots.total() });
                let permit = slots.for_request(PERMIT_WAIT).await;
                permit.ok_or_else(|| ErrorResponse::new(Code::Overloaded, full, detail))
            }
        }
    }

    pub(crate) async fn read_permit(&self) -> Result<OwnedSemaphorePermit> {
        acquire_permit(&self.inner.work, MAX_CONCURRENT_WORK, "too many reads run at once").await
    }

    /// Acquires a permit for an upload. The client decides how long an upload takes, so that it must not
    /// occupy a permit for work.
    pub(crate) async fn upload_permit(&self) -> Result<OwnedSemaphorePermit> {
        acquire_permit(&self.inner.uploads, MAX_UPLOADS, "too many files arrive at once").await
    }

    /// Acquires a permit for a download, whose duration the client controls as well.
    pub(crate) async fn download_permit(&self) -> Result<OwnedSemaphorePermit> {
        acquire_permit(&self.inner.downloads, MAX_DOWNLOADS, "too many files are sent at once")
            .await
    }

    /// Acquires a permit for an event stream of a workspace, without waiting.
    pub(crate) fn stream(&self, workspace: WorkspaceId) -> Result<StreamPermit> {
        let mut streams = sync::lock(&self.inner.streams);
        let open = streams.entry(workspace).or_default();
        if *open >= MAX_STREAMS_PER_WORKSPACE {
            let detail = json!({ "limit": MAX_STREAMS_PER_WORKSPACE });
            return Err(ErrorResponse::new(
                Code::Overloaded,
                "too many event streams are open",
                detail,
            ));
        }
        *open += 1;
        Ok(StreamPermit { streams: Arc::clone(&self.inner.streams), workspace })
    }
}

async fn acquire_permit(
    semaphore: &Arc<Semaphore>,
    limit: usize,
    full: &str,
) -> Result<OwnedSemaphorePermit> {
    let waiting = Arc::clone(semaphore).acquire_owned();
    let permit = tokio::time::timeout(PERMIT_WAIT, waiting).await;
    let permit = permit.ok().and_then(Result::ok);
    permit.ok_or_else(|| ErrorResponse::new(Code::Overloaded, full, json!({ "limit": limit })))
}

#[derive(Debug)]
pub(crate) struct StreamPermit {
    streams: Arc<Mutex<HashMap<WorkspaceId, usize>>>,
    workspace: WorkspaceId,
}

#[cfg(test)]
impl StreamPermit {
    pub(crate) fn uncounted() -> Self {
        Self { streams: Arc::default(), workspace: WorkspaceId::generate() }
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut streams = sync::lock(&self.streams);
        if let Some(open) = streams.get_mut(&self.workspace) {
            *open -= 1;
            if *open == 0 {
                streams.remove(&self.workspace);
            }
        }
    }
}
