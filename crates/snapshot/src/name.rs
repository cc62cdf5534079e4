//! Names of snapshots.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The most bytes of a name.
const MAX_LENGTH: usize = 100;

/// The name that a caller gave to a snapshot.
///
/// It begins with a letter, a digit or `_`, and goes on with those, `.` and `-`: so it is never taken for an option,
/// a path or a [`SnapshotId`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SnapshotName(String);

/// Why a text is not the name of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It is empty.
    #[error("name is required")]
    Empty,
    /// It contains another character, or begins with `.` or `-`.
    #[error(
        "invalid snapshot name {0:?}: must match [A-Za-z0-9_][A-Za-z0-9_.-]*, such as before-rename"
    )]
    Character(String),
    /// It is too long.
    #[error("invalid snapshot name: {0} bytes are more than {MAX_LENGTH}; use a shorter one")]
    TooLong(usize),
}

impl SnapshotName {
    /// Checks a name.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidName> {
        let name = name.into();
        let first = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let other = |byte: u8| first(byte) || matches!(byte, b'.' | b'-');
        match name.as_bytes() {
            [] => Err(InvalidName::Empty),
            bytes if bytes.len() > MAX_LENGTH => Err(InvalidName::TooLong(bytes.len())),
            [start, rest @ ..] if first(*start) && rest.iter().all(|byte| other(*byte)) => {
                Ok(Self(name))
            }
            _ => Err(InvalidName::Character(name)),
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for SnapshotName {
    type Error = InvalidName;

    fn try_from(name: String) -> Result<Self, InvalidName> {
        Self::new(name)
    }
}

impl From<SnapshotName> for String {
    fn from(name: SnapshotName) -> Self {
        name.0
    }
}

/// The number of a snapshot in its store, written `@12`. Numbers grow and are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SnapshotId(pub(crate) u64);

impl SnapshotId {
    /// Reads an id from its text, such as `@12`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('@')?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?.map(Self)
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("@{}", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule_that_the_error_states() {
        for name in ["a", "_", "9", "a..b", "x.lock", "before-rename", "A_1.2-3"] {
            assert_eq!(SnapshotName::new(name).unwrap().as_str(), name);
        }
        for name in ["-a", ".a", "a b", "a/b", "@1", "ä", "a\n", "..", "a\0"] {
            assert_eq!(SnapshotName::new(name), Err(InvalidName::Character(name.to_owned())));
        }
        assert_eq!(SnapshotName::new("").unwrap_err().to_string(), "name is required");
        assert_eq!(SnapshotName::new("a".repeat(101)), Err(InvalidName::TooLong(101)));
        assert!(SnapshotName::new("a".repeat(100)).is_ok());
    }

    #[test]
    fn an_id_is_written_and_read() {
        assert_eq!(SnapshotId::parse("@12"), Some(SnapshotId(12)));
        assert_eq!(SnapshotId(12).to_string(), "@12");
        for text in ["12", "@", "@-1", "@+1", "@1x", "@99999999999999999999"] {
            assert_eq!(SnapshotId::parse(text), None, "{text}");
        }
    }
}
