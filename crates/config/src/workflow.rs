//! A loaded workflow file.
//!
//! Commands about workspaces need only two sections of the file, and should work before a tracker is set up. The
//! [`ValidationScope`] says which errors count; a template that does not parse is then a warning.
//!
//! All stages of validation run even if an earlier one found errors, so that one attempt reports every error of the
//! file: keys against the table, values against their rules, the template against its engine. Only bytes that are not
//! text, and text that is not YAML, end the pass early.

use std::path::{Path, PathBuf};

use carrel_domain::{Code, Secret};
use sha2::{Digest as _, Sha256};

use crate::diagnostic::{Diagnostic, Position};
use crate::effective_settings::{self, EffectiveSetting};
use crate::environment::Environment;
use crate::front_matter::{self, SourceText};
use crate::prompt::Prompt;
use crate::schema::{SettingReader, Syntax, check_keys};
use crate::secrets;
use crate::settings::Config;
use crate::value_tree::{Map, Value};
use crate::workflow_error::{Problem, WorkflowError};
use crate::workflow_file;
use crate::workflow_keys::SCHEMA;
use crate::yaml;

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
    fn covers(self, path: &str) -> bool {
        match self {
            Self::Everything => true,
            // Remote workers would change the location of workspaces, so the section is never ignored.
            Self::WorkspaceAndHooks => {
                matches!(path.split('.').next(), Some("workspace" | "hooks" | "worker"))
            }
        }
    }

    fn check_keys(self, reader: &mut SettingReader<'_>) {
        let check = check_keys(&SCHEMA, reader.map);
        reader.warnings.extend(check.unknown);
        for diagnostic in check.rejected {
            if diagnostic.key.as_deref().is_some_and(|key| self.covers(key)) {
                reader.record_invalid(diagnostic);
            }
        }
    }

    fn check_prompt(self, prompt: &Prompt, reader: &mut SettingReader<'_>) {
        let Some(diagnostic) = prompt.fault() else { return };
        match self {
            Self::Everything => reader.record(Code::TemplateParse, diagnostic),
            Self::WorkspaceAndHooks => reader.warnings.push(diagnostic),
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
    /// Every setting with its value, secrets masked, and the origin of the value.
    pub effective: Vec<EffectiveSetting>,
    /// The scope that the file was validated with.
    pub scope: ValidationScope,
    secrets: Vec<Secret>,
    pub(crate) digest: Digest,
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
        let faulty = |problems| WorkflowError::Faulty { file: path.to_owned(), problems };
        let alone = |(code, diagnostic)| faulty(vec![Problem { code, diagnostic }]);
        let text = workflow_file::decode(bytes)
            .map_err(|diagnostic| alone((Code::WorkflowParse, diagnostic)))?;
        let split = front_matter::split(text.content);
        let map = read_map(&split.yaml).map_err(alone)?;
        let mut reader = SettingReader::new(&SCHEMA, &map, &directory, environment);
        reader.warnings.extend(text.has_byte_order_mark.then(mark_warning));
        reader.warnings.extend(split.warning);
        scope.check_keys(&mut reader);
        let config = Config::read(&mut reader, scope);
        let prompt = Prompt::parse(split.prompt);
        scope.check_prompt(&prompt, &mut reader);
        let (problems, warnings) = reader.finish();
        // The settings are missing only if there is an error.
        let Some(config) = config.filter(|_| problems.is_empty()) else {
            return Err(faulty(problems));
        };
        let secrets = secrets::known(&map, environment);
        let effective = effective_settings::list(&map, &config, environment, &secrets);
        let digest = digest(bytes);
        let path = absolute;
        Ok(Self { path, directory, config, prompt, warnings, effective, scope, secrets, digest })
    }

    /// Returns the secrets of trackers and of the server, for masking.
    pub fn known_secrets(&self) -> Vec<Secret> {
        self.secrets.clone()
    }
}

/// Parses the front matter, which must be a map or empty.
fn read_map(part: &SourceText) -> Result<Map, (Code, Diagnostic)> {
    let node = yaml::parse(&part.text, part.start)
        .map_err(|diagnostic| (Code::WorkflowParse, diagnostic))?;
    match node.value {
        Value::Map(map) => Ok(map),
        Value::Null => Ok(Map::default()),
        _ => {
            let message =
                format!("the front matter must be a map, found {}", node.type_name(Syntax::Yaml));
            Err((Code::WorkflowNotAMap, Diagnostic::at(node.position, message)))
        }
    }
}

fn mark_warning() -> Diagnostic {
    let message = "the file begins with a byte order mark, which is ignored; save it as UTF-8 \
                   without one";
    Diagnostic::at(Position::START, message)
}
