//! `carrel profile`: the profile of a project, through the tool of that name, so that people see what
//! agents see.

use std::process::ExitCode;

use carrel_config::Environment;
use carrel_tools::{CallOptions, Interface, Session};
use serde_json::Map;

use crate::arguments::ProfileArguments;
use crate::error::CliError;
use crate::output::{self, Format};
use crate::{tool, toolbox};

pub(crate) fn run(
    arguments: &ProfileArguments,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    crate::runtime()?.block_on(async {
        let toolbox = arguments.toolbox();
        let registry = toolbox::registry(&toolbox, environment).await?;
        let session = Session::new("cli");
        let options = CallOptions::new(Interface::Cli);
        let answer = registry.call(&session, "profile", Map::new(), options).await;
        match (format, answer.is_error) {
            (Format::Json, false) => {
                output::json(&answer.structured["profiles"])?;
                Ok(ExitCode::SUCCESS)
            }
            (Format::Json, true) | (Format::Text, _) => tool::print(&answer, format),
        }
    })
}
