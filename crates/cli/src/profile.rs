//! `carrel profile`: the profile of a project, through the tool of that name, so that people see what
//! agents see.

use std::process::ExitCode;

use carrel_tools::{CallOptions, Interface, Session, ToolSelection};
use serde_json::Map;

use crate::arguments::ProfileArguments;
use crate::error::Result;
use crate::output::{self, Format, Invocation};
use crate::sandbox::OverQuota;
use crate::{tool, toolbox};

pub(crate) fn run(arguments: &ProfileArguments, cli: &Invocation) -> Result<ExitCode> {
    crate::runtime()?.block_on(async {
        let toolbox = arguments.toolbox();
        let registry = toolbox::registry(
            &toolbox,
            &cli.environment,
            OverQuota::Refused,
            ToolSelection::DEFAULT,
        )
        .await?;
        let session = Session::new("cli");
        let options = CallOptions::new(Interface::Cli);
        let answer = registry.call(&session, "profile", Map::new(), options).await;
        match (cli.format, answer.is_error) {
            (Format::Json, false) => {
                output::json(&answer.structured["profiles"])?;
                Ok(ExitCode::SUCCESS)
            }
            (Format::Json, true) | (Format::Text, _) => tool::print(&answer, cli.format),
        }
    })
}
