//! `carrel policy check`: the verdict of a preset about a command line, without running it. The exit
//! status is 0 for allow and 1 for refuse.

use std::process::ExitCode;

use carrel_shell::{Context, judge};

use crate::arguments::PolicyCommand;
use crate::error::Result;
use crate::output::{self, Format};

/// Says whether a preset allows a command line. Nothing is run.
pub(crate) fn run(command: &PolicyCommand, format: Format) -> Result<ExitCode> {
    let PolicyCommand::Check { command, preset, workspace } = command;
    let context = Context { workspace: workspace.as_deref() };
    let verdict = judge(command, *preset, &context);
    match (format, verdict.refusal()) {
        (Format::Json, _) => output::json(&verdict)?,
        (Format::Text, None) => output::line("allow")?,
        (Format::Text, Some(refusal)) => {
            output::line(&format!("refuse: {} [{}]", refusal.message, refusal.rule))?;
        }
    }
    Ok(if verdict.is_allowed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
