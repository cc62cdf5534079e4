//! `carrel token`: makes tokens for the API with the key of a data directory.
//!
//! The token is the only output, so that it can be assigned to a variable. The key is made on first use.

use std::process::ExitCode;

use carrel_api::auth::{Authority, Coverage, Grant};
use carrel_config::Environment;
use carrel_domain::{Clock as _, SystemClock};

use crate::arguments::{TokenCommand, TokenNewArguments};
use crate::error::{CliError, Result};
use crate::output;

pub(crate) fn run(command: &TokenCommand, environment: &Environment) -> Result<ExitCode> {
    match command {
        TokenCommand::New(arguments) => new(arguments, environment),
    }
}

fn new(arguments: &TokenNewArguments, environment: &Environment) -> Result<ExitCode> {
    let coverage = if arguments.all {
        Coverage::All
    } else {
        Coverage::Only(arguments.workspaces.iter().copied().collect())
    };
    let authority = Authority::load(environment, &arguments.data)?;
    let grant = Grant {
        scopes: arguments.scope,
        subject: arguments.subject.clone(),
        ..Grant::new(coverage, arguments.ttl.0)
    };
    let token = authority.issue(&grant, SystemClock.now()).map_err(CliError::usage)?;
    output::line(token.expose())?;
    Ok(ExitCode::SUCCESS)
}
