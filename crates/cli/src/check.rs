//! `carrel check`

use std::path::PathBuf;
use std::process::ExitCode;

use carrel_client::HttpClient;
use carrel_conductor::drive::StartError;
use carrel_config::{EffectiveSetting, Environment, Origin, TrackerKind, Workflow};
use carrel_domain::message_of;
use carrel_store::{Store as _, StoreError};
use clap::Args;
use serde_json::{Value, json};
use tracing::warn;

use crate::database::{Database, DatabaseSettings};
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::{conduct, runtime};

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
    tracker(&workflow)?;
    let database = database(environment)?;
    if let Some(trouble) = &database.trouble {
        warn!("{trouble}");
    }
    match format {
        Format::Json => output::json(&facts(&workflow, &database))?,
        Format::Text => {
            output::write(table(workflow.effective()).as_bytes())?;
            output::note(&format!("{} can be used", workflow.path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks the tracker whether it can work with its settings. Nothing is sent.
fn tracker(workflow: &Workflow) -> Result<(), Failure> {
    let config = workflow.config.conductor.as_ref().map(|config| &config.tracker);
    // The one that is built in has none.
    let Some(config) = config.filter(|config| config.kind != TrackerKind::Local) else {
        return Ok(());
    };
    let made = carrel_tracker::from_config(config, &HttpClient::new(), None);
    made.map(drop).map_err(|fault| StartError::Tracker(fault).into())
}

/// Where a conductor would keep what it remembers.
struct Kept {
    place: &'static str,
    /// Why that cannot be used at present, which need not mean that it cannot when it is needed.
    trouble: Option<String>,
}

/// Looks whether the database answers, if one is named.
fn database(environment: &Environment) -> Result<Kept, Failure> {
    let Some(settings) = DatabaseSettings::read(environment)? else {
        return Ok(Kept { place: "data directory", trouble: None });
    };
    let answer = runtime()?.block_on(async {
        let database = Database::open(&settings)?;
        Ok::<_, Failure>(database.postgres.ping().await)
    });
    let trouble = match answer? {
        Ok(()) => None,
        // The first to start brings it up to date.
        Err(StoreError::TooOld { .. }) if settings.migrate => None,
        Err(error) => Some(format!("DATABASE_URL: {}", message_of(&error))),
    };
    Ok(Kept { place: "database", trouble })
}

fn facts(workflow: &Workflow, database: &Kept) -> Value {
    let warnings = workflow.warnings.iter();
    let warnings: Vec<_> = warnings
        .map(|warning| warning.located(&workflow.path).to_string())
        .chain(database.trouble.clone())
        .collect();
    json!({
        "file": workflow.path.to_string_lossy(),
        "settings": workflow.effective(),
        "prompt": { "built_in": workflow.prompt.is_built_in(), "text": workflow.prompt.source() },
        "kept_in": database.place,
        "warnings": warnings,
    })
}

fn table(settings: &[EffectiveSetting]) -> String {
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
