//! The HMAC key of tokens, and keys that derive from it.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The shortest secret: as long as the hash output (RFC 7518, 3.2).
pub const MIN_SECRET_BYTES: usize = 32;

pub(super) const SIGNATURE_BYTES: usize = 32;

/// An HMAC-SHA-256 key. `Debug` prints no part of it.
#[derive(Clone)]
pub(super) struct SigningKey(Hmac<Sha256>);

impl SigningKey {
    /// Creates a key from bytes of any length; the source checks the length.
    pub(super) fn new(secret: &[u8]) -> Self {
        Self(Hmac::new_from_slice(secret).expect("HMAC takes keys of any length"))
    }

    pub(super) fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.0.clone().chain_update(message).finalize().into_bytes().into()
    }

    /// Verifies a signature in constant time. A truncated one is invalid.
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        self.0.clone().chain_update(message).verify_slice(signature).is_ok()
    }

    /// Derives the key for another purpose. Signatures of one are invalid for the other.
    pub(super) fn derive(&self, purpose: &str) -> Self {
        Self::new(&self.sign(purpose.as_bytes()))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_signature_of_the_same_message_counts() {
        let key = SigningKey::new(b"secret");
        let signature = key.sign(b"message");
        assert!(key.has_signed(b"message", &signature));
        assert!(!key.has_signed(b"messag", &signature));
        assert!(!SigningKey::new(b"secreT").has_signed(b"message", &signature));
        for length in 0..SIGNATURE_BYTES {
            assert!(!key.has_signed(b"message", &signature[..length]), "{length}");
        }
        assert!(!key.has_signed(b"message", &[&signature[..], &[0]].concat()));
    }

    #[test]
    fn a_derived_key_signs_differently() {
        let key = SigningKey::new(b"secret");
        let signature = key.derive("tickets").sign(b"message");
        assert!(key.derive("tickets").has_signed(b"message", &signature));
        assert!(!key.derive("ticket").has_signed(b"message", &signature));
        assert!(!key.has_signed(b"message", &signature));
        assert_eq!(format!("{key:?}"), "SigningKey(***)");
    }
}
