//! The secret that a tracker chose for its webhook.
//!
//! Asana chooses the secret when a webhook is created and sends it once, unauthenticated. It is durable before
//! the handshake is acknowledged. Any client could send one, so the first is kept and all others are
//! rejected: an attacker who is first can only cause polls, and the real webhook's creation visibly fails.

use std::path::Path;
use std::sync::{Arc, Mutex};

use carrel_domain::{Secret, sync};
use carrel_fsroot::{Collision, Durability, Error, Root, WriteOptions};
use tracing::warn;

/// The file in the conductor's directory. An operator removes it to accept another secret.
const FILE: &str = "webhook-secret";

/// The longest accepted secret in bytes, which bounds what an unauthenticated client can store.
const MAX_BYTES: usize = 512;

/// The result of storing a secret, which decides the reply to the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretReceipt {
    /// It is stored, now or from earlier.
    Accepted,
    /// Another one is stored, or this one is empty or too long.
    Rejected,
}

#[derive(Clone, Debug)]
pub(super) struct WebhookSecretStore {
    files: Arc<Root>,
    turn: Arc<Mutex<()>>,
}

impl WebhookSecretStore {
    pub(super) fn new(files: Arc<Root>) -> Self {
        Self { files, turn: Arc::default() }
    }

    pub(super) fn secret(&self) -> Option<Secret> {
        match self.files.read(Path::new(FILE), MAX_BYTES as u64) {
            Ok(bytes) => String::from_utf8(bytes).ok().map(Secret::new),
            Err(error) if error.is_not_found() => None,
            Err(error) => {
                warn!(%error, "The secret of the webhook cannot be read");
                None
            }
        }
    }

    pub(super) fn keep(&self, secret: &Secret) -> Result<SecretReceipt, Error> {
        let _turn = sync::lock(&self.turn);
        match self.secret() {
            Some(kept) if kept == *secret => Ok(SecretReceipt::Accepted),
            Some(_) => Ok(SecretReceipt::Rejected),
            None if secret.expose().is_empty() || secret.expose().len() > MAX_BYTES => {
                Ok(SecretReceipt::Rejected)
            }
            None => {
                let options = WriteOptions {
                    collision: Collision::Refuse,
                    durability: Durability::Synced,
                    new_mode: Some(0o600),
                };
                self.files.write(Path::new(FILE), secret.expose().as_bytes(), options)?;
                Ok(SecretReceipt::Accepted)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test looks at the file that was made")]
    fn the_first_secret_is_kept_for_the_owner_alone_and_no_other() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let webhook_secret =
            WebhookSecretStore::new(Arc::new(Root::open(directory.path()).unwrap()));
        assert_eq!(webhook_secret.secret(), None);
        for (told, expected) in [
            (String::new(), SecretReceipt::Rejected),
            ("x".repeat(MAX_BYTES + 1), SecretReceipt::Rejected),
            ("one".to_owned(), SecretReceipt::Accepted),
            ("one".to_owned(), SecretReceipt::Accepted),
            ("two".to_owned(), SecretReceipt::Rejected),
        ] {
            assert_eq!(webhook_secret.keep(&Secret::new(told)).unwrap(), expected);
        }
        let again = WebhookSecretStore::new(Arc::new(Root::open(directory.path()).unwrap()));
        assert_eq!(again.secret(), Some(Secret::new("one")));
        let mode = std::fs::metadata(directory.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
