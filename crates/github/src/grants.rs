//! Access of workspaces to the operator's token sources (`CARREL_GITHUB_ALLOW`).
//!
//! The operator's app or token can usually see more than any workspace should. A grant is `WORKSPACE=OWNER`;
//! `*` on either side stands for all. Without a grant a workspace gets nothing.

use std::str::FromStr;

use carrel_domain::WorkspaceId;

const ALL: &str = "*";

/// An entry that is not `WORKSPACE=OWNER`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} is not WORKSPACE=OWNER, with `*` for all")]
pub struct InvalidGrant {
    entry: String,
}

/// The owners whose repositories each workspace may see with the operator's tokens. Empty grants nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// All workspaces if `None`.
    workspace: Option<WorkspaceId>,
    /// All owners if `None`; in lower case.
    owner: Option<String>,
}

impl Grants {
    fn of(&self, workspace: WorkspaceId) -> impl Iterator<Item = &Entry> {
        let covers = move |entry: &&Entry| entry.workspace.is_none_or(|named| named == workspace);
        self.entries.iter().filter(covers)
    }

    /// Returns `true` if a workspace may see all that the operator's token can.
    pub fn allow_all(&self, workspace: WorkspaceId) -> bool {
        self.of(workspace).any(|entry| entry.owner.is_none())
    }

    /// Returns `true` if a workspace may see the repositories of an owner. Owners are compared without case.
    pub fn allow(&self, workspace: WorkspaceId, owner: &str) -> bool {
        let owner = owner.to_ascii_lowercase();
        self.of(workspace).any(|entry| entry.owner.as_ref().is_none_or(|named| *named == owner))
    }

    /// Returns the owners that grants name for a workspace, sorted, in lower case.
    pub fn owners(&self, workspace: WorkspaceId) -> Vec<String> {
        let mut owners: Vec<_> =
            self.of(workspace).filter_map(|entry| entry.owner.clone()).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }
}

impl FromStr for Grants {
    type Err = InvalidGrant;

    fn from_str(text: &str) -> Result<Self, InvalidGrant> {
        let words = text.split([',', ' ', '\n']).map(str::trim).filter(|word| !word.is_empty());
        let entries = words.map(|word| {
            let invalid = || InvalidGrant { entry: word.chars().take(80).collect() };
            let (workspace, owner) = word.split_once('=').ok_or_else(invalid)?;
            let workspace = match workspace {
                ALL => None,
                id => Some(id.parse().map_err(|_| invalid())?),
            };
            let owner = match owner {
                ALL => None,
                name if is_owner(name) => Some(name.to_ascii_lowercase()),
                _ => return Err(invalid()),
            };
            Ok(Entry { workspace, owner })
        });
        Ok(Self { entries: entries.collect::<Result<_, _>>()? })
    }
}

/// Returns `true` for the name of a GitHub user or organization. Such a name needs no encoding in a path.
pub(crate) fn is_owner(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=100).contains(&name.len()) && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    const A: &str = "0198c0de-7a11-7000-8000-00000000000a";
    const B: &str = "0198c0de-7a11-7000-8000-00000000000b";

    #[test]
    fn without_a_grant_nothing_is_allowed() {
        let (a, b) = (A.parse().unwrap(), B.parse().unwrap());
        let grants: Grants = format!("{A}=Acme, {A}=beta,*=shared").parse().unwrap();
        assert_eq!(grants.owners(a), ["acme", "beta", "shared"]);
        assert_eq!(grants.owners(b), ["shared"]);
        assert!(grants.allow(a, "ACME") && !grants.allow(b, "acme") && grants.allow(b, "shared"));
        assert!(!grants.allow_all(a) && !grants.allow(a, "acm") && !grants.allow(a, "acme2"));
        let all: Grants = format!("{A}=*").parse().unwrap();
        assert!(
            all.allow_all(a) && all.allow(a, "any") && !all.allow_all(b) && !all.allow(b, "any")
        );
        assert!(!Grants::default().allow(a, "acme"));
        for text in ["acme", "x=acme", "*=", "=acme", "*=a/b", "*=a?b", "*=.."] {
            assert!(text.parse::<Grants>().is_err(), "{text}");
        }
    }
}
