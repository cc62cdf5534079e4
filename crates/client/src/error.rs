//! Errors of API calls.

use std::time::Duration;

use carrel_domain::{Code, Coded};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::http_client::SendError;

/// An error reply of the API.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// The stable name of the error, such as `E_NOT_FOUND`. A newer server may send names that [`Code`]
    /// lacks.
    pub code: String,
    /// The message for people.
    pub message: String,
    /// The facts for programs; an object.
    pub detail: Value,
    /// The value of `Retry-After`.
    pub retry_after: Option<Duration>,
}

pub(crate) type Result<T, E = ClientError> = std::result::Result<T, E>;

/// Errors of API calls.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server refused the request with the error envelope of the API.
    #[error("{}", .0.message)]
    Api(Box<ApiError>),
    /// The connection could not be made, broke, or timed out.
    #[error("{server} does not answer")]
    Unreachable {
        /// The URL of the server.
        server: String,
        /// The failure of the connection.
        #[source]
        source: SendError,
    },
    /// The response is not one of the API: some other server listens there, or a proxy in between answered.
    #[error("{server} does not answer as Carrel does: {what}")]
    Protocol {
        /// The URL of the server.
        server: String,
        /// The beginning of the response, or the parse error.
        what: String,
    },
}

impl ClientError {
    /// Returns `true` if the same request may succeed later.
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

    /// Returns the wait that the server asked for with `Retry-After`.
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
