//! `carrel check`: validates a workflow file as `carrel run` would read it.
//!
//! Every setting is printed with its value and its origin, secrets masked. The tracker's settings are
//! checked without a request; a database that does not answer is a warning, since it may answer later.

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
use crate::error::{CliError, Result};
use crate::output::{self, Invocation};
use crate::{run, runtime};

const VALUE_CHARS: usize = 80;

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// The workflow file; `WORKFLOW.md` if none is given
    #[arg(value_name = "WORKFLOW.md")]
    workflow: Option<PathBuf>,
}

/// Checks a workflow file, its tracker settings and the store; prints every setting with its origin.
pub(crate) fn run(arguments: &CheckArguments, cli: &Invocation) -> Result<ExitCode> {
    let workflow = run::load(arguments.workflow.as_deref(), &cli.environment)?;
    tracker(&workflow)?;
    let database = database(&cli.environment)?;
    if let Some(warning) = &database.warning {
        warn!("{warning}");
    }
    let text = || {
        output::write(table(&workflow.effective).as_bytes())?;
        if let Some(config) = &workflow.config.conductor {
            output::note(&run::limits::describe(config));
        }
        output::note(&format!("{} can be used", workflow.path.display()));
        Ok(())
    };
    cli.print(&facts(&workflow, &database), text)
}

/// Checks the tracker's settings without sending anything.
fn tracker(workflow: &Workflow) -> Result<()> {
    let config = workflow.config.conductor.as_ref().map(|config| &config.tracker);
    // The one that is built in has none.
    let Some(config) = config.filter(|config| config.kind != TrackerKind::Local) else {
        return Ok(());
    };
    let made = carrel_tracker::from_config(config, &HttpClient::new(), None);
    made.map(drop).map_err(|fault| StartError::Tracker(fault).into())
}

/// The store that `carrel run` would use.
struct StoreCheck {
    location: &'static str,
    /// A problem that may be over when the store is needed.
    warning: Option<String>,
}

fn database(environment: &Environment) -> Result<StoreCheck> {
    let Some(settings) = DatabaseSettings::read(environment)? else {
        return Ok(StoreCheck { location: "data directory", warning: None });
    };
    let ping = runtime()?.block_on(async {
        let database = Database::open(&settings)?;
        Ok::<_, CliError>(database.postgres.ping().await)
    });
    let warning = match ping? {
        Ok(()) => None,
        // The first to start brings it up to date.
        Err(StoreError::TooOld { .. }) if settings.migrate => None,
        Err(error) => Some(format!("DATABASE_URL: {}", message_of(&error))),
    };
    Ok(StoreCheck { location: "database", warning })
}

fn facts(workflow: &Workflow, database: &StoreCheck) -> Value {
    let warnings = workflow.warnings.iter();
    let warnings: Vec<_> = warnings
        .map(|warning| warning.located(&workflow.path))
        .chain(database.warning.clone())
        .collect();
    json!({
        "file": workflow.path.to_string_lossy(),
        "settings": workflow.effective,
        "prompt": { "built_in": workflow.prompt.is_built_in(), "text": workflow.prompt.source() },
        "kept_in": database.location,
        "warnings": warnings,
    })
}

fn table(settings: &[EffectiveSetting]) -> String {
    let rows = settings.iter().map(|setting| {
        let from = match &setting.origin {
            Origin::File { line } => format!("line {line}"),
            Origin::Variable { name } => format!("${name}"),
            Origin::Default => "default".to_owned(),
        };
        [setting.key.clone(), from, shown(&setting.value)]
    });
    output::table(["SETTING", "FROM", "VALUE"], rows)
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    carrel_domain::excerpt::shortened(&text, VALUE_CHARS)
}
