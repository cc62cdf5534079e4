//! Connections that Composio holds for workspaces.
//!
//! A workspace is a user there, under its id. Its owner connects an account at Composio, which decides what
//! the workspace can see; [`Grants`](crate::Grants) do not apply. Composio either reveals the access token of
//! the account, or lists repositories on its behalf.

use carrel_domain::Secret;
use carrel_wire::Repository;
use hyper::Method;
use hyper::header::HeaderName;
use serde_json::{Value, json};

use crate::error::{GitHubError, Result};
use crate::provider_client::{ProviderClient, ProviderRequest};
use crate::repository::{Listing, PageRequest};
use crate::{Token, TokenRequest, TokenSource};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

const LIST: &str = "GITHUB_LIST_REPOSITORIES_FOR_THE_AUTHENTICATED_USER";

/// Fields that Composio has wrapped the list in so far, outermost first.
const WRAPPERS: [&str; 4] = ["data", "response_data", "items", "repositories"];

#[derive(Debug)]
pub(crate) struct Composio {
    pub(crate) api: ProviderClient,
    pub(crate) key: Secret,
}

#[async_trait::async_trait]
impl TokenSource for Composio {
    fn name(&self) -> &'static str {
        "composio"
    }

    async fn token(&self, request: &TokenRequest) -> Result<Option<Token>> {
        let accounts = self.accounts(request).await?;
        let tokens = accounts.iter().filter_map(|account| {
            let value = account.pointer("/state/val/access_token")?.as_str()?;
            // Composio masks the tokens of accounts whose settings hide them.
            let is_complete = !value.is_empty() && !value.contains('*') && !value.contains("...");
            is_complete.then_some(value)
        });
        let token = |value: &str| Token { value: Secret::new(value), listing: Listing::User };
        Ok(tokens.map(token).next())
    }

    async fn list(
        &self,
        request: &TokenRequest,
        page: PageRequest,
    ) -> Result<Option<Vec<Repository>>> {
        if self.accounts(request).await?.is_empty() {
            return Ok(None);
        }
        let body = json!({
            "user_id": request.workspace,
            "arguments": { "page": page.number, "per_page": page.size },
        });
        let path = format!("/api/v3/tools/execute/{LIST}");
        let secret = (API_KEY, &self.key);
        let call = ProviderRequest { method: Method::POST, path: &path, secret, body: Some(body) };
        let done = self.api.send(call).await?;
        if done["successful"] != true {
            let message = done["error"].as_str().unwrap_or("the action failed");
            let message = message.chars().filter(|c| !c.is_control()).take(200).collect();
            return Err(GitHubError::Refused { provider: "Composio", status: 200, message });
        }
        self.api.parse_repositories(unwrap_list(done)).map(Some)
    }
}

impl Composio {
    async fn accounts(&self, request: &TokenRequest) -> Result<Vec<Value>> {
        let workspace = request.workspace;
        let path = format!(
            "/api/v3/connected_accounts?user_ids={workspace}&toolkit_slugs=github&statuses=ACTIVE"
        );
        let mut reply = self.api.send(ProviderRequest::get(&path, API_KEY, &self.key)).await?;
        let Value::Array(items) = reply["items"].take() else {
            return Err(self.api.unexpected("a list of connections"));
        };
        // The server was asked to filter by user. That it did is checked: another workspace's account must
        // not be used.
        let own = workspace.to_string();
        let is_own = |account: &Value| account["user_id"].as_str() == Some(&own);
        Ok(items.into_iter().filter(is_own).collect())
    }
}

fn unwrap_list(mut value: Value) -> Value {
    while let Value::Object(fields) = &mut value {
        match WRAPPERS.iter().find_map(|name| fields.remove(*name)) {
            Some(inside) => value = inside,
            None => break,
        }
    }
    value
}
