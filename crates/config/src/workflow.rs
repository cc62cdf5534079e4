//! A loaded workflow file.
//!
//! Commands about workspaces need only two sections of the file, and should work before a tracker is set up. The
//! [`ValidationScope`] says which errors count; a template that does not parse is then a warning.

use std::path::{Path, PathBuf};

use carrel_domain::Secret;
use sha2::{Digest as _, Sha256};

use crate::diagnostic::Diagnostic;
use crate::effective_settings::EffectiveSetting;
use crate::environment::Environment;
use crate::parsed_workflow::ParsedWorkflow;
use crate::prompt::Prompt;
use crate::settings::Config;
use crate::workflow_error::WorkflowError;
use crate::workflow_file;

/// The part of a workflow file whose errors make it unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationScope {
    /// The whole file with its template, as the conductor needs it.
    Everything,
    /// The sections `workspace` and `hooks`, for commands that need no tracker.
    WorkspaceAndHooks,
}

impl ValidationScope {
    /// Returns whether an error in the setting at this path makes the file unusable.
    pub(crate) fn covers(self, path: &str) -> bool {
        match self {
            Self::Everything => true,
            // Remote workers would change the location of workspaces, so the section is never ignored.
            Self::WorkspaceAndHooks => {
                matches!(path.split('.').next(), Some("workspace" | "hooks" | "worker"))
            }
        }
    }
}

/// A workflow file without errors.
#[derive(Debug)]
pub struct Workflow {
    /// The file, as an absolute path.
    pub path: PathBuf,
    /// The directory of the file, from which relative paths start.
    pub directory: PathBuf,
    /// The settings, with defaults applied; the conductor's are missing in the smaller scope.
    pub config: Config,
    /// The template for an agent's first turn; in the smaller scope it may have a parse error.
    pub prompt: Prompt,
    /// The warnings, in the order of the file.
    pub warnings: Vec<Diagnostic>,
    secrets: Vec<Secret>,
    effective: Vec<EffectiveSetting>,
    scope: ValidationScope,
    digest: Digest,
}

/// The SHA-256 of a file's bytes.
pub(crate) type Digest = [u8; 32];

pub(crate) fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

impl Workflow {
    /// Reads and validates a workflow file.
    pub fn load(
        path: &Path,
        environment: &Environment,
        scope: ValidationScope,
    ) -> Result<Self, WorkflowError> {
        Self::parse(&workflow_file::read(path)?, path, environment, scope)
    }

    /// Validates the bytes of a workflow file without I/O.
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
        let draft = ParsedWorkflow::new(bytes, &directory, environment, scope)
            .map_err(|problems| WorkflowError::Faulty { file: path.to_owned(), problems })?;
        let ParsedWorkflow { config, prompt, warnings, secrets, effective } = draft;
        let digest = digest(bytes);
        let path = absolute;
        Ok(Self { path, directory, config, prompt, warnings, secrets, effective, scope, digest })
    }

    /// Returns the secrets of trackers and of the server, for masking.
    pub fn known_secrets(&self) -> Vec<Secret> {
        self.secrets.clone()
    }

    /// Returns every setting with its value, secrets masked, and the origin of the value.
    pub fn effective(&self) -> &[EffectiveSetting] {
        &self.effective
    }

    /// Returns the scope that the file was validated with.
    pub fn scope(&self) -> ValidationScope {
        self.scope
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }
}
