//! Connections that Composio keeps for workspaces.
//!
//! A workspace is an entity there, under its id. Who has connected it has said what it may see.

use carrel_domain::Secret;
use hyper::Method;
use hyper::header::HeaderName;
use serde_json::{Value, json};

use crate::api::{Api, Asked};
use crate::error::GitHubError;
use crate::repositories::{Listing, Page, Repository};
use crate::{Token, TokenSource, Wanted};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The action that lists repositories.
const LIST: &str = "GITHUB_LIST_REPOSITORIES_FOR_THE_AUTHENTICATED_USER";

/// What a list may be wrapped in.
const WRAPPERS: [&str; 4] = ["data", "response_data", "items", "repositories"];

/// Composio with the operator's key.
#[derive(Debug)]
pub(crate) struct Composio {
    pub(crate) api: Api,
    pub(crate) key: Secret,
}

#[async_trait::async_trait]
impl TokenSource for Composio {
    fn name(&self) -> &'static str {
        "composio"
    }

    async fn token(&self, wanted: &Wanted) -> Result<Option<Token>, GitHubError> {
        let accounts = self.accounts(wanted).await?;
        let tokens = accounts.iter().filter_map(|account| {
            let value = account.pointer("/state/val/access_token")?.as_str()?;
            // An account of which only a part is shown has no token to give.
            let is_whole = !value.is_empty() && !value.contains('*') && !value.contains("...");
            is_whole.then_some(value)
        });
        let token = |value: &str| Token { value: Secret::new(value), listing: Listing::User };
        Ok(tokens.map(token).next())
    }

    async fn list(
        &self,
        wanted: &Wanted,
        page: Page,
    ) -> Result<Option<Vec<Repository>>, GitHubError> {
        if self.accounts(wanted).await?.is_empty() {
            return Ok(None);
        }
        let body = json!({
            "user_id": wanted.workspace,
            "arguments": { "page": page.number, "per_page": page.size },
        });
        let path = format!("/api/v3/tools/execute/{LIST}");
        let secret = (API_KEY, &self.key);
        let asked = Asked { method: Method::POST, path: &path, secret, body: Some(body) };
        let done = self.api.ask(asked).await?;
        if done["successful"] != true {
            let message = done["error"].as_str().unwrap_or("the action failed");
            let message = message.chars().filter(|one| !one.is_control()).take(200).collect();
            return Err(GitHubError::Refused { provider: "Composio", status: 200, message });
        }
        self.api.read(unwrapped(done)).map(Some)
    }
}

impl Composio {
    /// Returns the connections of a workspace that can be used.
    async fn accounts(&self, wanted: &Wanted) -> Result<Vec<Value>, GitHubError> {
        let workspace = wanted.workspace;
        let path = format!(
            "/api/v3/connected_accounts?user_ids={workspace}&toolkit_slugs=github&statuses=ACTIVE"
        );
        let mut told = self.api.ask(Asked::get(&path, API_KEY, &self.key)).await?;
        let Value::Array(items) = told["items"].take() else {
            return Err(self.api.strange("a list of connections"));
        };
        // The filter is the provider's; that it held is for us to see.
        let own = workspace.to_string();
        let is_own = |account: &Value| account["user_id"].as_str() == Some(&own);
        Ok(items.into_iter().filter(is_own).collect())
    }
}

/// Takes a list out of what it is wrapped in.
fn unwrapped(mut value: Value) -> Value {
    while let Value::Object(fields) = &mut value {
        match WRAPPERS.iter().find_map(|name| fields.remove(*name)) {
            Some(inside) => value = inside,
            None => break,
        }
    }
    value
}
