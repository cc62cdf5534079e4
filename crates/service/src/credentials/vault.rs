//! Credentials of all workspaces, sealed.

use std::sync::Arc;

use carrel_domain::{Code, Coded, Secret, Timestamp, WorkspaceId};
use carrel_git::CredentialSource as _;
use carrel_store::{Store, StoreError};

use super::content::{CredentialContent, MAX_CREDENTIAL_BYTES};
use super::given::StepCredentials;
use super::key::{SealingKey, Unopened};

/// Credentials of one workspace.
const MAX_CREDENTIALS: usize = 100;

/// Workspaces that are looked at for the first credential.
const PAGE: u32 = 100;

/// Credentials of all workspaces, sealed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Vault {
    store: Arc<dyn Store>,
    key: Arc<SealingKey>,
}

/// Why a credential cannot be kept or used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// There is none of this name.
    #[error("workspace {workspace} has no credential {name:?}")]
    Unknown {
        /// The workspace.
        workspace: WorkspaceId,
        /// The name.
        name: String,
    },
    /// It was sealed with another key.
    #[error(
        "credential {name:?} of workspace {workspace} was sealed with another key; use that one, or put the \
         credential again"
    )]
    OtherKey {
        /// The workspace.
        workspace: WorkspaceId,
        /// The name.
        name: String,
    },
    /// It is not what was sealed.
    #[error("credential {name:?} of workspace {workspace} was changed; put it again")]
    Changed {
        /// The workspace.
        workspace: WorkspaceId,
        /// The name.
        name: String,
    },
    /// It is larger than a credential may be.
    #[error("a credential has at most {MAX_CREDENTIAL_BYTES}")]
    TooLarge,
    /// There are as many as there may be.
    #[error("workspace {workspace} has {MAX_CREDENTIALS} credentials already; delete one")]
    TooMany {
        /// The workspace.
        workspace: WorkspaceId,
    },
    /// The store could not do its part.
    #[error(transparent)]
    Store(#[from] StoreError),
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
    /// Keeps credentials in a store, sealed with a key.
    pub fn new(store: Arc<dyn Store>, key: SealingKey) -> Self {
        Self { store, key: Arc::new(key) }
    }

    /// Looks whether what is in the store was sealed with this key, by the first credential there is
    /// among the workspaces of one page.
    pub async fn check_key(&self) -> Result<(), CredentialError> {
        for workspace in self.store.workspaces(None, PAGE).await? {
            let workspace = workspace.id;
            let names = self.store.credential_names(workspace).await?;
            let Some(name) = names.into_iter().next() else { continue };
            let sealed = self.store.credential(workspace, &name).await?;
            let opened = sealed.map_or(Ok(()), |sealed| self.key.of_this_key(&sealed).map(|_| ()));
            return opened.map_err(|unopened| why(unopened, workspace, &name));
        }
        Ok(())
    }

    /// Forgets every credential there is. Returns how many there were.
    pub async fn delete_all(&self) -> Result<u64, CredentialError> {
        let (mut after, mut forgotten) = (None, 0);
        loop {
            let workspaces = self.store.workspaces(after, PAGE).await?;
            let Some(last) = workspaces.last() else { return Ok(forgotten) };
            after = Some(last.id);
            for workspace in &workspaces {
                for name in self.store.credential_names(workspace.id).await? {
                    let gone = self.store.delete_credential(workspace.id, &name).await?;
                    forgotten += u64::from(gone);
                }
            }
        }
    }

    /// Keeps a credential that was checked, in place of one of the same name.
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

    /// Forgets a credential.
    pub async fn delete(&self, workspace: WorkspaceId, name: &str) -> Result<(), CredentialError> {
        if self.store.delete_credential(workspace, name).await? {
            return Ok(());
        }
        Err(CredentialError::Unknown { workspace, name: name.to_owned() })
    }

    /// Returns what stands for a credential, in place of a hash that others could try guesses against.
    pub fn fingerprint(&self, bytes: &[u8]) -> Vec<u8> {
        self.key.fingerprint(bytes)
    }

    /// Returns what a machine is told with a credential, if it has something for that machine.
    pub async fn git_token(
        &self,
        workspace: WorkspaceId,
        name: &str,
        host: &str,
    ) -> Result<Option<Secret>, CredentialError> {
        let given = self.give(workspace, &[name.to_owned()]).await?;
        Ok(given.for_host("", host).map(|credential| credential.password))
    }

    /// Opens credentials for a step.
    pub(crate) async fn give(
        &self,
        workspace: WorkspaceId,
        names: &[String],
    ) -> Result<StepCredentials, CredentialError> {
        let mut given = StepCredentials::default();
        for name in names {
            let sealed = self.store.credential(workspace, name).await?;
            let unknown = || CredentialError::Unknown { workspace, name: name.clone() };
            let sealed = sealed.ok_or_else(unknown)?;
            let plain = self.key.open(workspace, name, &sealed);
            let plain = plain.map_err(|unopened| why(unopened, workspace, name))?;
            let content = serde_json::from_slice(&plain);
            given.add(name, content.map_err(|_| why(Unopened::Changed, workspace, name))?);
        }
        Ok(given)
    }
}

fn why(unopened: Unopened, workspace: WorkspaceId, name: &str) -> CredentialError {
    let name = name.to_owned();
    match unopened {
        Unopened::OtherKey => CredentialError::OtherKey { workspace, name },
        Unopened::Changed => CredentialError::Changed { workspace, name },
    }
}
