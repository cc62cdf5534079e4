//! `carrel check`

use std::path::PathBuf;
use std::process::ExitCode;

use carrel_config::{Effective, Environment, Origin, Workflow};
use clap::Args;
use serde_json::{Value, json};

use crate::conduct;
use crate::failure::Failure;
use crate::output::{self, Format};

/// What a table shows of a value.
const VALUE_CHARS: usize = 80;

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// The workflow file; `WORKFLOW.md` if none is given
    #[arg(value_name = "WORKFLOW.md")]
    workflow: Option<PathBuf>,
}

/// Checks a workflow file, and says what holds and why.
pub(crate) fn run(
    arguments: &CheckArguments,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let workflow = conduct::load(arguments.workflow.as_deref(), environment)?;
    match format {
        Format::Json => output::json(&facts(&workflow))?,
        Format::Text => {
            output::write(table(workflow.effective()).as_bytes())?;
            output::note(&format!("{} can be used", workflow.path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn facts(workflow: &Workflow) -> Value {
    let warnings: Vec<_> = workflow
        .warnings
        .iter()
        .map(|warning| warning.located(&workflow.path).to_string())
        .collect();
    json!({
        "file": workflow.path.to_string_lossy(),
        "settings": workflow.effective(),
        "prompt": { "built_in": workflow.prompt.is_built_in(), "text": workflow.prompt.source() },
        "warnings": warnings,
    })
}

fn table(settings: &[Effective]) -> String {
    let mut rows = vec![["SETTING", "FROM", "VALUE"].map(str::to_owned)];
    rows.extend(settings.iter().map(|setting| {
        let from = match &setting.origin {
            Origin::File { line } => format!("line {line}"),
            Origin::Variable { name } => format!("${name}"),
            Origin::Default => "default".to_owned(),
        };
        [setting.key.clone(), from, shown(&setting.value)]
    }));
    output::table(&rows)
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.chars().count() <= VALUE_CHARS {
        return text;
    }
    text.chars().take(VALUE_CHARS).chain("…".chars()).collect()
}
