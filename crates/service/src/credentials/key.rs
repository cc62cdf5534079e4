//! The key that seals credentials.

use std::fmt;

use carrel_domain::{Secret, WorkspaceId};
use carrel_store::Sealed;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;

/// The first byte of what is sealed like this.
const VERSION: u8 = 1;

/// Bytes that tell keys apart, without telling anything about them.
const KEY_NAME_BYTES: usize = 8;

/// The key that seals credentials. It is never stored with them.
#[derive(Clone)]
pub struct SealingKey {
    sealing: LessSafeKey,
    fingerprints: hmac::Key,
    name: [u8; KEY_NAME_BYTES],
}

/// Why something sealed stays so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unopened {
    /// It was sealed with another key.
    OtherKey,
    /// It was changed, or belongs to another name or workspace.
    Changed,
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(***)")
    }
}

impl SealingKey {
    /// Makes the key that a secret text stands for.
    #[expect(clippy::missing_panics_doc, reason = "a hash is as long as a key")]
    pub fn new(secret: &Secret) -> Self {
        let root = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
        let derived = |purpose: &str| hmac::sign(&root, purpose.as_bytes());
        let sealing = UnboundKey::new(&CHACHA20_POLY1305, derived("carrel seal").as_ref());
        let sealing = LessSafeKey::new(sealing.expect("a hash is as long as a key"));
        let fingerprints = derived("carrel fingerprint");
        let fingerprints = hmac::Key::new(hmac::HMAC_SHA256, fingerprints.as_ref());
        let mut name = [0; KEY_NAME_BYTES];
        name.copy_from_slice(&derived("carrel key name").as_ref()[..KEY_NAME_BYTES]);
        Self { sealing, fingerprints, name }
    }

    /// Seals bytes for one name in one workspace.
    pub(super) fn seal(&self, workspace: WorkspaceId, name: &str, plain: &[u8]) -> Sealed {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).expect("the kernel has random bytes");
        let mut sealed = plain.to_vec();
        let bound = Aad::from(bound_to(workspace, name));
        self.sealing
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), bound, &mut sealed)
            .expect("a credential is far shorter than what can be sealed");
        let parts: [&[u8]; 4] = [&[VERSION], &self.name, &nonce, &sealed];
        Sealed(parts.concat())
    }

    /// Opens what was sealed for this name in this workspace.
    pub(super) fn open(
        &self,
        workspace: WorkspaceId,
        name: &str,
        sealed: &Sealed,
    ) -> Result<Vec<u8>, Unopened> {
        let rest = self.of_this_key(sealed)?;
        let (nonce, rest) = rest.split_at_checked(NONCE_LEN).ok_or(Unopened::Changed)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Unopened::Changed)?;
        let (mut bytes, bound) = (rest.to_vec(), Aad::from(bound_to(workspace, name)));
        let opened = self.sealing.open_in_place(nonce, bound, &mut bytes);
        opened.map(|plain| plain.to_vec()).map_err(|_| Unopened::Changed)
    }

    /// Returns what stands behind the name of this key.
    pub(super) fn of_this_key<'a>(&self, sealed: &'a Sealed) -> Result<&'a [u8], Unopened> {
        let (version, rest) = sealed.0.split_first().ok_or(Unopened::Changed)?;
        let (name, rest) = rest.split_at_checked(KEY_NAME_BYTES).ok_or(Unopened::Changed)?;
        match () {
            () if *version != VERSION => Err(Unopened::Changed),
            () if name != self.name => Err(Unopened::OtherKey),
            () => Ok(rest),
        }
    }

    /// Returns what stands for bytes without being a hash that others could try guesses against.
    pub(super) fn fingerprint(&self, bytes: &[u8]) -> Vec<u8> {
        hmac::sign(&self.fingerprints, bytes).as_ref().to_vec()
    }
}

/// What is sealed along, so that no row can stand in for another.
fn bound_to(workspace: WorkspaceId, name: &str) -> Vec<u8> {
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
    fn what_is_sealed_opens_for_its_name_and_key_alone() {
        let (one, two) = (WorkspaceId::generate(), WorkspaceId::generate());
        let sealed = key("k").seal(one, "deploy", b"hunter2");
        assert_eq!(key("k").open(one, "deploy", &sealed), Ok(b"hunter2".to_vec()));
        assert_eq!(key("k").open(one, "other", &sealed), Err(Unopened::Changed));
        assert_eq!(key("k").open(two, "deploy", &sealed), Err(Unopened::Changed));
        assert_eq!(key("x").open(one, "deploy", &sealed), Err(Unopened::OtherKey));
        assert!(!sealed.0.windows(7).any(|bytes| bytes == b"hunter2"));
        assert_ne!(key("k").seal(one, "deploy", b"hunter2"), sealed, "each has its own nonce");
    }

    #[test]
    fn no_byte_of_it_can_be_changed_or_left_out() {
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
