//! The operator's own token.

use carrel_domain::Secret;

use crate::error::GitHubError;
use crate::grants::Grants;
use crate::repository::Listing;
use crate::{Token, TokenRequest, TokenSource};

/// The operator's own token, for workspaces that may see whatever the operator can.
#[derive(Debug)]
pub(crate) struct OperatorToken {
    pub(crate) token: Secret,
    pub(crate) grants: Grants,
}

#[async_trait::async_trait]
impl TokenSource for OperatorToken {
    fn name(&self) -> &'static str {
        "environment"
    }

    async fn token(&self, request: &TokenRequest) -> Result<Option<Token>, GitHubError> {
        let allowed = self.grants.everything(request.workspace);
        let token = || Token { value: self.token.clone(), listing: Listing::User };
        Ok(allowed.then(token))
    }
}
