//! Why a request did not do what was request.

use std::time::Duration;

use carrel_domain::{Code, Coded};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::http_client::SendError;

/// What a server said that refused something.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    /// The status of the answer.
    pub status: u16,
    /// The stable name of the reason.
    pub code: String,
    /// One sentence for a person.
    pub message: String,
    /// Facts for a program.
    pub detail: Value,
    /// When to ask again.
    pub retry_after: Option<Duration>,
}

/// Why a request did not do what was request.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server said no, in the one envelope.
    #[error("{}", .0.message)]
    Api(Box<ApiError>),
    /// There is no connection, or it did not last, or nothing came in time.
    #[error("{server} does not answer")]
    Unreachable {
        /// The server.
        server: String,
        /// What happened.
        #[source]
        source: SendError,
    },
    /// Something answers, and not in the way the service does.
    #[error("{server} does not answer as Carrel does: {what}")]
    Protocol {
        /// The server.
        server: String,
        /// What came instead.
        what: String,
    },
}

impl ClientError {
    /// Tells whether asking again later may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Api(refusal) => matches!(refusal.status, 429 | 500..),
            Self::Unreachable { source, .. } => match source {
                SendError::Connect(_) | SendError::Timeout { .. } | SendError::Interrupted(_) => {
                    true
                }
                SendError::TooLarge { .. }
                | SendError::NoRootCertificates
                | SendError::UnsupportedScheme => false,
            },
            Self::Protocol { .. } => false,
        }
    }

    /// Returns how long the server wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Api(refusal) => refusal.retry_after,
            Self::Unreachable { .. } | Self::Protocol { .. } => None,
        }
    }
}

impl Coded for ClientError {
    fn code(&self) -> Code {
        match self {
            Self::Api(refusal) => Code::named(&refusal.code).unwrap_or(match refusal.status {
                401 => Code::Unauthenticated,
                403 => Code::Forbidden,
                404 => Code::NotFound,
                429 => Code::Overloaded,
                400..=499 => Code::InvalidRequest,
                _ => Code::Internal,
            }),
            Self::Unreachable { .. } => Code::ServerUnreachable,
            Self::Protocol { .. } => Code::UpstreamFailed,
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Api(refusal) => refusal.detail.clone(),
            Self::Unreachable { server, .. } | Self::Protocol { server, .. } => {
                serde_json::json!({ "server": server })
            }
        }
    }
}

/// The envelope as it is read.
#[derive(Deserialize)]
struct Envelope {
    error: Inside,
}

#[derive(Deserialize)]
struct Inside {
    code: String,
    message: String,
    #[serde(default)]
    detail: Map<String, Value>,
}

/// Returns the refusal that an answer is, if it is one of the service.
pub(crate) fn refusal(
    status: u16,
    retry_after: Option<Duration>,
    body: &[u8],
) -> Option<ClientError> {
    let Envelope { error } = serde_json::from_slice(body).ok()?;
    let Inside { code, message, detail } = error;
    let detail = Value::Object(detail);
    let refusal = ApiError { status, code, message, detail, retry_after };
    Some(ClientError::Api(Box::new(refusal)))
}
