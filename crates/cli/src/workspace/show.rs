//! `carrel workspace ls`, `show` and `verify`: read a root without changing it. Usage comes from the last
//! count unless `--recount` is given.

use std::process::ExitCode;

use carrel_domain::{Age, ByteSize, Clock, Code, SystemClock, Timestamp};
use carrel_workspace::{
    Freshness, GitState, Hooks, ListingState, RootFinding, Severity, WorkspaceListing, Workspaces,
    verify as find_problems,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::arguments::{ListArguments, RootArguments, ShowArguments};
use super::fail_if_any;
use super::settings::Settings;
use crate::error::Result;
use crate::output::{self, Invocation, printable};

pub(super) async fn list(arguments: &ListArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.root, &cli.environment)?;
    let workspaces = settings.open_root(&arguments.root)?;
    let listings = match &workspaces {
        Some(workspaces) => workspaces.list(freshness(arguments.recount)).await?,
        None => Vec::new(),
    };
    let root = workspaces.as_ref().map_or(settings.options.root.as_path(), |found| found.path());
    let listed: Vec<Value> = listings.iter().map(summary).collect();
    let data = json!({ "root": root.to_string_lossy(), "workspaces": listed });
    cli.print(&data, || match listings.as_slice() {
        [] => output::line(&format!("no workspaces in {}", root.display())),
        listings => output::write(table(listings).as_bytes()),
    })
}

fn freshness(recount: bool) -> Freshness {
    if recount { Freshness::Recount } else { Freshness::Cached }
}

fn summary(listing: &WorkspaceListing) -> Value {
    let record = &listing.record;
    json!({
        "identifier": record.identifier,
        "key": record.key,
        "path": listing.path.to_string_lossy(),
        "state": listing.state,
        "layout": record.layout,
        "fork": record.fork,
        "created_at": record.created_at,
        "last_used_at": record.last_used_at,
        "usage_bytes": listing.usage.map(|usage| usage.amount.bytes),
        "files": listing.usage.map(|usage| usage.amount.files),
    })
}

const HEADING: [&str; 7] = ["IDENTIFIER", "KEY", "STATE", "SIZE", "FILES", "AGE", "LAST USED"];

fn table(listings: &[WorkspaceListing]) -> String {
    let now = SystemClock.now();
    let rows = listings.iter().map(|listing| row(listing, now));
    if listings.iter().all(|listing| listing.record.fork.is_none()) {
        return output::table(HEADING, rows);
    }
    let base = |listing: &WorkspaceListing| {
        listing.record.fork.as_ref().map_or_else(|| "-".to_owned(), |fork| fork.base.to_string())
    };
    let rows =
        rows.zip(listings).map(|([identifier, key, state, size, files, age, used], listing)| {
            [identifier, key, base(listing), state, size, files, age, used]
        });
    let [identifier, key, state, size, files, age, used] = HEADING;
    output::table([identifier, key, "FORK OF", state, size, files, age, used], rows)
}

fn row(listing: &WorkspaceListing, now: Timestamp) -> [String; 7] {
    let record = &listing.record;
    let age = |at: Timestamp| Age(at.age(now)).to_string();
    let dash = || "-".to_owned();
    [
        record.identifier.to_string(),
        record.key.to_string(),
        word(listing.state),
        listing.usage.map_or_else(dash, |used| ByteSize::bytes(used.amount.bytes).to_string()),
        listing.usage.map_or_else(dash, |used| used.amount.files.to_string()),
        age(record.created_at),
        format!("{} ago", age(record.last_used_at)),
    ]
}

/// Returns the word by which JSON has a variant.
fn word(variant: impl Serialize) -> String {
    json!(variant).as_str().unwrap_or_default().to_owned()
}

pub(super) async fn show(arguments: &ShowArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.workspace.root, &cli.environment)?;
    let identifier = settings.identifier(&arguments.workspace.identifier)?;
    let not_found = || carrel_workspace::Error::NotFound {
        name: identifier.to_string(),
        root: settings.options.root.clone(),
    };
    let workspaces = Workspaces::open_existing(&settings.options)?.ok_or_else(not_found)?;
    let key = workspaces.record(&identifier)?.key;
    let listing = workspaces.show(&key, freshness(arguments.recount)).await?;
    let listing = listing.ok_or_else(not_found)?;
    let git = repositories(&workspaces, &listing, &settings.hooks).await?;
    cli.print(&details(&listing, &git), || output::write(describe(&listing, &git).as_bytes()))
}

/// Returns the git state of a ready workspace, and nothing for one that is missing, half-made or being
/// removed.
async fn repositories(
    workspaces: &Workspaces,
    listing: &WorkspaceListing,
    hooks: &Hooks,
) -> Result<Vec<GitState>> {
    if listing.state != ListingState::Ready {
        return Ok(Vec::new());
    }
    let workspace = workspaces.open(&listing.record.identifier).await?;
    Ok(workspaces.repositories(workspace.files(), hooks.spawner()).await?)
}

fn details(listing: &WorkspaceListing, git: &[GitState]) -> Value {
    let record = &listing.record;
    let mut value = summary(listing);
    value["issue_id"] = json!(record.issue_id);
    value["quota_bytes"] = json!(record.quota.bytes);
    value["quota_files"] = json!(record.quota.files);
    value["usage_as_of"] = json!(listing.usage.map(|usage| usage.as_of));
    value["usage_incomplete"] = json!(listing.usage.map(|usage| usage.incomplete));
    value["repos_cached"] = json!(record.repos_cached);
    value["tasks_run"] = json!(record.tasks_run);
    value["hook_runs"] = json!(record.hook_runs);
    value["git"] = json!(git);
    value
}

fn describe(listing: &WorkspaceListing, git: &[GitState]) -> String {
    let record = &listing.record;
    let mut rows = vec![
        ["identifier".to_owned(), record.identifier.to_string()],
        ["key".to_owned(), record.key.to_string()],
        ["path".to_owned(), listing.path.display().to_string()],
        ["state".to_owned(), word(listing.state)],
        ["layout".to_owned(), record.layout.as_str().to_owned()],
        ["created".to_owned(), record.created_at.to_string()],
        ["last used".to_owned(), record.last_used_at.to_string()],
        ["usage".to_owned(), usage_text(listing)],
    ];
    rows.extend(record.fork.as_ref().map(|fork| ["fork of".to_owned(), fork.base.to_string()]));
    rows.extend(git.iter().map(|state| [format!("git {}", state.path.display()), git_text(state)]));
    rows.extend(record.hook_runs.iter().map(|run| {
        let end = run.end.as_str();
        let text = format!("{end} in {} ms, log {}", run.duration_ms, run.log.display());
        [format!("hook {}", run.hook.as_str()), text]
    }));
    output::columns(&rows)
}

fn usage_text(listing: &WorkspaceListing) -> String {
    let quota = listing.record.quota;
    match listing.usage {
        None => format!("none of {}", quota.bytes),
        Some(used) => {
            let bytes = ByteSize::bytes(used.amount.bytes);
            let part = if used.incomplete { " (a part cannot be read)" } else { "" };
            format!(
                "{bytes} of {}, {} files{part}, counted {}",
                quota.bytes, used.amount.files, used.as_of
            )
        }
    }
}

fn git_text(state: &GitState) -> String {
    let branch = state.branch.as_deref().unwrap_or("no branch");
    let unsaved = state.unsaved();
    if unsaved.is_empty() {
        format!("{branch}, clean")
    } else {
        format!("{branch}, {}", unsaved.join(", "))
    }
}

pub(super) fn verify(arguments: &RootArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(arguments, &cli.environment)?;
    let findings = find_problems(&settings.options)?;
    let root = settings.options.root.to_string_lossy();
    let text = || findings.iter().map(finding_text).collect::<String>();
    let data = json!({ "root": root, "findings": findings });
    let ended = cli.print(&data, || output::write(text().as_bytes()))?;
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    let failed = "findings that stop work or endanger it";
    fail_if_any(errors, Code::VerifyFailed, failed).map(|()| ended)
}

fn finding_text(finding: &RootFinding) -> String {
    let RootFinding { check, path, message, fix, severity } = finding;
    let severity = word(severity);
    let (path, message) = (printable(&path.to_string_lossy()), printable(message));
    format!("{severity}: {check}: {path}: {message}\n  fix: {fix}\n")
}
