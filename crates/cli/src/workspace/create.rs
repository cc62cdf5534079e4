//! `carrel workspace create`: makes the workspace of an identifier, or finds it as it was left. The trash
//! is swept afterwards, since a failed hook or a repaired crash leaves a directory there.

use std::process::ExitCode;

use carrel_domain::message_of;
use carrel_workspace::{Create, Created, Quota, Workspaces};
use serde_json::json;
use tracing::{error, warn};

use super::arguments::CreateArguments;
use super::remove::sweep_in_background;
use super::settings::Settings;
use crate::error::Result;
use crate::output::{self, Invocation};
use crate::progress::ProgressDisplay;

/// The line with the first workspace in the default root.
const VOLATILE_ROOT: &str = "Workspaces in the temporary directory may not survive a reboot; workspace.root in WORKFLOW.md or --root moves them";

pub(super) async fn create(arguments: CreateArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.workspace.root, &cli.environment)?;
    let identifier = settings.identifier(&arguments.workspace.identifier)?;
    let quota = arguments.quota.map(|bytes| Quota { bytes, ..settings.options.quota });
    let is_new_root = matches!(Workspaces::open_existing(&settings.options), Ok(None));
    let workspaces = Workspaces::open_or_create(&settings.options).inspect_err(|error| {
        let issue_id = arguments.issue_id.as_deref().unwrap_or(identifier.as_str());
        let error = message_of(error);
        error!(issue_id, error, "Workspace creation failed");
    })?;
    if is_new_root && settings.is_default_root {
        let root = settings.options.root.display();
        warn!(%root, "{VOLATILE_ROOT}");
    }
    let request = Create {
        issue_id: arguments.issue_id,
        layout: arguments.layout,
        quota,
        ..Create::new(identifier)
    };
    let progress = ProgressDisplay::new(cli.progress, "workspace create");
    let created = progress.during(workspaces.create(request, &settings.hooks)).await;
    // A failed hook, or a half-made directory that was found, leaves something to delete.
    sweep_in_background(&workspaces);
    let Created { created, record, path } = created?;
    let data = json!({
        "identifier": record.identifier,
        "key": record.key,
        "path": path.to_string_lossy(),
        "created": created,
        "state": record.state,
        "layout": record.layout,
    });
    let verb = if created { "created" } else { "reused" };
    cli.print(&data, || output::line(&format!("{verb} {} at {}", record.key, path.display())))
}
