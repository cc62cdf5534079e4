//! From the bytes of a workflow file to what they say, with everything that is wrong.

use std::path::Path;

use carrel_domain::{Code, Secret};

use crate::diagnostic::{Diagnostic, Position};
use crate::effective::{self, EffectiveSetting};
use crate::environment::Environment;
use crate::error::Problem;
use crate::file::{self, Text};
use crate::front_matter::{self, Part};
use crate::prompt::Prompt;
use crate::reader::Reader;
use crate::schema;
use crate::secrets;
use crate::settings::Config;
use crate::workflow::ValidationScope;
use crate::yaml::{self, Map, Value};

/// What the bytes of a usable file say.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) config: Config,
    pub(crate) prompt: Prompt,
    pub(crate) warnings: Vec<Diagnostic>,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) effective: Vec<EffectiveSetting>,
}

impl Draft {
    /// Reads a file. Fails with everything that is wrong, in the order of the file.
    pub(crate) fn new(
        bytes: &[u8],
        directory: &Path,
        environment: &Environment,
        scope: ValidationScope,
    ) -> Result<Self, Vec<Problem>> {
        let text =
            file::decode(bytes).map_err(|diagnostic| alone(Code::WorkflowParse, diagnostic))?;
        let parts = front_matter::split(text.content);
        let map = read_map(&parts.yaml)?;
        let mut verdict = Verdict { scope, problems: Vec::new(), warnings: Vec::new() };
        verdict.warnings.extend(mark_warning(&text));
        verdict.warnings.extend(parts.warning);
        verdict.judge_keys(&map);
        let config = verdict.judge_values(Reader::new(&map, directory, environment));
        let prompt = Prompt::parse(parts.prompt);
        verdict.judge_prompt(&prompt);
        let (config, warnings) = verdict.close(config)?;
        let secrets = secrets::known(&map, environment);
        let effective = effective::list(&map, &config, environment, &secrets);
        Ok(Self { config, prompt, warnings, secrets, effective })
    }
}

/// What is wrong and what is doubtful, as far as the scope asks.
struct Verdict {
    scope: ValidationScope,
    problems: Vec<Problem>,
    warnings: Vec<Diagnostic>,
}

impl Verdict {
    fn judge_keys(&mut self, map: &Map) {
        let inspection = schema::inspect(map);
        self.warnings.extend(inspection.unknown);
        for diagnostic in inspection.refused {
            if diagnostic.key.as_deref().is_some_and(|key| self.scope.covers(key)) {
                self.problems.push(Problem { code: Code::WorkflowInvalid, diagnostic });
            }
        }
    }

    fn judge_values(&mut self, mut reader: Reader<'_>) -> Option<Config> {
        let config = Config::read(&mut reader, self.scope);
        let (problems, warnings) = reader.finish();
        self.problems.extend(problems);
        self.warnings.extend(warnings);
        config
    }

    fn judge_prompt(&mut self, prompt: &Prompt) {
        let Some(diagnostic) = prompt.fault() else { return };
        match self.scope {
            ValidationScope::Everything => {
                self.problems.push(Problem { code: Code::TemplateParse, diagnostic });
            }
            ValidationScope::WorkspaceAndHooks => self.warnings.push(diagnostic),
        }
    }

    /// Returns the settings if nothing is wrong. Settings are missing only if something is.
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

/// Parses the front matter, which must be a map or nothing.
fn read_map(part: &Part) -> Result<Map, Vec<Problem>> {
    let node = yaml::parse(&part.text, part.start)
        .map_err(|diagnostic| alone(Code::WorkflowParse, diagnostic))?;
    match node.value {
        Value::Map(map) => Ok(map),
        Value::Null => Ok(Map::default()),
        _ => {
            let message = format!("the front matter must be a map, found {}", node.sort());
            Err(alone(Code::WorkflowNotAMap, Diagnostic::at(node.position, message)))
        }
    }
}

fn mark_warning(text: &Text<'_>) -> Option<Diagnostic> {
    let message = "the file begins with a byte order mark, which is ignored; save it as UTF-8 \
                   without one";
    text.marked.then(|| Diagnostic::at(Position::START, message))
}
