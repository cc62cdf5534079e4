//! `/credentials` of a workspace. No reply carries what a credential holds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The names of a workspace's credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CredentialNames {
    /// The names, in order.
    pub names: Vec<String>,
}

/// A credential that was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoredCredential {
    /// The name of the credential.
    pub name: String,
    /// `true`.
    pub kept: bool,
}
