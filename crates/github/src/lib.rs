//! GitHub repositories of workspaces: listing them, and tokens to clone them.
//!
//! A [`TokenSource`] finds a token for a workspace. There are three: the installation of a GitHub App, a
//! connection at Composio, and the operator's own token. [`GitHub`] asks them in this order. Sources of the
//! operator serve only workspaces with an entry in [`Grants`].
//!
//! Tokens travel in headers, never in URLs, and print as `***`. Messages of providers are masked before they
//! become errors.
#![forbid(unsafe_code)]

mod app;
mod app_signer;
mod composio;
mod error;
mod grants;
mod operator_token;
mod provider_client;
mod repository;
mod settings;

use std::sync::Arc;

use carrel_domain::{Secret, WorkspaceId};
use carrel_wire::Repository;
use tracing::warn;

pub use self::error::GitHubError;
use self::error::Result;
pub use self::grants::{Grants, InvalidGrant};
use self::provider_client::ProviderClient;
pub use self::repository::{Listing, PageRequest};
pub use self::settings::{GitHubSettings, GitHubSettingsError};

/// The purpose of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    /// The workspace that uses it.
    pub workspace: WorkspaceId,
    /// The owner of the repositories; the only one that the workspace is granted if `None`.
    pub owner: Option<String>,
    /// The repository to clone; all that can be listed if `None`.
    pub repository: Option<String>,
}

/// A token and the list that it can request.
#[derive(Clone, Debug)]
pub struct Token {
    pub(crate) value: Secret,
    pub(crate) listing: Listing,
}

/// A source of GitHub tokens.
#[async_trait::async_trait]
pub trait TokenSource: std::fmt::Debug + Send + Sync {
    /// Returns the name of the source in logs.
    fn name(&self) -> &'static str;

    /// Returns a token, or `None` if the source has none for this workspace.
    async fn token(&self, request: &TokenRequest) -> Result<Option<Token>>;

    /// Lists repositories without revealing a token. `None` if the source cannot.
    async fn list(&self, _: &TokenRequest, _: PageRequest) -> Result<Option<Vec<Repository>>> {
        Ok(None)
    }
}

/// The configured token sources and the API of GitHub. Clones share both.
#[derive(Clone, Debug)]
pub struct GitHub {
    api: ProviderClient,
    host: Arc<str>,
    sources: Arc<[Box<dyn TokenSource>]>,
}

impl GitHub {
    /// Creates the sources of the settings.
    pub fn new(settings: GitHubSettings) -> Self {
        let host = settings.host.as_str().into();
        let (api, sources) = settings.into_sources();
        Self { api, host, sources: sources.into() }
    }

    /// Returns the host that tokens are valid for, such as `github.com`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Lists repositories with the caller's token.
    pub async fn list_with(&self, token: &Secret, page: PageRequest) -> Result<Vec<Repository>> {
        self.api.repositories(token, Listing::User, page).await
    }

    /// Lists repositories with the first source that has a token for the workspace.
    pub async fn list(&self, request: &TokenRequest, page: PageRequest) -> Result<Vec<Repository>> {
        if self.sources.is_empty() {
            return Err(GitHubError::NotConfigured);
        }
        for source in &*self.sources {
            if let Some(listed) = source.list(request, page).await? {
                return Ok(listed);
            }
            if let Some(token) = source.token(request).await? {
                return self.api.repositories(&token.value, token.listing, page).await;
            }
        }
        Err(GitHubError::NotConnected { workspace: request.workspace })
    }

    /// Returns a token for cloning, from the first source that has one.
    ///
    /// A source that fails is logged and skipped: the repository may be public, and the clone then succeeds
    /// without a token.
    pub async fn token(&self, request: &TokenRequest) -> Option<Secret> {
        for source in &*self.sources {
            match source.token(request).await {
                Ok(Some(token)) => return Some(token.value),
                Ok(None) => {}
                Err(error) => {
                    let error = carrel_domain::message_of(&error);
                    let source = source.name();
                    let workspace = request.workspace;
                    warn!(source, %workspace, %error, "no token for a repository");
                }
            }
        }
        None
    }
}
