//! `carrel tool`: one call of a tool from a shell, through the same registry as MCP and REST.
//!
//! The session is kept in a file between calls, so an edit can follow a read. Jobs cannot outlive the
//! process: those still running at its end are stopped, with a note.

mod session_file;
mod values;

use std::process::ExitCode;
use std::sync::Arc;

use carrel_domain::Code;
use carrel_tools::{
    CallOptions, Definition, Interface, Registry, ToolContent, ToolResponse, ToolSelection,
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::arguments::{ToolArguments, ToolboxArguments};
use crate::error::Result;
use crate::output::{self, Format, Invocation};
use crate::progress::ProgressDisplay;
use crate::sandbox::OverQuota;
use crate::signals::cancel_on_signal;
use crate::toolbox;

/// Tools that can be called in a workspace over its quota, since they free space.
const FREES_SPACE: [&str; 2] = ["Delete", "snapshot_delete"];

pub(crate) fn run(arguments: &ToolArguments, cli: &Invocation) -> Result<ExitCode> {
    crate::runtime()?.block_on(work(arguments, cli))
}

async fn work(arguments: &ToolArguments, cli: &Invocation) -> Result<ExitCode> {
    let registry = registry(arguments.name.as_deref(), &arguments.toolbox, cli).await?;
    let Some(name) = &arguments.name else { return list(&registry, cli) };
    let found = registry.definitions().find(|tool| tool.about.name == name);
    if let (Some(tool), true) = (found, arguments.schema) {
        return describe(tool, cli);
    }
    let given = match found {
        Some(tool) => values::read(&arguments.values, tool.input_schema())?,
        // The registry says which tools there are.
        None => Map::new(),
    };
    print(&call_in(&registry, name, given, cli).await?, cli.format)
}

/// Calls a tool by name, as `carrel tool` does.
pub(crate) async fn call(
    name: &str,
    arguments: Map<String, Value>,
    toolbox: &ToolboxArguments,
    cli: &Invocation,
) -> Result<ToolResponse> {
    let registry = registry(Some(name), toolbox, cli).await?;
    call_in(&registry, name, arguments, cli).await
}

async fn registry(
    name: Option<&str>,
    toolbox: &ToolboxArguments,
    cli: &Invocation,
) -> Result<Arc<Registry>> {
    let frees_space = name.is_some_and(|name| FREES_SPACE.contains(&name));
    let over_quota = if frees_space { OverQuota::Allowed } else { OverQuota::Refused };
    // A person pays no tokens for definitions, so every tool is there unless the operator says less.
    let unless_chosen = ToolSelection::ALL;
    let made = toolbox::registry(toolbox, &cli.environment, over_quota, unless_chosen);
    Ok(Arc::new(made.await?))
}

async fn call_in(
    registry: &Arc<Registry>,
    name: &str,
    arguments: Map<String, Value>,
    cli: &Invocation,
) -> Result<ToolResponse> {
    let session = session_file::load(registry, &cli.environment);
    let cancel = CancellationToken::new();
    let stopped = cancel_on_signal(&cancel)?;
    let mut progress = ProgressDisplay::new(cli.progress, name);
    let mut options = CallOptions { cancel, ..CallOptions::new(Interface::Cli) };
    let toolbox = Arc::clone(registry.toolbox());
    options.command_settings.output = progress.output(move |line| toolbox.mask(line));
    let answer = progress.during(registry.call(&session, name, arguments, options)).await;
    stopped.abort();
    session_file::save(registry, &session, &cli.environment);
    let ended = toolbox::close(registry).await;
    if ended > 0 {
        output::note(&format!("ended in the background, with this program: {ended}"));
    }
    Ok(answer)
}

pub(crate) fn print(answer: &ToolResponse, format: Format) -> Result<ExitCode> {
    match format {
        Format::Json => output::json(&json!({
            "content": answer.text(),
            "structured": answer.structured,
            "is_error": answer.is_error,
        }))?,
        Format::Text if answer.is_error => {
            let code = answer.structured["error"]["code"].as_str().unwrap_or(Code::Internal.name());
            let text = answer.text();
            let (reason, rest) = text.split_once('\n').unwrap_or((&text, ""));
            output::note(format!("error: {reason} [{code}]\n{rest}").trim_end());
        }
        Format::Text => show(answer)?,
    }
    Ok(if answer.is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn show(answer: &ToolResponse) -> Result<()> {
    for content in &answer.content {
        match content {
            ToolContent::Text(text) => {
                output::write(text.as_bytes())?;
                if !text.is_empty() && !text.ends_with('\n') {
                    output::write(b"\n")?;
                }
            }
            ToolContent::Image { mime, bytes } => {
                output::line(&format!("[{mime}, {} bytes]", bytes.len()))?;
            }
        }
    }
    Ok(())
}

fn list(registry: &Registry, cli: &Invocation) -> Result<ExitCode> {
    let line = |tool: &Definition| {
        let text = tool.about.description;
        let first = text.split_inclusive(". ").next().unwrap_or(text).trim();
        output::line(&format!("{:<22}{first}", tool.about.name))
    };
    let data: Vec<_> = registry.definitions().map(as_json).collect();
    cli.print(&data, || registry.definitions().try_for_each(line))
}

fn as_json(tool: &Definition) -> Value {
    json!({
        "name": tool.about.name,
        "title": tool.about.title,
        "class": tool.about.class,
        "description": tool.about.description,
        "input_schema": **tool.input_schema(),
        "output_schema": *tool.output_schema,
    })
}

fn describe(tool: &Definition, cli: &Invocation) -> Result<ExitCode> {
    let text = || {
        output::line(tool.about.description)?;
        output::write(b"\n")?;
        values::fields(tool.input_schema()).iter().try_for_each(|line| output::line(line))
    };
    cli.print(&as_json(tool), text)
}
