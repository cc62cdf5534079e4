//! Errors of authentication and authorization.

use carrel_domain::{Code, Coded, TokenScope, WorkspaceId};
use serde_json::{Value, json};

/// The header that names the workspace of a request, if the token covers several.
pub const WORKSPACE_HEADER: &str = "x-workspace-id";

/// The reason that credentials were rejected, for the log. Clients do not see it: it would tell an attacker
/// how far a forgery got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectReason {
    /// The request has no credentials.
    Missing,
    /// The token is not well-formed.
    Malformed,
    /// The token has expired.
    Expired,
    /// The token is not signed, or by another key or algorithm.
    Signature,
    /// The token was issued for another audience.
    Audience,
    /// The token was issued by another issuer.
    Issuer,
    /// The signature is valid, and the claims make no sense.
    Claims,
}

/// An authentication or authorization error. No variant contains what was presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The request has no valid credentials.
    #[error("the request carries no valid token")]
    Unauthenticated {
        /// The reason, for the log.
        reason: RejectReason,
    },
    /// The keys of the identity provider could not be fetched.
    #[error("the keys that the token would be verified with could not be fetched")]
    NoKeys,
    /// The token does not cover the workspace.
    #[error("the token does not cover workspace {workspace}")]
    ForeignWorkspace {
        /// The requested workspace.
        workspace: WorkspaceId,
    },
    /// The token lacks a scope.
    #[error("the token lacks the scope {scope}")]
    MissingScope {
        /// The scope that is needed.
        scope: TokenScope,
    },
    /// The token covers several workspaces, and the request names none.
    #[error("the token covers several workspaces; name one in the header X-Workspace-ID")]
    WorkspaceNotChosen,
    /// A mutation with the session cookie may come from a page of another origin (cross-site request
    /// forgery).
    #[error(
        "a change with the session cookie needs the header X-Carrel-Console: 1 or an Origin of this server"
    )]
    ForeignPage,
}

impl AuthError {
    /// Returns the error for rejected credentials.
    pub const fn unauthenticated(reason: RejectReason) -> Self {
        Self::Unauthenticated { reason }
    }

    /// Returns the reason of a rejection, for the log.
    pub const fn reason(&self) -> Option<RejectReason> {
        match self {
            Self::Unauthenticated { reason } => Some(*reason),
            Self::NoKeys
            | Self::ForeignWorkspace { .. }
            | Self::MissingScope { .. }
            | Self::WorkspaceNotChosen
            | Self::ForeignPage => None,
        }
    }
}

impl Coded for AuthError {
    fn code(&self) -> Code {
        match self {
            Self::Unauthenticated { .. } => Code::Unauthenticated,
            Self::NoKeys => Code::KeysUnavailable,
            Self::ForeignWorkspace { .. } | Self::MissingScope { .. } | Self::ForeignPage => {
                Code::Forbidden
            }
            Self::WorkspaceNotChosen => Code::InvalidRequest,
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::ForeignWorkspace { workspace } => json!({ "workspace_id": workspace }),
            Self::MissingScope { scope } => json!({ "scope": scope.as_str() }),
            Self::WorkspaceNotChosen => json!({ "header": WORKSPACE_HEADER }),
            Self::Unauthenticated { .. } | Self::NoKeys | Self::ForeignPage => json!({}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_domain::ErrorEnvelope;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_client_gets_the_same_error_for_every_reason() {
        use RejectReason::{Audience, Claims, Expired, Issuer, Malformed, Missing, Signature};
        let told = |reason| ErrorEnvelope::of(&AuthError::unauthenticated(reason));
        for reason in [Malformed, Expired, Signature, Audience, Issuer, Claims] {
            assert_eq!(told(reason), told(Missing));
        }
        assert_eq!(AuthError::unauthenticated(Missing).code().status(), 401);
    }
}
