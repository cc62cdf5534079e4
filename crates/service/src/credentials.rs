//! What tasks may use and nobody may read: variables, a git token, an SSH key, who commits.
//!
//! A credential is sealed before it reaches the store, with a key that is in neither the store nor a
//! workspace. A step that names it gets it for as long as the step takes. No door hands it out.

mod content;
mod given;
mod key;
mod ssh_key;
mod vault;

pub use content::{CredentialContent, MAX_CREDENTIAL_BYTES, check_credential_name};
pub(crate) use given::StepCredentials;
pub use key::SealingKey;
pub use vault::{CredentialError, Vault};
