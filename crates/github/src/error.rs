//! Errors of GitHub and of the token sources.
//!
//! A missing configuration, a missing connection and a failure of the provider have different codes, since
//! different people can resolve them: the operator, the owner of the workspace, and the provider.

use std::time::Duration;

use carrel_client::SendError;
use carrel_domain::{Code, Coded, WorkspaceId};
use serde_json::{Value, json};

pub(crate) type Result<T, E = GitHubError> = std::result::Result<T, E>;

/// The reason that repositories cannot be listed. No variant contains a token.
#[derive(Debug, thiserror::Error)]
pub enum GitHubError {
    /// The operator has configured no token source.
    #[error(
        "no token for GitHub is configured; send one in X-GitHub-Token, or name a stored credential"
    )]
    NotConfigured,
    /// No token source has a token for the workspace.
    #[error(
        "workspace {workspace} is not connected to GitHub; send a token in X-GitHub-Token, name a stored \
         credential, or have the operator connect it"
    )]
    NotConnected {
        /// The workspace.
        workspace: WorkspaceId,
    },
    /// The workspace is granted several owners, and the request names none.
    #[error("the workspace may see repositories of {}; say whose with `owner`", owners.join(", "))]
    OwnerNotChosen {
        /// The owners to choose from.
        owners: Vec<String>,
    },
    /// The rate limit of the token is exhausted.
    #[error("GitHub API error: the rate limit is used up")]
    RateLimited {
        /// The time until the limit resets.
        retry_after: Duration,
    },
    /// The provider answered with an error status.
    #[error("GitHub API error: {provider} answered {status}: {message}")]
    Refused {
        /// GitHub or Composio.
        provider: &'static str,
        /// The HTTP status.
        status: u16,
        /// The message of the provider, shortened, without the token.
        message: String,
    },
    /// The reply of the provider has another shape than its documentation says.
    #[error("GitHub API error: {provider} sent an unexpected reply: expected {what}")]
    UnexpectedReply {
        /// GitHub or Composio.
        provider: &'static str,
        /// The value that was expected.
        what: &'static str,
    },
    /// The provider did not answer.
    #[error("GitHub API error: {provider} does not answer")]
    Unreachable {
        /// GitHub or Composio.
        provider: &'static str,
        /// The failure of the connection.
        #[source]
        source: SendError,
    },
}

impl Coded for GitHubError {
    fn code(&self) -> Code {
        match self {
            Self::NotConfigured => Code::NotConfigured,
            Self::NotConnected { .. } => Code::NotConnected,
            Self::OwnerNotChosen { .. } => Code::InvalidRequest,
            Self::RateLimited { .. } => Code::UpstreamLimited,
            Self::Refused { .. } | Self::UnexpectedReply { .. } | Self::Unreachable { .. } => {
                Code::UpstreamFailed
            }
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::NotConnected { workspace } => json!({ "workspace_id": workspace }),
            Self::OwnerNotChosen { owners } => json!({ "field": "owner", "owners": owners }),
            Self::Refused { provider, status, .. } => {
                json!({ "provider": provider, "status": status })
            }
            Self::UnexpectedReply { provider, .. } | Self::Unreachable { provider, .. } => {
                json!({ "provider": provider })
            }
            Self::NotConfigured | Self::RateLimited { .. } => json!({}),
        }
    }
}
