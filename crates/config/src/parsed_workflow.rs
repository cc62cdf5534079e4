//! The one pass from the bytes of a workflow file to settings, prompt, warnings and secrets.
//!
//! All stages run even if an earlier one found errors, so that one attempt reports every error of the
//! file: keys against the table, values against their rules, the template against its engine. Only
//! bytes that are not text, and text that is not YAML, end the pass early. Settings outside the
//! [`ValidationScope`] do not count as errors.

use std::path::Path;

use carrel_domain::{Code, Secret};

use crate::diagnostic::{Diagnostic, Position};
use crate::effective_settings::{self, EffectiveSetting};
use crate::environment::Environment;
use crate::front_matter::{self, SourceText};
use crate::prompt::Prompt;
use crate::schema::{self, SettingReader, Syntax};
use crate::secrets;
use crate::settings::Config;
use crate::value_tree::{Map, Value};
use crate::workflow::ValidationScope;
use crate::workflow_error::Problem;
use crate::workflow_file::{self, DecodedText};
use crate::workflow_keys;
use crate::yaml;

/// The content of a workflow file without errors.
#[derive(Debug)]
pub(crate) struct ParsedWorkflow {
    pub(crate) config: Config,
    pub(crate) prompt: Prompt,
    pub(crate) warnings: Vec<Diagnostic>,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) effective: Vec<EffectiveSetting>,
}

impl ParsedWorkflow {
    /// Parses a file, or returns every error in the order of the file.
    pub(crate) fn new(
        bytes: &[u8],
        directory: &Path,
        environment: &Environment,
        scope: ValidationScope,
    ) -> Result<Self, Vec<Problem>> {
        let text = workflow_file::decode(bytes)
            .map_err(|diagnostic| alone(Code::WorkflowParse, diagnostic))?;
        let split = front_matter::split(text.content);
        let map = read_map(&split.yaml)?;
        let mut validation = Validation { scope, problems: Vec::new(), warnings: Vec::new() };
        validation.warnings.extend(mark_warning(&text));
        validation.warnings.extend(split.warning);
        validation.check_keys(&map);
        let config = validation.read_settings(SettingReader::new(
            &workflow_keys::SCHEMA,
            &map,
            directory,
            environment,
        ));
        let prompt = Prompt::parse(split.prompt);
        validation.check_prompt(&prompt);
        let (config, warnings) = validation.close(config)?;
        let secrets = secrets::known(&map, environment);
        let effective = effective_settings::list(&map, &config, environment, &secrets);
        Ok(Self { config, prompt, warnings, secrets, effective })
    }
}

/// The errors and warnings collected so far.
struct Validation {
    scope: ValidationScope,
    problems: Vec<Problem>,
    warnings: Vec<Diagnostic>,
}

impl Validation {
    fn check_keys(&mut self, map: &Map) {
        let check = schema::check_keys(&workflow_keys::SCHEMA, map);
        self.warnings.extend(check.unknown);
        for diagnostic in check.rejected {
            if diagnostic.key.as_deref().is_some_and(|key| self.scope.covers(key)) {
                self.problems.push(Problem { code: Code::WorkflowInvalid, diagnostic });
            }
        }
    }

    fn read_settings(&mut self, mut reader: SettingReader<'_>) -> Option<Config> {
        let config = Config::read(&mut reader, self.scope);
        let (problems, warnings) = reader.finish();
        self.problems.extend(problems);
        self.warnings.extend(warnings);
        config
    }

    fn check_prompt(&mut self, prompt: &Prompt) {
        let Some(diagnostic) = prompt.fault() else { return };
        match self.scope {
            ValidationScope::Everything => {
                self.problems.push(Problem { code: Code::TemplateParse, diagnostic });
            }
            ValidationScope::WorkspaceAndHooks => self.warnings.push(diagnostic),
        }
    }

    /// Returns the settings if there is no error. `config` is missing only if there is one.
    fn close(mut self, config: Option<Config>) -> Result<(Config, Vec<Diagnostic>), Vec<Problem>> {
        self.problems.sort_by_key(|problem| problem.diagnostic.position);
        self.warnings.sort_by_key(|warning| warning.position);
        match config {
            Some(config) if self.problems.is_empty() => Ok((config, self.warnings)),
            _ => Err(self.problems),
        }
    }
}

fn alone(code: Code, diagnostic: Diagnostic) -> Vec<Problem> {
    vec![Problem { code, diagnostic }]
}

/// Parses the front matter, which must be a map or empty.
fn read_map(part: &SourceText) -> Result<Map, Vec<Problem>> {
    let node = yaml::parse(&part.text, part.start)
        .map_err(|diagnostic| alone(Code::WorkflowParse, diagnostic))?;
    match node.value {
        Value::Map(map) => Ok(map),
        Value::Null => Ok(Map::default()),
        _ => {
            let message =
                format!("the front matter must be a map, found {}", node.type_name(Syntax::Yaml));
            Err(alone(Code::WorkflowNotAMap, Diagnostic::at(node.position, message)))
        }
    }
}

fn mark_warning(text: &DecodedText<'_>) -> Option<Diagnostic> {
    let message = "the file begins with a byte order mark, which is ignored; save it as UTF-8 \
                   without one";
    text.has_byte_order_mark.then(|| Diagnostic::at(Position::START, message))
}
