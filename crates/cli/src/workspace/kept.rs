//! `carrel workspace ls --kept | restore | drop`: unsaved work that outlived its workspace.

use std::process::ExitCode;

use carrel_domain::{Age, ByteSize, Clock, Identifier, SystemClock, Timestamp};
use carrel_workspace::{KeptWork, Restore, Workspaces};
use serde_json::{Value, json};

use super::arguments::{DropArguments, ListArguments, RestoreArguments};
use super::remove::sweep_in_background;
use super::settings::Settings;
use crate::error::Result;
use crate::output::{self, Invocation, printable};

pub(super) async fn list(arguments: &ListArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.root, &cli.environment)?;
    let workspaces = settings.open_root(&arguments.root)?;
    let kept = match &workspaces {
        Some(workspaces) => workspaces.kept().await?,
        None => Vec::new(),
    };
    let root = workspaces.as_ref().map_or(settings.options.root.as_path(), |found| found.path());
    let listed: Vec<Value> = kept.iter().map(summary).collect();
    let data = json!({ "root": root.to_string_lossy(), "kept": listed });
    cli.print(&data, || match kept.as_slice() {
        [] => output::line(&format!("no kept work in {}", root.display())),
        kept => output::write(table(kept).as_bytes()),
    })
}

fn summary(kept: &KeptWork) -> Value {
    json!({
        "name": kept.name,
        "identifier": kept.identifier,
        "key": kept.key,
        "path": kept.path.to_string_lossy(),
        "reasons": kept.reasons,
        "kept_at": kept.kept_at,
        "until": kept.until,
        "usage_bytes": kept.usage.map(|usage| usage.bytes),
        "files": kept.usage.map(|usage| usage.files),
    })
}

fn table(kept: &[KeptWork]) -> String {
    let now = SystemClock.now();
    let heading = ["NAME", "IDENTIFIER", "SIZE", "FILES", "KEPT", "LEFT", "UNSAVED"];
    output::table(heading, kept.iter().map(|kept| row(kept, now)))
}

fn row(kept: &KeptWork, now: Timestamp) -> [String; 7] {
    let dash = || "-".to_owned();
    [
        kept.name.clone(),
        kept.identifier.as_ref().map_or_else(dash, |identifier| printable(identifier.as_str())),
        kept.usage.map_or_else(dash, |usage| ByteSize::bytes(usage.bytes).to_string()),
        kept.usage.map_or_else(dash, |usage| usage.files.to_string()),
        kept.kept_at.map_or_else(dash, |at| format!("{} ago", Age(at.age(now)))),
        kept.until.map_or_else(dash, |until| Age(now.age(until)).to_string()),
        printable(&kept.reasons.join(", ")),
    ]
}

pub(super) async fn restore(arguments: RestoreArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.root, &cli.environment)?;
    let identifier = arguments.identifier.map(|text| settings.identifier(&text)).transpose()?;
    let workspaces = open(&settings, &arguments.name)?;
    let restored = workspaces.restore(Restore { name: arguments.name, identifier }).await?;
    let (record, path) = (&restored.record, &restored.path);
    let data = json!({
        "name": restored.name,
        "identifier": record.identifier,
        "key": record.key,
        "path": path.to_string_lossy(),
        "restored": true,
    });
    cli.print(&data, || output::line(&format!("restored {} at {}", record.key, path.display())))
}

pub(super) async fn drop(arguments: DropArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.root, &cli.environment)?;
    let workspaces = open(&settings, &arguments.name)?;
    let kept = workspaces.drop_kept(&arguments.name).await?;
    sweep_in_background(&workspaces);
    let data = json!({ "name": kept.name, "identifier": kept.identifier, "dropped": true });
    let owner = kept.identifier.as_ref().map_or(kept.key.as_str(), Identifier::as_str);
    let text = format!("dropped {}, unsaved work of {}", kept.name, printable(owner));
    cli.print(&data, || output::line(&text))
}

fn open(settings: &Settings, name: &str) -> Result<Workspaces> {
    let missing = || carrel_workspace::Error::KeptNotFound {
        name: name.to_owned(),
        root: settings.options.root.clone(),
    };
    Ok(Workspaces::open_existing(&settings.options)?.ok_or_else(missing)?)
}
