//! Which workspaces may use the operator's sources, and for whose repositories.

use std::str::FromStr;

use carrel_domain::WorkspaceId;

/// Stands for every workspace, or for every owner.
const ALL: &str = "*";

/// An entry that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} is no entry; one is WORKSPACE=OWNER, and `*` stands for all of them")]
pub struct InvalidGrant {
    entry: String,
}

/// Which workspaces may use the operator's sources, and for whose repositories. Empty for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// Every workspace if none.
    workspace: Option<WorkspaceId>,
    /// Every owner if none; in small letters.
    owner: Option<String>,
}

impl Grants {
    fn of(&self, workspace: WorkspaceId) -> impl Iterator<Item = &Entry> {
        let covers = move |entry: &&Entry| entry.workspace.is_none_or(|named| named == workspace);
        self.entries.iter().filter(covers)
    }

    /// Tells whether a workspace may see whatever the operator can.
    pub fn everything(&self, workspace: WorkspaceId) -> bool {
        self.of(workspace).any(|entry| entry.owner.is_none())
    }

    /// Tells whether a workspace may see what an owner has.
    pub fn allow(&self, workspace: WorkspaceId, owner: &str) -> bool {
        let owner = owner.to_ascii_lowercase();
        self.of(workspace).any(|entry| entry.owner.as_ref().is_none_or(|named| *named == owner))
    }

    /// Returns the owners that are named for a workspace.
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

/// Tells whether this can be the name of a user or an organization, which stands in paths as it is.
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
    fn nobody_may_anything_that_is_not_said() {
        let (a, b) = (A.parse().unwrap(), B.parse().unwrap());
        let grants: Grants = format!("{A}=Acme, {A}=beta,*=shared").parse().unwrap();
        assert_eq!(grants.owners(a), ["acme", "beta", "shared"]);
        assert_eq!(grants.owners(b), ["shared"]);
        assert!(grants.allow(a, "ACME") && !grants.allow(b, "acme") && grants.allow(b, "shared"));
        assert!(!grants.everything(a) && !grants.allow(a, "acm") && !grants.allow(a, "acme2"));
        let all: Grants = format!("{A}=*").parse().unwrap();
        assert!(
            all.everything(a) && all.allow(a, "any") && !all.everything(b) && !all.allow(b, "any")
        );
        assert!(!Grants::default().allow(a, "acme"));
        for text in ["acme", "x=acme", "*=", "=acme", "*=a/b", "*=a?b", "*=.."] {
            assert!(text.parse::<Grants>().is_err(), "{text}");
        }
    }
}
