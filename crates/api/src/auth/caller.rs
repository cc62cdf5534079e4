//! The caller of a request, and its authorization.
//!
//! Two independent limits hold. The scopes say which kinds of work are allowed, and `admin` includes all of
//! them. The coverage says in which workspaces, and no scope extends it: an `admin` of one workspace cannot
//! see another. Both must allow an operation.

use std::collections::BTreeSet;

use carrel_domain::{MAX_FORKS, Network, Timestamp, TokenScope, TokenScopes, WorkspaceId, hex};
use sha2::{Digest as _, Sha256};

use super::error::AuthError;

/// The workspaces that a caller may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// All workspaces, also future ones.
    All,
    /// These workspaces.
    Only(BTreeSet<WorkspaceId>),
}

impl Coverage {
    /// Returns the coverage of a single workspace.
    pub fn one(workspace: WorkspaceId) -> Self {
        Self::Only(BTreeSet::from([workspace]))
    }

    /// Returns `true` if the caller may use a workspace: one that is named, or a fork of one.
    pub fn covers(&self, workspace: WorkspaceId) -> bool {
        match self {
            Self::All => true,
            Self::Only(covered) => {
                let is_fork = |base: &WorkspaceId| {
                    (1..=MAX_FORKS).any(|number| base.fork(number) == workspace)
                };
                covered.contains(&workspace) || covered.iter().any(is_fork)
            }
        }
    }

    /// Returns `true` if the credentials name a workspace, which is then created by its first use.
    pub fn names(&self, workspace: WorkspaceId) -> bool {
        match self {
            Self::All => false,
            Self::Only(covered) => covered.contains(&workspace),
        }
    }

    fn only(&self) -> Option<WorkspaceId> {
        match self {
            Self::Only(covered) if covered.len() == 1 => covered.first().copied(),
            Self::All | Self::Only(_) => None,
        }
    }
}

/// Bytes of the identity's hash: enough that callers do not collide.
const IDENTITY_BYTES: usize = 16;

/// A caller whose credentials were verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The subject of the token, for logs. It grants nothing.
    pub subject: Option<String>,
    /// The workspaces that the caller may use.
    pub coverage: Coverage,
    /// The kinds of work that the caller may do there.
    pub scopes: TokenScopes,
    /// The end of the credentials. Open streams end with them.
    pub expires_at: Timestamp,
}

impl Caller {
    /// Checks that the caller may do this kind of work in a workspace.
    pub fn check(&self, scope: TokenScope, workspace: WorkspaceId) -> Result<(), AuthError> {
        self.check_workspace(workspace)?;
        self.check_scope(scope)
    }

    /// Checks that the caller has a scope, for routes that concern no workspace.
    pub fn check_scope(&self, scope: TokenScope) -> Result<(), AuthError> {
        if self.scopes.allow(scope) { Ok(()) } else { Err(AuthError::MissingScope { scope }) }
    }

    /// Returns the most network that the scopes allow commands: none without `net`, else as much as others do.
    pub fn network_cap(&self) -> Option<Network> {
        (!self.scopes.allow(TokenScope::Net)).then_some(Network::None)
    }

    /// Returns an identity of subject and coverage. It is the same for a renewed token.
    pub(crate) fn identity(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(serde_json::json!(self.subject).to_string());
        match &self.coverage {
            Coverage::All => hash.update("all"),
            Coverage::Only(ids) => ids.iter().for_each(|id| hash.update(id.to_string())),
        }
        hex::encode(&hash.finalize()[..IDENTITY_BYTES])
    }

    /// Returns the owner of the caller's sessions and jobs: its identity if the token has a subject, which a
    /// renewed token has too. Tokens without a subject are each an owner of their own, since nothing says
    /// that they belong together.
    pub(crate) fn session_owner(&self) -> String {
        let identity = self.identity();
        if self.subject.is_some() {
            return identity;
        }
        let scopes: Vec<_> = self.scopes.iter().map(TokenScope::as_str).collect();
        format!("{identity} {} {}", scopes.join(","), self.expires_at.as_millis())
    }

    /// Returns the workspace of a request: the one that it names if the caller covers it, or the only covered
    /// one.
    ///
    /// A request that names none is never given one of several by chance.
    pub fn workspace(&self, asked: Option<WorkspaceId>) -> Result<WorkspaceId, AuthError> {
        match asked {
            Some(workspace) => self.check_workspace(workspace).map(|()| workspace),
            None => self.coverage.only().ok_or(AuthError::WorkspaceNotChosen),
        }
    }

    fn check_workspace(&self, workspace: WorkspaceId) -> Result<(), AuthError> {
        if self.coverage.covers(workspace) {
            Ok(())
        } else {
            Err(AuthError::ForeignWorkspace { workspace })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_domain::{Code, Coded as _};
    use pretty_assertions::assert_eq;

    fn workspace(last: u8) -> WorkspaceId {
        let mut bytes = [0; 16];
        bytes[15] = last;
        WorkspaceId::from_bytes(bytes)
    }

    fn caller(coverage: Coverage, scopes: &[TokenScope]) -> Caller {
        let expires_at = Timestamp::from_millis(0);
        Caller { subject: None, coverage, scopes: TokenScopes::of(scopes), expires_at }
    }

    #[test]
    fn a_foreign_workspace_is_refused_by_name_even_to_an_admin() {
        let caller = caller(Coverage::one(workspace(1)), &[TokenScope::Admin]);
        assert_eq!(caller.check(TokenScope::Net, workspace(1)), Ok(()));
        let error = caller.check(TokenScope::Read, workspace(2)).unwrap_err();
        assert_eq!(error, AuthError::ForeignWorkspace { workspace: workspace(2) });
        assert_eq!(error.code(), Code::Forbidden);
        assert!(error.to_string().contains(&workspace(2).to_string()));
    }

    #[test]
    fn a_missing_scope_is_refused_by_name() {
        let caller = caller(Coverage::All, &[TokenScope::Read]);
        assert_eq!(caller.check(TokenScope::Read, workspace(9)), Ok(()));
        let error = caller.check(TokenScope::Exec, workspace(9)).unwrap_err();
        assert_eq!(
            (error.code(), error),
            (Code::Forbidden, AuthError::MissingScope { scope: TokenScope::Exec })
        );
        assert_eq!(error.to_string(), "the token lacks the scope exec");
    }

    #[test]
    fn the_workspace_of_a_request_is_the_requested_one() {
        let one = caller(Coverage::one(workspace(1)), &[]);
        assert_eq!(one.workspace(None), Ok(workspace(1)));
        assert_eq!(one.workspace(Some(workspace(1))), Ok(workspace(1)));
        assert_eq!(
            one.workspace(Some(workspace(2))),
            Err(AuthError::ForeignWorkspace { workspace: workspace(2) })
        );
    }

    #[test]
    fn a_renewed_token_has_the_same_owner_if_it_has_a_subject() {
        let caller = |subject: Option<&str>, expires_at| Caller {
            subject: subject.map(str::to_owned),
            expires_at: Timestamp::from_millis(expires_at),
            ..caller(Coverage::one(workspace(1)), &[])
        };
        let owner = |subject, expires_at| caller(subject, expires_at).session_owner();
        assert_eq!(owner(Some("a"), 1), owner(Some("a"), 2));
        assert_ne!(owner(Some("a"), 1), owner(Some("b"), 1));
        assert_eq!(owner(None, 1), owner(None, 1));
        assert_ne!(owner(None, 1), owner(None, 2));
        assert_ne!(owner(None, 1), owner(Some("a"), 1));
        let reads = Caller { scopes: TokenScopes::of(&[TokenScope::Read]), ..caller(None, 1) };
        assert_ne!(owner(None, 1), reads.session_owner());
        let wide = Caller { coverage: Coverage::All, ..caller(Some("a"), 1) };
        assert_ne!(owner(Some("a"), 1), wide.session_owner());
    }

    #[test]
    fn several_covered_workspaces_need_a_choice() {
        let two = Coverage::Only([workspace(1), workspace(2)].into());
        for coverage in [two, Coverage::All, Coverage::Only(BTreeSet::new())] {
            let error = caller(coverage, &[]).workspace(None).unwrap_err();
            assert_eq!(error.code(), Code::InvalidRequest);
            assert!(error.to_string().contains("X-Workspace-ID"), "{error}");
        }
        assert_eq!(caller(Coverage::All, &[]).workspace(Some(workspace(7))), Ok(workspace(7)));
    }
}
