//! The operator's own token (`GITHUB_TOKEN`).
//!
//! It sees all that the operator sees, so that it serves only workspaces with a grant for all owners.

use carrel_domain::Secret;

use crate::error::Result;
use crate::grants::Grants;
use crate::repository::Listing;
use crate::{Token, TokenRequest, TokenSource};

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

    async fn token(&self, request: &TokenRequest) -> Result<Option<Token>> {
        let allowed = self.grants.allow_all(request.workspace);
        let token = || Token { value: self.token.clone(), listing: Listing::User };
        Ok(allowed.then(token))
    }
}
