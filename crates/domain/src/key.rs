//! Workspace keys: the directory name that belongs to an identifier.
//!
//! An identifier comes from a tracker or a caller and may be any text, such as `team/a-1` or `../../etc`. A key
//! is safe to use as a directory name: one component of at most 120 bytes from `[A-Za-z0-9._-]`. Every other
//! byte becomes `_`, so different identifiers can derive the same key. They must never share a directory, so
//! the root records which identifier holds a key, and a later one gets a key with a suffix from the hash of
//! its identifier:
//!
//! ```text
//! XYZ_456   ->  XYZ_456
//! XYZ/456   ->  XYZ_456--d5a392b6d232cd76     if XYZ_456 is held by the identifier above
//! ```
//!
//! The choice is stable: an identifier that holds a key keeps it, even if a better one becomes free, so a
//! workspace never changes its directory. Derivation is pure; after a crash the same identifier finds the same
//! candidates, and the record tells which one it holds.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The name of a piece of work outside Carrel: an issue identifier, a tenant id, a name.
///
/// Never empty, never `.` or `..`, at most [`Identifier::MAX_LEN`] bytes. It may
/// contain any character; only the [`WorkspaceKey`] made from it touches the disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Identifier(String);

/// A text that cannot be an identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidIdentifier {
    /// The identifier has no characters.
    #[error("the identifier is empty; give the issue's identifier, such as ABC-123")]
    Empty,
    /// The identifier is a name that means a directory itself.
    #[error("the identifier {0:?} names a directory, not a workspace; give one such as ABC-123")]
    Reserved(String),
    /// The identifier is longer than a record keeps.
    #[error("the identifier has {0} bytes; at most {max} are kept", max = Identifier::MAX_LEN)]
    TooLong(usize),
}

impl Identifier {
    /// The most bytes of an identifier. Bounds records and log lines.
    pub const MAX_LEN: usize = 4096;

    /// Validates a text that came from outside.
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidIdentifier> {
        let text = text.into();
        match text.as_str() {
            "" => Err(InvalidIdentifier::Empty),
            "." | ".." => Err(InvalidIdentifier::Reserved(text)),
            _ if text.len() > Self::MAX_LEN => Err(InvalidIdentifier::TooLong(text.len())),
            _ => Ok(Self(text)),
        }
    }

    /// Returns the identifier as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for Identifier {
    type Error = InvalidIdentifier;

    fn try_from(text: String) -> Result<Self, InvalidIdentifier> {
        Self::parse(text)
    }
}

impl From<Identifier> for String {
    fn from(identifier: Identifier) -> Self {
        identifier.0
    }
}

/// The directory name of a workspace.
///
/// Always a single path component of 1 to 120 bytes from `[A-Za-z0-9._-]`, and
/// never `.`, `..` or `.carrel`, so it can be joined to a root without further
/// checks. Two identifiers may derive the same key; the root's record then gives
/// the later one the next of its [`KeyCandidates`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkspaceKey(String);

impl WorkspaceKey {
    /// The most bytes of a key, well below the 255 bytes that file systems allow for one name.
    pub const MAX_LEN: usize = 120;
    /// The name of the server's own directory inside a root.
    pub const RESERVED: &str = ".carrel";
    const CUT_LEN: usize = 102;
    const SUFFIX_DIGITS: usize = 16;

    /// Derives the key that an identifier gets if no other identifier holds it. A key that would be too long,
    /// or equal to the reserved name, gets a suffix.
    pub fn derive(identifier: &Identifier) -> Self {
        let key = make_safe(identifier);
        if key.len() > Self::MAX_LEN || key.eq_ignore_ascii_case(Self::RESERVED) {
            return Self::with_suffix(&key, identifier, 0);
        }
        Self(key)
    }

    /// Accepts a name that already is a key, such as a directory entry of a root.
    pub fn from_name(name: &str) -> Option<Self> {
        let fits = (1..=Self::MAX_LEN).contains(&name.len()) && name.bytes().all(is_safe);
        let reserved = matches!(name, "." | "..") || name.eq_ignore_ascii_case(Self::RESERVED);
        (fits && !reserved).then(|| Self(name.to_owned()))
    }

    /// Returns the key as a directory name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn with_suffix(safe: &str, identifier: &Identifier, round: u32) -> Self {
        let mut hash = Sha256::new_with_prefix(identifier.as_str());
        if round > 0 {
            hash.update([0]);
            hash.update(round.to_be_bytes());
        }
        let mut key = safe[..safe.len().min(Self::CUT_LEN)].to_owned();
        key.push_str("--");
        key.push_str(&crate::hex::encode(&hash.finalize()[..Self::SUFFIX_DIGITS / 2]));
        Self(key)
    }
}

/// Replaces every byte that is not allowed in a key with `_`.
fn make_safe(identifier: &Identifier) -> String {
    identifier.as_str().bytes().map(|b| if is_safe(b) { char::from(b) } else { '_' }).collect()
}

fn is_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

impl fmt::Display for WorkspaceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for WorkspaceKey {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::from_name(&name).ok_or_else(|| format!("not a workspace key: {name:?}"))
    }
}

impl From<WorkspaceKey> for String {
    fn from(key: WorkspaceKey) -> Self {
        key.0
    }
}

/// The keys that an identifier may hold, best first: the derived one, then suffixed ones.
///
/// A short list is enough: each further key is needed only if another identifier was made up to equal a
/// 64-bit hash.
#[derive(Clone, Debug)]
pub struct KeyCandidates(Vec<WorkspaceKey>);

impl KeyCandidates {
    const SUFFIXES: u32 = 4;

    /// Returns the candidates of an identifier.
    pub fn of(identifier: &Identifier) -> Self {
        let mut keys = vec![WorkspaceKey::derive(identifier)];
        let safe = make_safe(identifier);
        keys.extend((0..Self::SUFFIXES).map(|n| WorkspaceKey::with_suffix(&safe, identifier, n)));
        keys.dedup();
        Self(keys)
    }

    /// Chooses the key of the identifier, given the current holder of each key. `None` if all are held by
    /// other identifiers.
    ///
    /// A key that the identifier holds already is chosen even if a better one is free, so a workspace never
    /// changes its directory.
    pub fn choose<E>(
        &self,
        identifier: &Identifier,
        mut holder: impl FnMut(&WorkspaceKey) -> Result<Option<Identifier>, E>,
    ) -> Result<Option<KeyChoice>, E> {
        let mut free = None;
        for key in &self.0 {
            match holder(key)? {
                Some(held) if held == *identifier => return Ok(Some(KeyChoice::Held(key.clone()))),
                Some(_) => {}
                None => {
                    free.get_or_insert_with(|| key.clone());
                }
            }
        }
        Ok(free.map(KeyChoice::Free))
    }

    /// Iterates over the keys, best first.
    pub fn iter(&self) -> impl Iterator<Item = &WorkspaceKey> {
        self.0.iter()
    }
}

/// The key that an identifier gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyChoice {
    /// The identifier holds this key already.
    Held(WorkspaceKey),
    /// No identifier holds this key.
    Free(WorkspaceKey),
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use std::collections::{HashMap, HashSet};
    use std::convert::Infallible;

    fn identifier(text: &str) -> Identifier {
        Identifier::parse(text).unwrap()
    }

    fn keys(text: &str) -> Vec<String> {
        KeyCandidates::of(&identifier(text)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn item_026_and_027_keys_follow_the_table() {
        let long = "a".repeat(300);
        let edge = format!("{}/", "x".repeat(237));
        let table = [
            ("ABC-123", "ABC-123"),
            ("XYZ_456", "XYZ_456"),
            ("XYZ/456", "XYZ_456"),
            ("team/a-1", "team_a-1"),
            ("MT/Det", "MT_Det"),
            ("../../../etc", ".._.._.._etc"),
            ("/etc/passwd", "_etc_passwd"),
            ("a b", "a_b"),
            ("été-1", "__t__-1"),
            ("日本-1", "______-1"),
            ("🚀-1", "____-1"),
            ("nul\0x", "nul_x"),
            ("a\nb", "a_b"),
            ("~", "_"),
            ("...", "..."),
            (".git", ".git"),
            ("-rf", "-rf"),
            ("con", "con"),
        ];
        for (text, key) in table {
            assert_eq!(WorkspaceKey::derive(&identifier(text)).as_str(), key, "{text:?}");
        }
        for text in [long.as_str(), edge.as_str()] {
            let key = WorkspaceKey::derive(&identifier(text));
            assert_eq!(key.as_str().len(), 120, "{text}");
            assert_eq!(&key.as_str()[..102], &text[..102]);
            assert_eq!(&key.as_str()[102..104], "--");
        }
    }

    #[test]
    fn item_026_a_taken_key_is_followed_by_the_hash_of_the_identifier() {
        for (text, suffixed) in [
            ("XYZ/456", "XYZ_456--d5a392b6d232cd76"),
            ("team/a-1", "team_a-1--7c03d5a56ca4204b"),
            ("MT/Det", "MT_Det--b45ad8f201f2d40b"),
            ("../../../etc", ".._.._.._etc--1a6fbe82b1a4edbb"),
            ("/etc/passwd", "_etc_passwd--74acf31844532670"),
            ("a b", "a_b--c8687a08aa5d6ed2"),
            ("été-1", "__t__-1--2df59732423849e5"),
            ("日本-1", "______-1--aa8551ef86d1a036"),
            ("🚀-1", "____-1--3369026a6ef58459"),
            ("nul\0x", "nul_x--7196806be1e8718c"),
            ("a\nb", "a_b--7e18f737311b2dc3"),
            ("~", "_--7ace431cb61584cb"),
        ] {
            assert_eq!(keys(text)[1], suffixed, "{text:?}");
        }
    }

    #[test]
    fn the_servers_own_directory_is_never_a_key() {
        for text in [".carrel", ".Carrel", ".CARREL"] {
            let keys = keys(text);
            assert!(keys.iter().all(|key| key.contains("--")), "{keys:?}");
            assert!(WorkspaceKey::from_name(text).is_none());
        }
    }

    #[test]
    fn names_of_directories_and_the_empty_name_are_refused() {
        assert_eq!(Identifier::parse(""), Err(InvalidIdentifier::Empty));
        assert_eq!(Identifier::parse("."), Err(InvalidIdentifier::Reserved(".".into())));
        assert_eq!(Identifier::parse(".."), Err(InvalidIdentifier::Reserved("..".into())));
        assert_eq!(Identifier::parse("x".repeat(4097)), Err(InvalidIdentifier::TooLong(4097)));
    }

    #[test]
    fn every_candidate_of_an_identifier_differs() {
        let long = "a/".repeat(200);
        for text in ["XYZ/456", ".carrel", long.as_str()] {
            let mut keys = keys(text);
            let all = keys.len();
            keys.sort();
            keys.dedup();
            assert_eq!(keys.len(), all);
            assert!(all >= 4);
        }
    }

    #[test]
    fn a_made_up_suffix_does_not_lead_two_identifiers_into_one_directory() {
        let mut taken = HashMap::new();
        let order = ["XYZ_456", "XYZ_456--d5a392b6d232cd76", "XYZ/456", "XYZ 456"];
        let keys: HashSet<_> = order.iter().map(|text| take(&mut taken, text)).collect();
        assert_eq!(keys.len(), order.len());
    }

    #[test]
    fn an_identifier_keeps_its_key_when_a_better_one_becomes_free() {
        let mut taken = HashMap::new();
        let first = take(&mut taken, "XYZ_456");
        let second = take(&mut taken, "XYZ/456");
        taken.remove(&first);
        assert_eq!(take(&mut taken, "XYZ/456"), second);
    }

    fn take(taken: &mut HashMap<WorkspaceKey, Identifier>, text: &str) -> WorkspaceKey {
        let identifier = identifier(text);
        let holder = |key: &WorkspaceKey| Ok::<_, Infallible>(taken.get(key).cloned());
        match KeyCandidates::of(&identifier).choose(&identifier, holder).unwrap() {
            Some(KeyChoice::Held(key)) => key,
            Some(KeyChoice::Free(key)) => {
                assert_eq!(taken.insert(key.clone(), identifier), None);
                key
            }
            None => panic!("no key left for {text:?}"),
        }
    }

    /// Mostly short texts over few characters, so that many derive the same key.
    fn random_identifier(random: &mut fastrand::Rng) -> String {
        const ALPHABET: [&str; 16] =
            ["a", "B", "1", "/", "..", ".", "_", "-", " ", "\0", "\n", "é", "入", "\\", "--", "~"];
        let length = if random.u8(..50) == 0 { 200 } else { 6 };
        (0..random.usize(..=length)).map(|_| ALPHABET[random.usize(..16)]).collect()
    }

    #[test]
    fn random_identifiers_never_escape_collide_or_grow_too_long() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut taken = HashMap::new();
        let mut refused = 0;
        for _ in 0..100_000 {
            let text = random_identifier(&mut random);
            if Identifier::parse(text.as_str()).is_err() {
                assert!(matches!(text.as_str(), "" | "." | ".."), "{text:?}");
                refused += 1;
                continue;
            }
            let key = take(&mut taken, &text);
            assert_eq!(WorkspaceKey::from_name(key.as_str()), Some(key.clone()));
            assert!(key.as_str().len() <= 120, "{key}");
            assert_eq!(taken[&key].as_str(), text);
        }
        assert!(refused < 50_000 && taken.len() > 20_000, "{refused} {}", taken.len());
    }
}
