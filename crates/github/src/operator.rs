//! The operator's own token.

use carrel_domain::Secret;

use crate::error::GitHubError;
use crate::grants::Grants;
use crate::repositories::Listing;
use crate::{Token, TokenSource, Wanted};

/// The operator's own token, for workspaces that may see whatever the operator can.
#[derive(Debug)]
pub(crate) struct Operator {
    pub(crate) token: Secret,
    pub(crate) grants: Grants,
}

#[async_trait::async_trait]
impl TokenSource for Operator {
    fn name(&self) -> &'static str {
        "environment"
    }

    async fn token(&self, wanted: &Wanted) -> Result<Option<Token>, GitHubError> {
        let allowed = self.grants.everything(wanted.workspace);
        let token = || Token { value: self.token.clone(), listing: Listing::User };
        Ok(allowed.then(token))
    }
}
