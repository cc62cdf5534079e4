//! Installation tokens of a GitHub App.
//!
//! The app authenticates with a JWT that it signs itself, asks for its installation at an owner, and creates
//! an access token there. A token is created for one key: reading the contents of one repository, or the
//! metadata that a list needs. GitHub limits it to that, so that a token that leaks from a clone opens
//! nothing else. Tokens last an hour and are cached by owner and repository until ten minutes before their
//! end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrel_domain::{Clock, Secret, Timestamp, sync};
use hyper::Method;
use hyper::header::AUTHORIZATION;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app_signer::AppSigner;
use crate::error::{GitHubError, Result};
use crate::grants::{Grants, is_owner};
use crate::provider_client::{ProviderClient, ProviderRequest};
use crate::repository::Listing;
use crate::{Token, TokenRequest, TokenSource};

/// The remaining lifetime below which a cached token is not used: a clone may take minutes.
const MIN_REMAINING: Duration = Duration::from_mins(10);

const MAX_CACHED_TOKENS: usize = 1000;

/// A token source that is an app of the operator.
#[derive(Debug)]
pub(crate) struct GitHubApp {
    pub(crate) api: ProviderClient,
    pub(crate) signer: AppSigner,
    pub(crate) grants: Grants,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cached: Mutex<HashMap<CacheKey, CachedToken>>,
}

/// Owner in lower case, and the one repository; none for the list.
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

    async fn token(&self, request: &TokenRequest) -> Result<Option<Token>> {
        let Some(owner) = self.owner(request)? else { return Ok(None) };
        let token = self.installation_token(owner, request.repository.clone()).await?;
        Ok(token.map(|value| Token { value, listing: Listing::Installation }))
    }
}

impl GitHubApp {
    /// Returns the owner of a request, if the workspace is granted access.
    ///
    /// Without an owner in the request, the grant decides if it names exactly one.
    fn owner(&self, request: &TokenRequest) -> Result<Option<String>> {
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

    async fn installation_token(
        &self,
        owner: String,
        repository: Option<String>,
    ) -> Result<Option<Secret>> {
        let key = (owner, repository);
        let soon = self.clock.now().after(MIN_REMAINING);
        let cached = sync::lock(&self.cached).get(&key).cloned();
        if let Some(cached) = cached.filter(|cached| cached.expires_at > soon) {
            return Ok(Some(cached.token));
        }
        let Some(installation) = self.installation(&key.0).await? else { return Ok(None) };
        let created = self.create_token(installation, key.1.as_deref()).await?;
        let token = Secret::new(created.token);
        let mut all = sync::lock(&self.cached);
        all.retain(|_, cached| cached.expires_at > soon);
        if all.len() < MAX_CACHED_TOKENS {
            all.insert(key, CachedToken { token: token.clone(), expires_at: created.expires_at });
        }
        Ok(Some(token))
    }

    /// Returns the id of the installation at an organization or a user.
    async fn installation(&self, owner: &str) -> Result<Option<u64>> {
        for kind in ["orgs", "users"] {
            let path = format!("/{kind}/{owner}/installation");
            match self.send_as_app(Method::GET, &path, None).await {
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

    /// Creates a token with the least permissions for its key.
    async fn create_token(
        &self,
        installation: u64,
        repository: Option<&str>,
    ) -> Result<InstallationToken> {
        let body = match repository {
            Some(name) => json!({ "repositories": [name], "permissions": { "contents": "read" } }),
            None => json!({ "permissions": { "metadata": "read" } }),
        };
        let path = format!("/app/installations/{installation}/access_tokens");
        let created = self.send_as_app(Method::POST, &path, Some(body)).await?;
        serde_json::from_value(created).map_err(|_| self.api.unexpected("a token"))
    }

    async fn send_as_app(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        let signed = self.signer.sign(self.clock.now());
        let signed = signed.ok_or_else(|| self.api.unexpected("a signature"))?;
        let call = ProviderRequest { method, path, secret: (AUTHORIZATION, &signed), body };
        self.api.send(call).await
    }
}
