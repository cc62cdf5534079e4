//! `carrel mcp`: the tools over the Model Context Protocol, on stdio or HTTP.
//!
//! stdout belongs to the protocol; everything for people goes to stderr. An address that other machines can
//! reach needs a token, which is checked before the port is bound.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use carrel_config::{Environment, environment as variable};
use carrel_mcp::{BearerToken, HttpOptions, ToolServer, serve_http, serve_stdio};
use carrel_tools::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::arguments::McpArguments;
use crate::error::CliError;
use crate::exec::cancel_on_signal;
use crate::{output, server_runtime, toolbox};

/// Serves the tools until the client disconnects or a signal arrives. Inside an agent's sandbox, where no
/// command could be sandboxed again, it relays to the session that the agent belongs to instead.
pub(crate) fn run(
    arguments: &McpArguments,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    if let Some(socket) = environment.get(variable::CARREL_TOOLS) {
        let failed =
            |source| CliError::Start { doing: "reaching the tools of the session", source };
        return carrel_agent::relay(Path::new(socket)).map(|()| ExitCode::SUCCESS).map_err(failed);
    }
    let runtime = server_runtime()?;
    let served = runtime.block_on(serve(arguments, environment));
    // A thread may block on stdin, and nothing can wake it.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve(arguments: &McpArguments, environment: &Environment) -> Result<(), CliError> {
    let registry = Arc::new(toolbox::registry(&arguments.toolbox, environment).await?);
    toolbox::announce(&registry);
    let cancel = CancellationToken::new();
    let stopped = cancel_on_signal(&cancel)?;
    let tools = ToolServer::for_registry(Arc::clone(&registry), arguments.facts.into());
    let served = match arguments.http {
        None => serve_stdio(tools.for_stdio(), cancel).await.map_err(CliError::from),
        Some(address) => over_http(address, arguments, environment, tools, &registry, cancel).await,
    };
    stopped.abort();
    toolbox::close(&registry).await;
    served
}

async fn over_http(
    address: SocketAddr,
    arguments: &McpArguments,
    environment: &Environment,
    tools: ToolServer,
    registry: &Registry,
    cancel: CancellationToken,
) -> Result<(), CliError> {
    let failed = |source| CliError::Listen { address: address.to_string(), source };
    // Invalid options are refused before a client can connect.
    let options = options(address, arguments, environment)?;
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let names = registry.toolbox().workspaces.names().join(", ");
    output::note(&format!("carrel mcp listening on http://{address}/mcp (workspaces: {names})"));
    let handler = move |scope| tools.for_http(&scope);
    Ok(serve_http(listener, options, handler, cancel).await?)
}

fn options(
    address: SocketAddr,
    arguments: &McpArguments,
    environment: &Environment,
) -> Result<HttpOptions, CliError> {
    let mut options = HttpOptions::new(address, token(arguments, environment)?)?;
    for host in &arguments.allow_host {
        options = options.allow_host(host)?;
    }
    for origin in &arguments.allow_origin {
        options = options.allow_origin(origin)?;
    }
    Ok(options)
}

/// Reads the token: from a file, or from the environment.
fn token(
    arguments: &McpArguments,
    environment: &Environment,
) -> Result<Option<BearerToken>, CliError> {
    let text = match &arguments.token_file {
        Some(path) => Some(read_token(path)?),
        None => environment
            .get_str(carrel_config::environment::CARREL_MCP_TOKEN)
            .map(str::to_owned)
            .filter(|token| !token.is_empty()),
    };
    Ok(text.map(|text| BearerToken::new(text.trim())).transpose()?)
}

#[expect(clippy::disallowed_methods, reason = "an operator's file, in no workspace")]
pub(crate) fn read_token(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path)
        .map_err(|source| CliError::TokenFile { path: path.display().to_string(), source })
}
