//! One workflow file, read and checked.

use std::path::{Path, PathBuf};

use carrel_domain::Secret;
use sha2::{Digest as _, Sha256};

use crate::diagnostic::Diagnostic;
use crate::draft::Draft;
use crate::effective::EffectiveSetting;
use crate::environment::Environment;
use crate::error::WorkflowError;
use crate::file;
use crate::prompt::Prompt;
use crate::settings::Config;

/// How much of a workflow file must be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationScope {
    /// All of it.
    Everything,
    /// The sections `workspace` and `hooks`, for commands that need no tracker.
    WorkspaceAndHooks,
}

impl ValidationScope {
    /// Tells whether a wrong setting at this path makes the file unusable.
    pub(crate) fn covers(self, path: &str) -> bool {
        match self {
            Self::Everything => true,
            // Remote workers decide where workspaces live, so the section is never just ignored.
            Self::WorkspaceAndHooks => {
                matches!(path.split('.').next(), Some("workspace" | "hooks" | "worker"))
            }
        }
    }
}

/// A workflow file that can be used.
#[derive(Debug)]
pub struct Workflow {
    /// The file, as an absolute path.
    pub path: PathBuf,
    /// The directory of the file, where relative paths start.
    pub directory: PathBuf,
    /// The settings.
    pub config: Config,
    /// The template for an agent's first turn.
    pub prompt: Prompt,
    /// What is doubtful about the file.
    pub warnings: Vec<Diagnostic>,
    secrets: Vec<Secret>,
    effective: Vec<EffectiveSetting>,
    scope: ValidationScope,
    digest: Digest,
}

/// The hash of a file's bytes.
pub(crate) type Digest = [u8; 32];

/// Hashes the bytes of a file.
pub(crate) fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

impl Workflow {
    /// Reads and checks a workflow file.
    pub fn load(
        path: &Path,
        environment: &Environment,
        scope: ValidationScope,
    ) -> Result<Self, WorkflowError> {
        Self::parse(&file::read(path)?, path, environment, scope)
    }

    /// Checks the bytes of a workflow file without touching the disk.
    ///
    /// `path` names the file in messages; relative settings start at its directory.
    pub fn parse(
        bytes: &[u8],
        path: &Path,
        environment: &Environment,
        scope: ValidationScope,
    ) -> Result<Self, WorkflowError> {
        let absolute = std::path::absolute(path)
            .map_err(|source| WorkflowError::Unreadable { file: path.to_owned(), source })?;
        let directory = absolute.parent().unwrap_or(&absolute).to_owned();
        let draft = Draft::new(bytes, &directory, environment, scope)
            .map_err(|problems| WorkflowError::Faulty { file: path.to_owned(), problems })?;
        let Draft { config, prompt, warnings, secrets, effective } = draft;
        let digest = digest(bytes);
        let path = absolute;
        Ok(Self { path, directory, config, prompt, warnings, secrets, effective, scope, digest })
    }

    /// Returns the values that no output may show: secrets of trackers and of the server.
    pub fn known_secrets(&self) -> Vec<Secret> {
        self.secrets.clone()
    }

    /// Returns every setting as it holds, secrets masked, and where that comes from.
    pub fn effective(&self) -> &[EffectiveSetting] {
        &self.effective
    }

    /// Returns how much of the file was checked.
    pub fn scope(&self) -> ValidationScope {
        self.scope
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }
}
