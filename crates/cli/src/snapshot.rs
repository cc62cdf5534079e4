//! `carrel snapshot`: snapshots for people, through the same tools that agents call.

mod export;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Map, Value, json};

use crate::arguments::ToolboxArguments;
use crate::error::Result;
use crate::output::Invocation;
use crate::tool;

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Record all files under a name
    Create {
        /// The name: letters, digits, `_`, `.` and `-`
        name: String,
        /// What it is for
        #[arg(short = 'm', long, value_name = "TEXT")]
        description: Option<String>,
        /// Also take what ignore rules exclude, such as `node_modules`
        #[arg(long)]
        ignored: bool,
        /// Replace an older snapshot of this name
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        toolbox: ToolboxArguments,
    },
    /// List the snapshots, the newest first
    Ls {
        /// Also those that Carrel took by itself
        #[arg(long)]
        automatic: bool,
        #[command(flatten)]
        toolbox: ToolboxArguments,
    },
    /// Print what changed since a snapshot, or between two
    Diff {
        /// The older side: a name, or a number such as @12
        name: String,
        /// The newer side; the present files if none is given
        to: Option<String>,
        /// Only this file or directory
        #[arg(long, value_name = "PATH")]
        path: Option<String>,
        /// Most bytes of the answer: 1000 to 102400
        #[arg(long, value_name = "BYTES")]
        max_bytes: Option<u64>,
        #[command(flatten)]
        toolbox: ToolboxArguments,
    },
    /// Make the files as they were; the present state becomes a snapshot first
    Restore {
        /// The name, or a number such as @12
        name: String,
        /// Only these files and directories
        paths: Vec<String>,
        /// Only print what would change
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        toolbox: ToolboxArguments,
    },
    /// Write snapshots as commits into a bare git repository
    Export {
        /// The name, or a number such as @12
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        name: Option<String>,
        /// All snapshots, each the parent of the next
        #[arg(long)]
        all: bool,
        /// With --all, also those that Carrel took by itself
        #[arg(long, requires = "all")]
        automatic: bool,
        /// The bare repository, outside of the workspace; made if it is not there
        #[arg(long, value_name = "DIR")]
        git: PathBuf,
        /// The branch; snapshot/NAME or snapshots if none is given
        #[arg(long, value_name = "NAME")]
        branch: Option<String>,
        #[command(flatten)]
        toolbox: ToolboxArguments,
    },
    /// Delete a snapshot
    Rm {
        /// The name, or a number such as @12
        name: String,
        #[command(flatten)]
        toolbox: ToolboxArguments,
    },
}

pub(crate) fn run(command: &SnapshotCommand, cli: &Invocation) -> Result<ExitCode> {
    let Some((name, arguments, toolbox)) = call_of(command) else {
        return export::run(command, cli);
    };
    let called = tool::call(name, arguments, toolbox, cli);
    let answer = crate::runtime()?.block_on(called)?;
    tool::print(&answer, cli.format)
}

/// Returns the tool of a command and its arguments; none for one that no agent may give.
fn call_of(
    command: &SnapshotCommand,
) -> Option<(&'static str, Map<String, Value>, &ToolboxArguments)> {
    let (tool, arguments, toolbox) = match command {
        SnapshotCommand::Create { name, description, ignored, replace, toolbox } => {
            let arguments = json!({
                "name": name, "description": description, "ignored": ignored, "replace": replace,
            });
            ("snapshot_create", arguments, toolbox)
        }
        SnapshotCommand::Ls { automatic, toolbox } => {
            ("snapshot_list", json!({ "automatic": automatic }), toolbox)
        }
        SnapshotCommand::Diff { name, to, path, max_bytes, toolbox } => {
            let arguments = json!({ "name": name, "to": to, "path": path, "max_bytes": max_bytes });
            ("snapshot_diff", arguments, toolbox)
        }
        SnapshotCommand::Restore { name, paths, dry_run, toolbox } => {
            let arguments = json!({ "name": name, "paths": paths, "dry_run": dry_run });
            ("snapshot_restore", arguments, toolbox)
        }
        SnapshotCommand::Rm { name, toolbox } => {
            ("snapshot_delete", json!({ "name": name }), toolbox)
        }
        SnapshotCommand::Export { .. } => return None,
    };
    let Value::Object(mut arguments) = arguments else { unreachable!("all are objects") };
    arguments.retain(|_, value| !value.is_null());
    Some((tool, arguments, toolbox))
}
