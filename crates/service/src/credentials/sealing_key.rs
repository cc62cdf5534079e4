//! The key that seals credentials.
//!
//! From the operator's secret three values are derived with HMAC-SHA256, one for each purpose: the
//! ChaCha20-Poly1305 key, the HMAC key of fingerprints, and eight bytes that identify the key. The
//! layout of a sealed credential is `version (1) | key id (8) | nonce (12) | ciphertext and tag`, with
//! the workspace and the name as associated data. The key id tells "sealed with another key" from
//! "changed" without opening anything, and reveals nothing about the secret.

use std::fmt;

use carrel_domain::{Secret, WorkspaceId};
use carrel_store::Sealed;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;

use super::vault::CredentialError;

/// The version of the layout.
const VERSION: u8 = 1;

const KEY_ID_BYTES: usize = 8;

/// The key that seals credentials. Never stored; its `Debug` form shows nothing.
#[derive(Clone)]
pub struct SealingKey {
    sealing: LessSafeKey,
    fingerprints: hmac::Key,
    id: [u8; KEY_ID_BYTES],
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(***)")
    }
}

impl SealingKey {
    /// Derives the key from the operator's secret.
    #[expect(clippy::missing_panics_doc, reason = "a hash is as long as a key")]
    pub fn new(secret: &Secret) -> Self {
        let root = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
        let derived = |purpose: &str| hmac::sign(&root, purpose.as_bytes());
        let sealing = UnboundKey::new(&CHACHA20_POLY1305, derived("carrel seal").as_ref());
        let sealing = LessSafeKey::new(sealing.expect("a hash is as long as a key"));
        let fingerprints = derived("carrel fingerprint");
        let fingerprints = hmac::Key::new(hmac::HMAC_SHA256, fingerprints.as_ref());
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&derived("carrel key name").as_ref()[..KEY_ID_BYTES]);
        Self { sealing, fingerprints, id }
    }

    /// Seals bytes for one name in one workspace, with a random nonce.
    pub(super) fn seal(&self, workspace: WorkspaceId, name: &str, plain: &[u8]) -> Sealed {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).expect("the kernel has random bytes");
        let mut sealed = plain.to_vec();
        let bound = Aad::from(associated_data(workspace, name));
        self.sealing
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), bound, &mut sealed)
            .expect("a credential is far shorter than what can be sealed");
        let parts: [&[u8]; 4] = [&[VERSION], &self.id, &nonce, &sealed];
        Sealed(parts.concat())
    }

    /// Opens bytes that were sealed for this name in this workspace.
    pub(super) fn open(
        &self,
        workspace: WorkspaceId,
        name: &str,
        sealed: &Sealed,
    ) -> Result<Vec<u8>, CredentialError> {
        let changed = || CredentialError::changed(workspace, name);
        let rest = self.strip_header(workspace, name, sealed)?;
        let (nonce, rest) = rest.split_at_checked(NONCE_LEN).ok_or_else(changed)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| changed())?;
        let mut bytes = rest.to_vec();
        let bound = Aad::from(associated_data(workspace, name));
        let opened = self.sealing.open_in_place(nonce, bound, &mut bytes);
        opened.map(|plain| plain.to_vec()).map_err(|_| changed())
    }

    /// Checks version and key id, and returns the bytes after them.
    pub(super) fn strip_header<'a>(
        &self,
        workspace: WorkspaceId,
        name: &str,
        sealed: &'a Sealed,
    ) -> Result<&'a [u8], CredentialError> {
        let parts = sealed.0.split_first().filter(|(version, _)| **version == VERSION);
        let parts = parts.and_then(|(_, rest)| rest.split_at_checked(KEY_ID_BYTES));
        let (id, rest) = parts.ok_or_else(|| CredentialError::changed(workspace, name))?;
        if id == self.id {
            return Ok(rest);
        }
        Err(CredentialError::OtherKey { workspace, name: name.to_owned() })
    }

    /// Returns a keyed hash of the bytes. Without the key it cannot be compared with guesses.
    pub(super) fn fingerprint(&self, bytes: &[u8]) -> Vec<u8> {
        hmac::sign(&self.fingerprints, bytes).as_ref().to_vec()
    }
}

/// The associated data of a sealed credential, which binds it to its row.
fn associated_data(workspace: WorkspaceId, name: &str) -> Vec<u8> {
    format!("carrel credential\0{workspace}\0{name}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn key(text: &str) -> SealingKey {
        SealingKey::new(&Secret::new(text.repeat(32)))
    }

    #[test]
    fn a_sealed_credential_opens_only_with_its_name_workspace_and_key() {
        let (one, two) = (WorkspaceId::generate(), WorkspaceId::generate());
        let sealed = key("k").seal(one, "deploy", b"hunter2");
        let opened = |text: &str, workspace, name| key(text).open(workspace, name, &sealed);
        assert_eq!(opened("k", one, "deploy").unwrap(), b"hunter2");
        assert!(matches!(opened("k", one, "other"), Err(CredentialError::Changed { .. })));
        assert!(matches!(opened("k", two, "deploy"), Err(CredentialError::Changed { .. })));
        assert!(matches!(opened("x", one, "deploy"), Err(CredentialError::OtherKey { .. })));
        assert!(!sealed.0.windows(7).any(|bytes| bytes == b"hunter2"));
        assert_ne!(key("k").seal(one, "deploy", b"hunter2"), sealed, "each has its own nonce");
    }

    #[test]
    fn no_byte_of_a_sealed_credential_can_be_changed_or_left_out() {
        let workspace = WorkspaceId::generate();
        let sealed = key("k").seal(workspace, "a", b"hunter2");
        for index in 0..sealed.0.len() {
            let mut changed = sealed.clone();
            changed.0[index] ^= 1;
            assert!(key("k").open(workspace, "a", &changed).is_err(), "{index}");
            let cut = Sealed(sealed.0[..index].to_vec());
            assert!(key("k").open(workspace, "a", &cut).is_err(), "{index}");
        }
    }
}
