//! The client for `--server` and the token of the caller.

use carrel_client::{Credentials, ServerUrl, WorkspaceClient};
use carrel_config::Environment;
use carrel_config::environment::{CARREL_SERVER, CARREL_TOKEN};
use carrel_domain::{Code, Secret};
use tracing::warn;

use super::arguments::ServerArguments;
use crate::error::{CliError, Result};
use crate::mcp::read_token;

const DEFAULT_SERVER: &str = "http://127.0.0.1:8080";

/// Returns a client for the server and token of the command line, else of the environment.
pub(crate) fn client(
    arguments: &ServerArguments,
    environment: &Environment,
) -> Result<WorkspaceClient> {
    let named = |name| environment.get_str(name).filter(|value: &&str| !value.is_empty());
    let server = arguments.server.as_deref().or(named(CARREL_SERVER)).unwrap_or(DEFAULT_SERVER);
    let server: ServerUrl = server.parse().map_err(CliError::usage)?;
    let token = match &arguments.token_file {
        Some(path) => read_token(path)?,
        None => named(CARREL_TOKEN).ok_or_else(no_token)?.to_owned(),
    };
    if server.is_cleartext_remote() {
        warn!(%server, "the token and everything else goes over the network unprotected; use https");
    }
    let credentials = Credentials::Bearer(Secret::new(token.trim()));
    let client = WorkspaceClient::new(server, &credentials);
    Ok(match arguments.workspace {
        Some(workspace) => client.in_workspace(workspace),
        None => client,
    })
}

fn no_token() -> CliError {
    CliError::new(Code::Usage, "there is no token")
        .hint("set CARREL_TOKEN, or name a file with --token-file; `carrel token new` makes one")
}
