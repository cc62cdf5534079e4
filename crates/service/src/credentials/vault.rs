//! The vault: stores credentials sealed, and unseals them for steps.

use std::sync::Arc;

use carrel_domain::{Code, Coded, Secret, Timestamp, WorkspaceId};
use carrel_git::CredentialSource as _;
use carrel_store::{Store, StoreError};

use super::content::{CredentialContent, MAX_CREDENTIAL_BYTES};
use super::sealing_key::SealingKey;
use super::step_credentials::StepCredentials;

/// The most credentials of one workspace.
const MAX_CREDENTIALS: usize = 100;

/// Workspaces of one read of the store.
const PAGE: u32 = 100;

/// The sealed credentials of all workspaces. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Vault {
    store: Arc<dyn Store>,
    key: Arc<SealingKey>,
}

/// A credential that cannot be stored or used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// The workspace has no credential of this name.
    #[error("workspace {workspace} has no credential {name:?}")]
    Unknown {
        /// The workspace.
        workspace: WorkspaceId,
        /// The name.
        name: String,
    },
    /// The credential was sealed with another key.
    #[error(
        "credential {name:?} of workspace {workspace} was sealed with another key; use that key, or store \
         the credential again"
    )]
    OtherKey {
        /// The workspace.
        workspace: WorkspaceId,
        /// The name.
        name: String,
    },
    /// The stored bytes differ from the sealed ones, or belong to another name or workspace.
    #[error("credential {name:?} of workspace {workspace} was changed; store it again")]
    Changed {
        /// The workspace.
        workspace: WorkspaceId,
        /// The name.
        name: String,
    },
    /// The credential exceeds [`MAX_CREDENTIAL_BYTES`].
    #[error("a credential has at most {MAX_CREDENTIAL_BYTES}")]
    TooLarge,
    /// The workspace has the largest number of credentials.
    #[error("workspace {workspace} has {MAX_CREDENTIALS} credentials already; delete one")]
    TooMany {
        /// The workspace.
        workspace: WorkspaceId,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CredentialError {
    pub(super) fn changed(workspace: WorkspaceId, name: &str) -> Self {
        Self::Changed { workspace, name: name.to_owned() }
    }
}

impl Coded for CredentialError {
    fn code(&self) -> Code {
        match self {
            Self::Unknown { .. } => Code::SecretUnknown,
            Self::OtherKey { .. } | Self::Changed { .. } => Code::RecordUnreadable,
            Self::TooLarge => Code::TooLarge,
            Self::TooMany { .. } => Code::InvalidRequest,
            Self::Store(error) => error.code(),
        }
    }
}

impl Vault {
    /// Creates the vault of a store and a key.
    pub fn new(store: Arc<dyn Store>, key: SealingKey) -> Self {
        Self { store, key: Arc::new(key) }
    }

    /// Checks at startup that the stored credentials were sealed with this key, by the first credential
    /// among the first 100 workspaces.
    pub async fn check_key(&self) -> Result<(), CredentialError> {
        for workspace in self.store.workspaces(None, PAGE).await? {
            let workspace = workspace.id;
            let names = self.store.credential_names(workspace).await?;
            let Some(name) = names.into_iter().next() else { continue };
            if let Some(sealed) = self.store.credential(workspace, &name).await? {
                self.key.strip_header(workspace, &name, &sealed)?;
            }
            return Ok(());
        }
        Ok(())
    }

    /// Deletes the credentials of all workspaces and returns their number.
    pub async fn delete_all(&self) -> Result<u64, CredentialError> {
        let mut after = None;
        let mut deleted = 0;
        loop {
            let workspaces = self.store.workspaces(after, PAGE).await?;
            let Some(last) = workspaces.last() else { return Ok(deleted) };
            after = Some(last.id);
            for workspace in &workspaces {
                for name in self.store.credential_names(workspace.id).await? {
                    let existed = self.store.delete_credential(workspace.id, &name).await?;
                    deleted += u64::from(existed);
                }
            }
        }
    }

    /// Seals and stores a checked credential, replacing one of the same name.
    #[expect(clippy::missing_panics_doc, reason = "a credential is valid JSON")]
    pub async fn put(
        &self,
        workspace: WorkspaceId,
        name: &str,
        content: &CredentialContent,
        now: Timestamp,
    ) -> Result<(), CredentialError> {
        let plain = serde_json::to_vec(content).expect("a credential is valid JSON");
        if plain.len() as u64 > MAX_CREDENTIAL_BYTES.as_u64() {
            return Err(CredentialError::TooLarge);
        }
        let names = self.store.credential_names(workspace).await?;
        if names.len() >= MAX_CREDENTIALS && !names.iter().any(|known| known == name) {
            return Err(CredentialError::TooMany { workspace });
        }
        let sealed = self.key.seal(workspace, name, &plain);
        Ok(self.store.put_credential(workspace, name.to_owned(), sealed, now).await?)
    }

    /// Returns the names of a workspace's credentials.
    pub async fn names(&self, workspace: WorkspaceId) -> Result<Vec<String>, CredentialError> {
        Ok(self.store.credential_names(workspace).await?)
    }

    /// Deletes a credential. Fails if there is none of this name.
    pub async fn delete(&self, workspace: WorkspaceId, name: &str) -> Result<(), CredentialError> {
        if self.store.delete_credential(workspace, name).await? {
            return Ok(());
        }
        Err(CredentialError::Unknown { workspace, name: name.to_owned() })
    }

    /// Returns a keyed hash of bytes, for comparing requests that contain a credential without storing a
    /// hash that could be compared with guesses.
    pub fn fingerprint(&self, bytes: &[u8]) -> Vec<u8> {
        self.key.fingerprint(bytes)
    }

    /// Returns the git token of a credential, if it has one for the host.
    pub async fn git_token(
        &self,
        workspace: WorkspaceId,
        name: &str,
        host: &str,
    ) -> Result<Option<Secret>, CredentialError> {
        let credentials = self.open(workspace, &[name.to_owned()]).await?;
        Ok(credentials.for_host("", host).map(|credential| credential.password))
    }

    /// Unseals credentials and merges them in this order; later ones replace values of earlier ones.
    pub(crate) async fn open(
        &self,
        workspace: WorkspaceId,
        names: &[String],
    ) -> Result<StepCredentials, CredentialError> {
        let mut credentials = StepCredentials::default();
        for name in names {
            let sealed = self.store.credential(workspace, name).await?;
            let unknown = || CredentialError::Unknown { workspace, name: name.clone() };
            let sealed = sealed.ok_or_else(unknown)?;
            let plain = self.key.open(workspace, name, &sealed)?;
            let content = serde_json::from_slice(&plain);
            credentials.add(name, content.map_err(|_| CredentialError::changed(workspace, name))?);
        }
        Ok(credentials)
    }
}
