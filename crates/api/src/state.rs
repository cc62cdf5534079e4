//! What all requests share.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::body::Bytes;
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
    Authority, Caller, ConsoleLink, Coverage, InternalToken, RateLimitOptions, RateLimits, Tickets,
    Transport, Verifier as _, jwks::Provider,
};
use crate::idempotency::InFlight;
use crate::limits::{
    MAX_BUFFERED_MEBIBYTES, MAX_CONCURRENT_WORK, MAX_REFUSED_CALLERS, MAX_STREAMS_PER_WORKSPACE,
    MAX_UPLOADS, PERMIT_WAIT, REFUSAL_AUDIT_BURST,
};
use crate::response::ErrorResponse;
use crate::worker_proxy::{Location, WorkerProxy};

/// What the API is made from.
#[derive(Debug)]
pub struct ApiOptions {
    /// The tasks.
    pub tasks: Tasks,
    /// The workspaces of this machine.
    pub spaces: HostedWorkspaces,
    /// What signs and believes tokens.
    pub authority: Authority,
    /// Whoever else signs tokens.
    pub provider: Option<Provider>,
    /// What the link that is printed at the start is worth.
    pub console: Option<ConsoleLink>,
    /// Between whom cookies travel.
    pub transport: Transport,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// How much a workspace may ask for.
    pub rates: RateLimitOptions,
    /// Machines that repositories may come from.
    pub hosts: Arc<[String]>,
    /// Where it is written down what was changed and refused.
    pub events: AuditLog,
    /// Credentials of workspaces; none are kept if there is none.
    pub credentials: Option<Vault>,
    /// Repositories on GitHub.
    pub github: GitHub,
    /// Authenticated comes in.
    pub auth_mode: AuthMode,
    /// The workers of other volumes; none if every workspace is here.
    pub worker_proxy: Option<Arc<WorkerProxy>>,
    /// Places that work shares with tasks; places of its own if none.
    pub slots: Option<Slots>,
    /// Ends what is open.
    pub stop: CancellationToken,
}

/// What a worker's API is made from.
#[derive(Debug)]
pub struct WorkerApiOptions {
    /// The tasks.
    pub tasks: Tasks,
    /// The workspaces of this machine.
    pub spaces: HostedWorkspaces,
    /// What other servers show.
    pub token: InternalToken,
    /// Places that requests share with tasks.
    pub slots: Slots,
    /// Machines that repositories may come from.
    pub hosts: Arc<[String]>,
    /// Where events of requests go.
    pub events: AuditLog,
    /// Repositories on GitHub.
    pub github: GitHub,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Ends what is open.
    pub stop: CancellationToken,
}

impl From<WorkerApiOptions> for ApiOptions {
    fn from(worker: WorkerApiOptions) -> Self {
        Self {
            tasks: worker.tasks,
            spaces: worker.spaces,
            authority: Authority::with_random_secret(),
            provider: None,
            console: None,
            transport: Transport::Network,
            clock: worker.clock,
            rates: RateLimitOptions::default(),
            hosts: worker.hosts,
            events: worker.events,
            credentials: None,
            github: worker.github,
            auth_mode: AuthMode::Internal(worker.token),
            worker_proxy: None,
            slots: Some(worker.slots),
            stop: worker.stop,
        }
    }
}

/// Authenticated comes in.
#[derive(Clone, Debug)]
pub enum AuthMode {
    /// Whoever has a token of the service.
    Public,
    /// Other servers of the same installation. They tell who asks.
    Internal(InternalToken),
}

/// What all requests share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Api {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) tasks: Tasks,
    pub(crate) spaces: HostedWorkspaces,
    pub(crate) authority: Authority,
    pub(crate) provider: Option<Provider>,
    pub(crate) tickets: Tickets,
    pub(crate) console: Option<ConsoleLink>,
    pub(crate) transport: Transport,
    pub(crate) hosts: Arc<[String]>,
    pub(crate) github: GitHub,
    pub(crate) auth_mode: AuthMode,
    pub(crate) worker_proxy: Option<Arc<WorkerProxy>>,
    slots: Option<Slots>,
    pub(crate) stop: CancellationToken,
    credentials: Option<Vault>,
    clock: Arc<dyn Clock>,
    rates: RateLimits<WorkspaceId>,
    work: Arc<Semaphore>,
    uploads: Arc<Semaphore>,
    streams: Arc<Mutex<HashMap<WorkspaceId, usize>>>,
    pub(crate) in_flight: InFlight,
    pub(crate) events: AuditLog,
    pub(crate) requests: RequestCounts,
    /// Refusals that are written down, by caller.
    pub(crate) refusals: RateLimits<String>,
    /// Mebibytes that bodies may take together.
    pub(crate) bodies: Arc<Semaphore>,
    /// The document of the API, once somebody has asked for it.
    pub(crate) document: OnceLock<Bytes>,
}

impl Api {
    /// Puts everything together.
    pub fn new(options: ApiOptions) -> Self {
        let inner = Inner {
            tickets: options.authority.tickets(),
            tasks: options.tasks,
            spaces: options.spaces,
            authority: options.authority,
            provider: options.provider,
            console: options.console,
            transport: options.transport,
            hosts: options.hosts,
            github: options.github,
            auth_mode: options.auth_mode,
            worker_proxy: options.worker_proxy,
            slots: options.slots,
            stop: options.stop,
            credentials: options.credentials,
            clock: options.clock,
            rates: RateLimits::new(options.rates),
            work: Arc::new(Semaphore::new(MAX_CONCURRENT_WORK)),
            uploads: Arc::new(Semaphore::new(MAX_UPLOADS)),
            streams: Arc::default(),
            in_flight: InFlight::default(),
            events: options.events,
            requests: RequestCounts::default(),
            refusals: RateLimits::new(RateLimitOptions {
                per_second: NonZeroU32::MIN,
                burst: REFUSAL_AUDIT_BURST,
                max_buckets: MAX_REFUSED_CALLERS,
            }),
            bodies: Arc::new(Semaphore::new(MAX_BUFFERED_MEBIBYTES)),
            document: OnceLock::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Believes a token, or not.
    pub(crate) async fn verify(&self, token: &str) -> Result<Caller, ErrorResponse> {
        let now = self.now();
        Ok(match &self.inner.provider {
            Some(provider) if provider.is_for(token) => provider.verify(token, now).await?,
            Some(_) | None => self.inner.authority.verify(token, now)?,
        })
    }

    /// Finds the workspace of a request for a caller who may do this there. One that a token names and
    /// that nobody has made is made.
    pub(crate) async fn workspace(
        &self,
        caller: &Caller,
        scope: TokenScope,
        asked: Option<WorkspaceId>,
    ) -> Result<Workspace, ErrorResponse> {
        let id = caller.workspace(asked)?;
        audit::record_workspace(id);
        caller.check(scope, id)?;
        self.check_rate_limit(id)?;
        self.find_or_provision(caller, Some(id)).await
    }

    /// Finds the workspace of a request, whatever the caller may do there. One that a token names and that
    /// nobody has made is made.
    pub(crate) async fn find_or_provision(
        &self,
        caller: &Caller,
        asked: Option<WorkspaceId>,
    ) -> Result<Workspace, ErrorResponse> {
        let id = caller.workspace(asked)?;
        match (self.inner.spaces.find(id).await, &caller.coverage) {
            (Err(ServiceError::NoWorkspace { .. }), Coverage::Only(_)) => {
                Ok(self.inner.spaces.provision(WorkspaceSpec::with_defaults(id)).await?.0)
            }
            (found, _) => Ok(found?),
        }
    }

    /// Counts a request of a workspace, and refuses one too many.
    pub(crate) fn check_rate_limit(&self, workspace: WorkspaceId) -> Result<(), ErrorResponse> {
        match self.inner.auth_mode {
            AuthMode::Public => Ok(self.inner.rates.check(workspace, self.now())?),
            // What comes from other servers was counted there.
            AuthMode::Internal(_) => Ok(()),
        }
    }

    /// Returns how many event streams are open.
    pub(crate) fn streams(&self) -> usize {
        sync::lock(&self.inner.streams).values().sum()
    }

    /// Opens the workspace of a request.
    pub(crate) async fn open_workspace(
        &self,
        caller: &Caller,
        scope: TokenScope,
        id: WorkspaceId,
    ) -> Result<Arc<OpenWorkspace>, ErrorResponse> {
        let workspace = self.workspace(caller, scope, Some(id)).await?;
        self.check_local(&workspace).await?;
        Ok(self.inner.spaces.open_workspace(workspace.id).await?)
    }

    /// Returns where credentials are kept.
    pub(crate) fn vault(&self) -> Result<&Vault, ErrorResponse> {
        Ok(self.inner.credentials.as_ref().ok_or(ServiceError::NoCredentialKey)?)
    }

    /// Refuses a workspace whose directory lies elsewhere: nothing may make another one here.
    async fn check_local(&self, workspace: &Workspace) -> Result<(), ErrorResponse> {
        if let Some(worker_proxy) = &self.inner.worker_proxy {
            return match worker_proxy.locate(workspace).await? {
                Location::Local => Ok(()),
                Location::Remote(_) => {
                    let message = format!(
                        "workspace {} lies on another volume, which requests over /mcp reach with a token \
                         for this workspace alone",
                        workspace.id
                    );
                    Err(ErrorResponse::new(Code::WorkerUnreachable, message, json!({})))
                }
            };
        }
        let AuthMode::Internal(_) = self.inner.auth_mode else { return Ok(()) };
        let own = self.inner.spaces.volume();
        let placed = match workspace.volume {
            None => self.inner.tasks.store().assign_volume(workspace.id, &[own]).await?,
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

    /// Takes a place for work, or says that there is none.
    pub(crate) async fn work_permit(&self) -> Result<OwnedSemaphorePermit, ErrorResponse> {
        let full = "too much runs at once";
        match &self.inner.slots {
            None => acquire_permit(&self.inner.work, MAX_CONCURRENT_WORK, full).await,
            Some(slots) => {
                let detail = json!({ "limit": slots.total() });
                let found = slots.for_request(PERMIT_WAIT).await;
                found.ok_or_else(|| ErrorResponse::new(Code::Overloaded, full, detail))
            }
        }
    }

    /// Takes a place for looking something up, or says that there is none.
    pub(crate) async fn read_permit(&self) -> Result<OwnedSemaphorePermit, ErrorResponse> {
        acquire_permit(&self.inner.work, MAX_CONCURRENT_WORK, "too much is looked up at once").await
    }

    /// Takes a place for a file that arrives in parts. Its sender decides how long that takes, so that
    /// it takes no place of work.
    pub(crate) async fn upload_permit(&self) -> Result<OwnedSemaphorePermit, ErrorResponse> {
        acquire_permit(&self.inner.uploads, MAX_UPLOADS, "too many files arrive at once").await
    }

    /// Takes a place for an event stream of a workspace.
    pub(crate) fn stream(&self, workspace: WorkspaceId) -> Result<StreamPermit, ErrorResponse> {
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

    /// Returns how long a caller's credentials still hold.
    pub(crate) fn credential_lifetime(&self, caller: &Caller) -> Duration {
        self.now().age(caller.expires_at)
    }
}

/// Waits a moment for a place.
async fn acquire_permit(
    places: &Arc<Semaphore>,
    limit: usize,
    full: &str,
) -> Result<OwnedSemaphorePermit, ErrorResponse> {
    let waiting = Arc::clone(places).acquire_owned();
    let found = tokio::time::timeout(PERMIT_WAIT, waiting).await;
    let found = found.ok().and_then(Result::ok);
    found.ok_or_else(|| ErrorResponse::new(Code::Overloaded, full, json!({ "limit": limit })))
}

/// A place for an event stream.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    streams: Arc<Mutex<HashMap<WorkspaceId, usize>>>,
    workspace: WorkspaceId,
}

#[cfg(test)]
impl StreamPermit {
    /// One that nobody counts.
    pub(crate) fn alone() -> Self {
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
