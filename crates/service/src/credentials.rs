//! Credentials of workspaces: variables, a git token, an SSH key, an author for commits.
//!
//! A credential is sealed (ChaCha20-Poly1305) before it reaches the store. The key is derived from the
//! operator's `CARREL_CREDENTIAL_KEY` and is in neither the store nor a workspace, so that a copy of
//! either reveals nothing. The workspace and the name are authenticated with the ciphertext: a row that
//! is copied to another name or workspace does not open. A step that names a credential gets it for as
//! long as the step runs; its values are masked in all output of the task. No interface returns a
//! credential once it is stored: it can only be replaced, listed by name, or deleted.

mod content;
mod sealing_key;
mod ssh_key;
mod step_credentials;
mod vault;

pub use content::{CredentialContent, MAX_CREDENTIAL_BYTES, check_credential_name};
pub use sealing_key::SealingKey;
pub(crate) use step_credentials::StepCredentials;
pub use vault::{CredentialError, Vault};
