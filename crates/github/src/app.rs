//! Tokens of a GitHub App's installations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use carrel_domain::{Clock, Secret, Timestamp};
use hyper::Method;
use hyper::header::AUTHORIZATION;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Api, Asked};
use crate::error::GitHubError;
use crate::grants::{Grants, is_owner};
use crate::repositories::Listing;
use crate::signer::Signer;
use crate::{Token, TokenSource, Wanted};

/// How long a token must still hold to be used again. A clone takes its time.
const MARGIN: Duration = Duration::from_mins(10);

/// Tokens that are remembered.
const MAX_TOKENS: usize = 1000;

/// A GitHub App.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) api: Api,
    pub(crate) signer: Signer,
    pub(crate) grants: Grants,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) known: Mutex<HashMap<Purpose, Known>>,
}

/// Whose repositories, and which of them.
type Purpose = (String, Option<String>);

#[derive(Clone, Debug)]
pub(crate) struct Known {
    token: Secret,
    expires_at: Timestamp,
}

#[derive(Deserialize)]
struct Made {
    token: String,
    expires_at: Timestamp,
}

#[async_trait::async_trait]
impl TokenSource for App {
    fn name(&self) -> &'static str {
        "github_app"
    }

    async fn token(&self, wanted: &Wanted) -> Result<Option<Token>, GitHubError> {
        let Some(owner) = self.owner(wanted)? else { return Ok(None) };
        let token = self.of_installation(owner, wanted.repository.clone()).await?;
        Ok(token.map(|value| Token { value, listing: Listing::Installation }))
    }
}

impl App {
    /// Returns whose repositories are meant, if the workspace may see them.
    fn owner(&self, wanted: &Wanted) -> Result<Option<String>, GitHubError> {
        if let Some(owner) = &wanted.owner {
            let allowed = is_owner(owner) && self.grants.allow(wanted.workspace, owner);
            return Ok(allowed.then(|| owner.to_ascii_lowercase()));
        }
        let mut owners = self.grants.owners(wanted.workspace);
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
            all.insert(purpose, Known { token: token.clone(), expires_at: made.expires_at });
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
                    return id.map(Some).ok_or_else(|| self.api.strange("an installation"));
                }
                Err(GitHubError::Refused { status: 404, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Makes a token that can do what it is for, and no more.
    async fn make(&self, installation: u64, repository: Option<&str>) -> Result<Made, GitHubError> {
        let body = match repository {
            Some(name) => json!({ "repositories": [name], "permissions": { "contents": "read" } }),
            None => json!({ "permissions": { "metadata": "read" } }),
        };
        let path = format!("/app/installations/{installation}/access_tokens");
        let made = self.as_app(Method::POST, &path, Some(body)).await?;
        serde_json::from_value(made).map_err(|_| self.api.strange("a token"))
    }

    async fn as_app(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, GitHubError> {
        let signed = self.signer.sign(self.clock.now());
        let signed = signed.ok_or_else(|| self.api.strange("a signature"))?;
        let asked = Asked { method, path, secret: (AUTHORIZATION, &signed), body };
        self.api.ask(asked).await
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Purpose, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
