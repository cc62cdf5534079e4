//! Why a request is turned away.

use carrel_domain::{Code, Coded, TokenScope, WorkspaceId};
use serde_json::{Value, json};

/// The header in which a request names its workspace.
pub const WORKSPACE_HEADER: &str = "x-workspace-id";

/// Why credentials were not believed. It is for the log; a client is told nothing of it, so that
/// nobody learns by trying how far a forgery got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectReason {
    /// There were none.
    Missing,
    /// They are not in a form that is read here.
    Malformed,
    /// They were good once.
    Expired,
    /// They are not signed, or not by a key and algorithm of this server.
    Signature,
    /// They are meant for somebody else.
    Audience,
    /// They come from somebody else.
    Issuer,
    /// They are genuine and say something that cannot be.
    Claims,
}

impl RejectReason {
    /// Returns the word for it in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::Expired => "expired",
            Self::Signature => "signature",
            Self::Audience => "audience",
            Self::Issuer => "issuer",
            Self::Claims => "claims",
        }
    }
}

/// Why a request is turned away. No variant repeats what was presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Nobody knows who asks.
    #[error("the request carries no valid token")]
    Unauthenticated {
        /// Why, for the log.
        reason: RejectReason,
    },
    /// Nobody can be told from anybody, as the keys of the provider are not there.
    #[error("the keys that the token would be verified with could not be fetched")]
    NoKeys,
    /// The caller has nothing to do with the workspace.
    #[error("the token does not cover workspace {workspace}")]
    ForeignWorkspace {
        /// The workspace that was asked for.
        workspace: WorkspaceId,
    },
    /// The caller may not do this kind of work.
    #[error("the token lacks the scope {scope}")]
    MissingScope {
        /// What would be needed.
        scope: TokenScope,
    },
    /// The caller covers several workspaces and names none.
    #[error("the token covers several workspaces; name one in the header X-Workspace-ID")]
    WorkspaceNotChosen,
    /// A page of another origin may have sent the request with the cookie of this one.
    #[error(
        "a change with the session cookie needs the header X-Carrel-Console: 1 or an Origin of this server"
    )]
    ForeignPage,
}

impl AuthError {
    /// Returns the error for credentials that are not believed.
    pub const fn unauthenticated(reason: RejectReason) -> Self {
        Self::Unauthenticated { reason }
    }

    /// Returns why the credentials were not believed, for the log.
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
    fn a_client_is_told_the_same_whatever_was_wrong_with_its_token() {
        use RejectReason::{Audience, Claims, Expired, Issuer, Malformed, Missing, Signature};
        let told = |reason| ErrorEnvelope::of(&AuthError::unauthenticated(reason));
        for reason in [Malformed, Expired, Signature, Audience, Issuer, Claims] {
            assert_eq!(told(reason), told(Missing));
        }
        assert_eq!(AuthError::unauthenticated(Missing).code().status(), 401);
    }
}
