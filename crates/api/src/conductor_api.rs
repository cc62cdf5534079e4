//! The API of a conductor: what it does, and orders for it.

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

use crate::auth::{Authority, Caller, Coverage, Verifier as _};
use crate::extract::{Authenticated, check_presented, presented};
use crate::limits::{HEADER_READ_TIMEOUT, MAX_CONNECTIONS, SHUTDOWN_GRACE, WRITE_STALL};
use crate::response::ErrorResponse;
use crate::routes::conductor_router;

/// How long an order may wait for the conductor.
const PATIENCE: Duration = Duration::from_secs(15);

/// Event streams that may be open.
const MAX_STREAMS: usize = 256;

/// What the API of a conductor is made from.
#[derive(Debug)]
pub struct ConductorOptions {
    /// The conductor.
    pub handle: Handle,
    /// What signs and believes tokens.
    pub authority: Authority,
    /// What the tracker signs its calls with, if it calls.
    pub webhook: Option<Secret>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Ends what is open.
    pub stop: CancellationToken,
}

/// What all requests share. Cheap to clone.
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
    /// Puts everything together.
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

    /// Returns the way to the conductor.
    pub(crate) fn handle(&self) -> &Handle {
        &self.inner.options.handle
    }

    /// Returns how things stand, as long as somebody works.
    pub(crate) fn state(&self) -> Result<Arc<State>, ErrorResponse> {
        if self.handle().is_over() {
            Err(unavailable("it has ended"))
        } else {
            Ok(self.handle().state())
        }
    }

    /// Gives an order.
    pub(crate) async fn tell(&self, order: OperatorCommand) -> Result<(), ErrorResponse> {
        let told = tokio::time::timeout(PATIENCE, self.handle().send(order)).await;
        match told {
            Ok(Ok(())) => Ok(()),
            Ok(Err(CommandError::ConductorStopped)) => Err(unavailable("it has ended")),
            Ok(Err(CommandError::Rejected(refused))) => Err(refusal(&refused)),
            Err(_) => Err(unavailable("it does not answer in time; its journal may be stuck")),
        }
    }

    /// Takes a place for an event stream.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, ErrorResponse> {
        Arc::clone(&self.inner.streams).try_acquire_owned().map_err(|_| {
            let detail = json!({ "limit": MAX_STREAMS });
            ErrorResponse::new(Code::Overloaded, "too many event streams are open", detail)
        })
    }

    /// Believes that a call comes from the tracker, or not. Returns what it wants to hear.
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
        // Asana alone chooses its secret itself.
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

    /// Keeps the secret that the tracker has chosen, before that is acknowledged.
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

/// What a call of the tracker is about.
pub(crate) enum WebhookCall {
    /// Something has changed.
    Wake,
    /// It says who it is, and wants to hear the same.
    Handshake(Secret),
}

/// Says that no conductor answers.
pub(crate) fn unavailable(why: &str) -> ErrorResponse {
    let message = format!("the conductor cannot be asked: {why}");
    ErrorResponse::new(Code::ConductorUnavailable, message, json!({}))
}

fn refusal(refused: &CommandRejection) -> ErrorResponse {
    let code = match refused {
        CommandRejection::UnknownIssue(_) => Code::IssueNotFound,
        CommandRejection::Conflict { .. } => Code::IssueConflict,
    };
    ErrorResponse::new(code, refused.to_string(), json!({}))
}

/// Whoever asks the conductor: somebody with a token for everything.
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

/// Tells whether a caller may do this with the conductor, which works in every workspace of its own.
pub(crate) fn check(caller: &Caller, scope: TokenScope) -> Result<(), ErrorResponse> {
    if caller.coverage != Coverage::All {
        let message = "the token is for single workspaces; make one with `carrel token new --all`";
        return Err(ErrorResponse::new(Code::Forbidden, message, json!({})));
    }
    Ok(caller.check_scope(scope)?)
}

/// Serves the API of a conductor from a listener until it is told to stop.
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
