//! Secrets that are compared and never shown.

use std::fmt;
use std::hint::black_box;

use sha2::{Digest as _, Sha256};

/// The SHA-256 digest of a secret. The secret itself is not kept.
#[derive(Clone)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Returns the digest of a secret.
    pub fn of(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// Compares in constant time: the duration reveals nothing about a common prefix.
    pub fn matches(&self, text: &[u8]) -> bool {
        let given = Self::of(text);
        let difference =
            self.0.iter().zip(given.0).fold(0, |sum, (ours, theirs)| sum | (ours ^ theirs));
        black_box(difference) == 0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_text_matches() {
        let fingerprint = Fingerprint::of(b"secret");
        assert!(fingerprint.matches(b"secret"));
        for other in [&b"secre"[..], b"secrets", b"Secret", b"", b"terces"] {
            assert!(!fingerprint.matches(other), "{other:?}");
        }
        assert_eq!(format!("{fingerprint:?}"), "***");
    }
}
