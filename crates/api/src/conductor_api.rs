//! The HTTP API of a conductor (`carrel run --port`): shared state, authentication and webhooks.
//!
//! A conductor works in many workspaces, so that only a token for all of them is accepted. Operator commands
//! go through the conductor's handle, which answers when the command is in its journal.
//!
//! `POST /api/v1/refresh` also accepts calls of the tracker, authenticated by the signature that the tracker
//! puts on its webhooks. Asana differs: it chooses the secret itself and announces it in a handshake. The
//! first one is kept, before it is acknowledged, and a second one is refused.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use carrel_conductor::drive::{CommandError, Handle, SecretReceipt};
use carrel_conductor::{CommandRejection, OperatorCommand, State};
use carrel_config::TrackerKind;
use carrel_domain::{Clock, Code, Secret, Timestamp, TokenScope};
use carrel_tracker::{Webhook, verify_webhook};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::auth::{Authority, Caller, Coverage};
use crate::extract::{Authenticated, check_presented, presented};
use crate::host_check::HostRules;
use crate::response::{ErrorResponse, Result};
use crate::routes::conductor_router;
use crate::serve::serve_router;

const COMMAND_TIMEOUT: Duration = Duration::from_secs(15);

/// Event streams and transcripts that are read at the same time.
const MAX_STREAMS: usize = 256;

/// Options of the API of a conductor.
#[derive(Debug)]
pub struct ConductorOptions {
    /// The handle of the conductor.
    pub handle: Handle,
    /// The authority that verifies tokens.
    pub authority: Authority,
    /// The secret that the tracker signs webhooks with (`CARREL_WEBHOOK_SECRET`).
    pub webhook: Option<Secret>,
    /// The hosts under which browsers reach the server.
    pub host_rules: HostRules,
    /// The clock that token lifetimes are measured with.
    pub clock: Arc<dyn Clock>,
    /// Closes streams and connections when it is cancelled.
    pub stop: CancellationToken,
}

/// The shared state of all requests. Clones refer to the same state.
#[derive(Clone, Debug)]
pub struct ConductorApi {
    pub(crate) options: Arc<ConductorOptions>,
    streams: Arc<Semaphore>,
}

impl ConductorApi {
    /// Creates the shared state.
    pub fn new(options: ConductorOptions) -> Self {
        Self { options: Arc::new(options), streams: Arc::new(Semaphore::new(MAX_STREAMS)) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    /// Returns the conductor's state. Fails when the conductor has ended: the state would be stale.
    pub(crate) fn state(&self) -> Result<Arc<State>> {
        let handle = &self.options.handle;
        if handle.is_over() { Err(unavailable("it has ended")) } else { Ok(handle.state()) }
    }

    /// Sends a command, and returns when it is in the journal.
    pub(crate) async fn send(&self, command: OperatorCommand) -> Result<()> {
        let recorded =
            tokio::time::timeout(COMMAND_TIMEOUT, self.options.handle.send(command)).await;
        match recorded {
            Ok(Ok(())) => Ok(()),
            Ok(Err(CommandError::ConductorStopped)) => Err(unavailable("it has ended")),
            Ok(Err(CommandError::Rejected(refused))) => Err(refusal(&refused)),
            Err(_) => Err(unavailable("it does not answer in time; its journal may be stuck")),
        }
    }

    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit> {
        Arc::clone(&self.streams).try_acquire_owned().map_err(|_| {
            let detail = json!({ "limit": MAX_STREAMS });
            ErrorResponse::new(Code::Overloaded, "too many event streams are open", detail)
        })
    }

    pub(crate) async fn verify_webhook(
        &self,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<WebhookCall> {
        let workflow = self.options.handle.workflow();
        let Some(conductor) = &workflow.config.conductor else {
            return Err(unavailable("it has no tracker"));
        };
        let kind = conductor.tracker.kind;
        // Asana chooses the secret itself.
        let chosen = match kind {
            TrackerKind::Asana => self.options.handle.webhook_secret().await,
            _ => None,
        };
        let secret = chosen.as_ref().or(self.options.webhook.as_ref());
        match verify_webhook(kind, secret, headers, body, self.now()) {
            Ok(Webhook::Wake) => Ok(WebhookCall::Wake),
            Ok(Webhook::Handshake(secret)) => self.keep_webhook_secret(secret).await,
            Err(error) => {
                let message = format!("neither a token nor a signature of the tracker: {error}");
                Err(ErrorResponse::plain(Code::Unauthenticated, message))
            }
        }
    }

    /// Stores the secret that the tracker chose. It must be on disk before the acknowledgement: the tracker
    /// never repeats it.
    async fn keep_webhook_secret(&self, secret: Secret) -> Result<WebhookCall> {
        match self.options.handle.store_webhook_secret(secret.clone()).await {
            Ok(SecretReceipt::Accepted) => {
                info!("The tracker has made a webhook");
                Ok(WebhookCall::Handshake(secret))
            }
            Ok(SecretReceipt::Rejected) => {
                warn!("A webhook is refused: there is another one, or its secret makes no sense");
                let message = "the secret of another webhook is kept; to take this one, remove the \
                               file webhook-secret from the directory of the conductor";
                Err(ErrorResponse::plain(Code::Forbidden, message))
            }
            Err(error) => {
                warn!(%error, "The secret of a webhook cannot be kept");
                let message = "the secret of the webhook cannot be kept";
                Err(ErrorResponse::plain(Code::Internal, message))
            }
        }
    }
}

pub(crate) enum WebhookCall {
    /// An issue may have changed: poll now.
    Wake,
    /// The tracker announces its secret, which the response must repeat.
    Handshake(Secret),
}

/// Returns the error for a conductor that cannot be reached.
pub(crate) fn unavailable(why: &str) -> ErrorResponse {
    let message = format!("the conductor is not available: {why}");
    ErrorResponse::plain(Code::ConductorUnavailable, message)
}

fn refusal(refused: &CommandRejection) -> ErrorResponse {
    let code = match refused {
        CommandRejection::UnknownIssue(_) => Code::IssueNotFound,
        CommandRejection::Conflict { .. } => Code::IssueConflict,
    };
    ErrorResponse::plain(code, refused.to_string())
}

/// Verifies the token of a request to the conductor. Providers' tokens are not accepted here.
impl FromRequestParts<ConductorApi> for Authenticated {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, api: &ConductorApi) -> Result<Self> {
        let presented = presented(&parts.headers)?;
        let caller = api.options.authority.verify(presented.token(), api.now())?;
        check_presented(presented, parts, &api.options.host_rules)?;
        Ok(Self(caller))
    }
}

/// Checks that a caller covers all workspaces and has the scope.
pub(crate) fn check(caller: &Caller, scope: TokenScope) -> Result<()> {
    if caller.coverage != Coverage::All {
        let message = "the token is for single workspaces; make one with `carrel token new --all`";
        return Err(ErrorResponse::plain(Code::Forbidden, message));
    }
    Ok(caller.check_scope(scope)?)
}

/// Serves the API until `stop` is cancelled, then lets open requests end for a moment.
pub async fn serve_conductor(listener: TcpListener, api: ConductorApi) {
    let stop = api.options.stop.clone();
    serve_router(listener, conductor_router(api), &stop, None).await;
}
