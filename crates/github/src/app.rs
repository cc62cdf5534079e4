//! Tokens of a GitHub GitHubApp's installations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use carrel_domain::{Clock, Secret, Timestamp, sync};
use hyper::Method;
use hyper::header::AUTHORIZATION;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app_signer::AppSigner;
use crate::error::GitHubError;
use crate::grants::{Grants, is_owner};
use crate::provider_client::{ProviderClient, ProviderRequest};
use crate::repository::Listing;
use crate::{Token, TokenRequest, TokenSource};

/// How long a token must still hold to be used again. A clone takes its time.
const MARGIN: Duration = Duration::from_mins(10);

/// Tokens that are remembered.
const MAX_TOKENS: usize = 1000;

/// A GitHub GitHubApp.
#[derive(Debug)]
pub(crate) struct GitHubApp {
    pub(crate) api: ProviderClient,
    pub(crate) signer: AppSigner,
    pub(crate) grants: Grants,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) known: Mutex<HashMap<CacheKey, CachedToken>>,
}

/// Whose repositories, and which of them.
type CacheKey = (String, Option<String>);

#[derive(Clone, Debug)]
pub(crate) struct CachedToken {
    token: Secret,
    expires_at: Timestamp,
}

#[derive(Deserialize)]
struct InstallationToken {
    token: String,
    expires_at: Timestamp,
}

#[async_trait::async_trait]
impl TokenSource for GitHubApp {
    fn name(&self) -> &'static str {
        "github_app"
    }

    async fn token(&self, request: &TokenRequest) -> Result<Option<Token>, GitHubError> {
        let Some(owner) = self.owner(request)? else { return Ok(None) };
        let token = self.of_installation(owner, request.repository.clone()).await?;
        Ok(token.map(|value| Token { value, listing: Listing::Installation }))
    }
}

impl GitHubApp {
    /// Returns whose repositories are meant, if the workspace may see them.
    fn owner(&self, request: &TokenRequest) -> Result<Option<String>, GitHubError> {
        if let Some(owner) = &request.owner {
            let allowed = is_owner(owner) && self.grants.allow(request.workspace, owner);
            return Ok(allowed.then(|| owner.to_ascii_lowercase()));
        }
        let mut owners = self.grants.owners(request.workspace);
        match owners.len() {
            0 => Ok(None),
            1 => Ok(owners.pop()),
            _ => Err(GitHubError::OwnerNotChosen { owners }),
        }
    }

    async fn of_installation(
        &self,
        owner: String,
        repository: Option<String>,
    ) -> Result<Option<Secret>, GitHubError> {
        let purpose = (owner, repository);
        let soon = self.clock.now().after(MARGIN);
        let known = self.known().get(&purpose).filter(|known| known.expires_at > soon).cloned();
        if let Some(known) = known {
            return Ok(Some(known.token));
        }
        let Some(installation) = self.installation(&purpose.0).await? else { return Ok(None) };
        let made = self.make(installation, purpose.1.as_deref()).await?;
        let token = Secret::new(made.token);
        let mut all = self.known();
        all.retain(|_, known| known.expires_at > soon);
        if all.len() < MAX_TOKENS {
            all.insert(purpose, CachedToken { token: token.clone(), expires_at: made.expires_at });
        }
        Ok(Some(token))
    }

    /// Finds the installation for an organization or a user.
    async fn installation(&self, owner: &str) -> Result<Option<u64>, GitHubError> {
        for kind in ["orgs", "users"] {
            let path = format!("/{kind}/{owner}/installation");
            match self.as_app(Method::GET, &path, None).await {
                Ok(found) => {
                    let id = found["id"].as_u64();
                    return id.map(Some).ok_or_else(|| self.api.unexpected("an installation"));
                }
                Err(GitHubError::Refused { status: 404, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Makes a token that can do what it is for, and no more.
    async fn make(
        &self,
        installation: u64,
        repository: Option<&str>,
    ) -> Result<InstallationToken, GitHubError> {
        let body = match repository {
            Some(name) => json!({ "repositories": [name], "permissions": { "contents": "read" } }),
            None => json!({ "permissions": { "metadata": "read" } }),
        };
        let path = format!("/app/installations/{installation}/access_tokens");
        let made = self.as_app(Method::POST, &path, Some(body)).await?;
        serde_json::from_value(made).map_err(|_| self.api.unexpected("a token"))
    }

    async fn as_app(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, GitHubError> {
        let signed = self.signer.sign(self.clock.now());
        let signed = signed.ok_or_else(|| self.api.unexpected("a signature"))?;
        let asked = ProviderRequest { method, path, secret: (AUTHORIZATION, &signed), body };
        self.api.ask(asked).await
    }

    fn known(&self) -> MutexGuard<'_, HashMap<CacheKey, CachedToken>> {
        sync::lock(&self.known)
    }
}
