//! Why nothing is known of repositories.

use std::time::Duration;

use carrel_client::SendError;
use carrel_domain::{Code, Coded, WorkspaceId};
use serde_json::{Value, json};

/// Why nothing is known of repositories. No variant repeats a token.
#[derive(Debug, thiserror::Error)]
pub enum GitHubError {
    /// The operator has set up no source of tokens.
    #[error(
        "this server knows no token for GitHub; send one in X-GitHub-Token, or name a stored credential"
    )]
    NotConfigured,
    /// No source has a token for the workspace.
    #[error(
        "workspace {workspace} is not connected to GitHub; send a token in X-GitHub-Token, name a stored \
         credential, or have the operator connect it"
    )]
    NotConnected {
        /// The workspace.
        workspace: WorkspaceId,
    },
    /// Several owners could be meant.
    #[error("the workspace may see repositories of {}; say whose with `owner`", owners.join(", "))]
    OwnerNotChosen {
        /// Those who could be meant.
        owners: Vec<String>,
    },
    /// Too much was asked for.
    #[error("GitHub API error: the rate limit is used up")]
    RateLimited {
        /// When to ask again.
        retry_after: Duration,
    },
    /// The provider said no.
    #[error("GitHub API error: {provider} answered {status}: {message}")]
    Refused {
        /// Who said so.
        provider: &'static str,
        /// With which status.
        status: u16,
        /// In which words.
        message: String,
    },
    /// The provider said something that is not understood.
    #[error("GitHub API error: {provider} answered with something that is not understood: {what}")]
    UnexpectedReply {
        /// Who said so.
        provider: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// The provider does not answer.
    #[error("GitHub API error: {provider} does not answer")]
    Unreachable {
        /// Who.
        provider: &'static str,
        /// What happened.
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
