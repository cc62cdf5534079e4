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
use carrel_http::{ConnectionLimits, HttpServer};
use carrel_tracker::{Webhook, verify_webhook};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::auth::{Authority, Caller, Coverage};
use crate::extract::{Authenticated, check_presented, presented};
use crate::limits::{HEADER_READ_TIMEOUT, MAX_CONNECTIONS, SHUTDOWN_GRACE, WRITE_STALL};
use crate::response::ErrorResponse;
use crate::routes::conductor_router;

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
    /// The clock that token lifetimes are measured with.
    pub clock: Arc<dyn Clock>,
    /// Closes streams and connections when it is cancelled.
    pub stop: CancellationToken,
}

/// The shared state of all requests. Clones refer to the same state.
#[derive(Clone, Debug)]
pub struct ConductorApi {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: ConductorOptions,
    streams: Arc<Semaphore>,
}

impl ConductorApi {
    /// Creates the shared state.
    pub fn new(options: ConductorOptions) -> Self {
        let streams = Arc::new(Semaphore::new(MAX_STREAMS));
        Self { inner: Arc::new(Inner { options, streams }) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.inner.options.clock.now()
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.inner.options.stop
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.inner.options.handle
    }

    /// Returns the conductor's state. Fails when the conductor has ended: the state would be stale.
    pub(crate) fn state(&self) -> Result<Arc<State>, ErrorResponse> {
        if self.handle().is_over() {
            Err(unavailable("it has ended"))
        } else {
            Ok(self.handle().state())
        }
    }

    /// Sends a command, and returns when it is in the journal.
    pub(crate) async fn send(&self, command: OperatorCommand) -> Result<(), ErrorResponse> {
        let recorded = tokio::time::timeout(COMMAND_TIMEOUT, self.handle().send(command)).await;
        match recorded {
            Ok(Ok(())) => Ok(()),
            Ok(Err(CommandError::ConductorStopped)) => Err(unavailable("it has ended")),
            Ok(Err(CommandError::Rejected(refused))) => Err(refusal(&refused)),
            Err(_) => Err(unavailable("it does not answer in time; its journal may be stuck")),
        }
    }

    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, ErrorResponse> {
        Arc::clone(&self.inner.streams).try_acquire_owned().map_err(|_| {
            let detail = json!({ "limit": MAX_STREAMS });
            ErrorResponse::new(Code::Overloaded, "too many event streams are open", detail)
        })
    }

    pub(crate) async fn verify_webhook(
        &self,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<WebhookCall, ErrorResponse> {
        let workflow = self.handle().workflow();
        let Some(conductor) = &workflow.config.conductor else {
            return Err(unavailable("it has no tracker"));
        };
        let kind = conductor.tracker.kind;
        // Asana chooses the secret itself.
        let chosen = match kind {
            TrackerKind::Asana => self.handle().webhook_secret().await,
            _ => None,
        };
        let secret = chosen.as_ref().or(self.inner.options.webhook.as_ref());
        match verify_webhook(kind, secret, headers, body, self.now()) {
            Ok(Webhook::Wake) => Ok(WebhookCall::Wake),
            Ok(Webhook::Handshake(secret)) => self.keep_webhook_secret(secret).await,
            Err(error) => {
                let message = format!("neither a token nor a signature of the tracker: {error}");
                Err(ErrorResponse::new(Code::Unauthenticated, message, json!({})))
            }
        }
    }

    /// Stores the secret that the tracker chose. It must be on disk before the acknowledgement: the tracker
    /// never repeats it.
    async fn keep_webhook_secret(&self, secret: Secret) -> Result<WebhookCall, ErrorResponse> {
        match self.handle().store_webhook_secret(secret.clone()).await {
            Ok(SecretReceipt::Accepted) => {
                info!("The tracker has made a webhook");
                Ok(WebhookCall::Handshake(secret))
            }
            Ok(SecretReceipt::Rejected) => {
                warn!("A webhook is refused: there is another one, or its secret makes no sense");
                let message = "the secret of another webhook is kept; to take this one, remove the \
                               file webhook-secret from the directory of the conductor";
                Err(ErrorResponse::new(Code::Forbidden, message, json!({})))
            }
            Err(error) => {
                warn!(%error, "The secret of a webhook cannot be kept");
                let message = "the secret of the webhook cannot be kept";
                Err(ErrorResponse::new(Code::Internal, message, json!({})))
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
    ErrorResponse::new(Code::ConductorUnavailable, message, json!({}))
}

fn refusal(refused: &CommandRejection) -> ErrorResponse {
    let code = match refused {
        CommandRejection::UnknownIssue(_) => Code::IssueNotFound,
        CommandRejection::Conflict { .. } => Code::IssueConflict,
    };
    ErrorResponse::new(code, refused.to_string(), json!({}))
}

/// Verifies the token of a request to the conductor. Providers' tokens are not accepted here.
impl FromRequestParts<ConductorApi> for Authenticated {
    type Rejection = ErrorResponse;

    async fn from_request_parts(
        parts: &mut Parts,
        api: &ConductorApi,
    ) -> Result<Self, ErrorResponse> {
        let presented = presented(&parts.headers)?;
        let caller = api.inner.options.authority.verify(presented.token(), api.now())?;
        check_presented(presented, parts)?;
        Ok(Self(caller))
    }
}

/// Checks that a caller covers all workspaces and has the scope.
pub(crate) fn check(caller: &Caller, scope: TokenScope) -> Result<(), ErrorResponse> {
    if caller.coverage != Coverage::All {
        let message = "the token is for single workspaces; make one with `carrel token new --all`";
        return Err(ErrorResponse::new(Code::Forbidden, message, json!({})));
    }
    Ok(caller.check_scope(scope)?)
}

/// Serves the API until `stop` is cancelled, then lets open requests end for a moment.
pub async fn serve_conductor(listener: TcpListener, api: ConductorApi) {
    let options = ConnectionLimits {
        header_read_timeout: HEADER_READ_TIMEOUT,
        write_stall: WRITE_STALL,
        max_connections: MAX_CONNECTIONS,
    };
    let stop = api.stop().clone();
    let connections = HttpServer::new(options, conductor_router(api));
    tokio::select! {
        () = connections.accept(&listener) => {}
        () = stop.cancelled() => {}
    }
    drop(listener);
    if !connections.close(Instant::now() + SHUTDOWN_GRACE).await {
        warn!("stopped before every request had ended");
    }
}
