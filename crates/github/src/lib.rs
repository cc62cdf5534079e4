//! Repositories on GitHub: who may see them, and with which token.
//!
//! A [`TokenSource`] knows a token for a workspace: that of a GitHub GitHubApp's installation, of a
//! connection at Composio, or the operator's own. [`GitHub`] asks them in this order. What an operator's
//! sources may be used for stands in [`Grants`]: without an entry there, no workspace gets anything
//! from them. Tokens travel in headers alone, and print as `***`.
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
pub use self::grants::{Grants, InvalidGrant};
use self::provider_client::ProviderClient;
pub use self::repository::{Listing, PageRequest};
pub use self::settings::{GitHubSettings, GitHubSettingsError};

/// What a token is request for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    /// For whom.
    pub workspace: WorkspaceId,
    /// Whose repositories; whatever there is if none.
    pub owner: Option<String>,
    /// The one repository that is to be fetched; a list of them if none.
    pub repository: Option<String>,
}

/// A token, and what it can list.
#[derive(Clone, Debug)]
pub struct Token {
    pub(crate) value: Secret,
    pub(crate) listing: Listing,
}

/// Knows tokens for workspaces.
#[async_trait::async_trait]
pub trait TokenSource: std::fmt::Debug + Send + Sync {
    /// Returns what it is called in logs.
    fn name(&self) -> &'static str;

    /// Returns a token, or nothing if the source has none for this workspace.
    async fn token(&self, request: &TokenRequest) -> Result<Option<Token>, GitHubError>;

    /// Lists repositories without a token that others see, if the source can.
    async fn list(
        &self,
        _: &TokenRequest,
        _: PageRequest,
    ) -> Result<Option<Vec<Repository>>, GitHubError> {
        Ok(None)
    }
}

/// GitHub, as far as workspaces have to do with it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct GitHub {
    api: ProviderClient,
    host: Arc<str>,
    sources: Arc<[Box<dyn TokenSource>]>,
}

impl GitHub {
    /// Takes the sources that the operator has set up.
    pub fn new(settings: GitHubSettings) -> Self {
        let host = settings.host.as_str().into();
        let (api, sources) = settings.into_sources();
        Self { api, host, sources: sources.into() }
    }

    /// Returns the machine that the tokens are for.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Lists repositories with a token that the caller has.
    pub async fn list_with(
        &self,
        token: &Secret,
        page: PageRequest,
    ) -> Result<Vec<Repository>, GitHubError> {
        self.api.repositories(token, Listing::User, page).await
    }

    /// Lists the repositories that a workspace may see.
    pub async fn list(
        &self,
        request: &TokenRequest,
        page: PageRequest,
    ) -> Result<Vec<Repository>, GitHubError> {
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

    /// Returns a token to fetch a repository with, if a source has one. One that fails is no reason not
    /// to try: the repository may be public.
    pub async fn token(&self, request: &TokenRequest) -> Option<Secret> {
        for source in &*self.sources {
            match source.token(request).await {
                Ok(Some(token)) => return Some(token.value),
                Ok(None) => {}
                Err(error) => {
                    let error = carrel_domain::message_of(&error);
                    let (source, workspace) = (source.name(), request.workspace);
                    warn!(source, %workspace, %error, "no token for a repository");
                }
            }
        }
        None
    }
}
