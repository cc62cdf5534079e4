//! `carrel mcp`: the tools over the Model Context Protocol, on stdio or HTTP.
//!
//! stdout belongs to the protocol; everything for people goes to stderr. An address that other machines can
//! reach needs a token, which is checked before the port is bound.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use carrel_config::{Environment, environment as variable};
use carrel_domain::Code;
use carrel_mcp::{
    BearerToken, HttpError, HttpOptions, RootsMode, ToolServer, serve_http, serve_stdio,
};
use carrel_tools::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::arguments::McpArguments;
use crate::error::{CliError, Result};
use crate::signals::cancel_on_signal;
use crate::{output, run_server, toolbox};

/// Serves the tools until the client disconnects or a signal arrives. Inside an agent's sandbox, where no
/// command could be sandboxed again, it relays to the session that the agent belongs to instead.
pub(crate) fn run(arguments: &McpArguments, environment: &Environment) -> Result<ExitCode> {
    if let Some(socket) = environment.get(variable::CARREL_TOOLS) {
        let failed = CliError::start("reaching the tools of the session");
        return carrel_agent::relay(Path::new(socket)).map(|()| ExitCode::SUCCESS).map_err(failed);
    }
    run_server(serve(arguments, environment)).map(|()| ExitCode::SUCCESS)
}

async fn serve(arguments: &McpArguments, environment: &Environment) -> Result<()> {
    let registry = Arc::new(toolbox::registry(&arguments.toolbox, environment).await?);
    toolbox::announce(&registry);
    let cancel = CancellationToken::new();
    let stopped = cancel_on_signal(&cancel)?;
    let roots = if arguments.ignore_roots { RootsMode::Ignore } else { RootsMode::Narrow };
    let tools = ToolServer::for_registry(Arc::clone(&registry), arguments.facts).with_roots(roots);
    let served = match arguments.http {
        None => serve_stdio(tools.for_stdio(), cancel)
            .await
            .map_err(|error| CliError::of(Code::Io, &error)),
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
) -> Result<()> {
    let failed = CliError::listen(address);
    // Invalid options are refused before a client can connect.
    let options = options(address, arguments, environment)?;
    let listener = TcpListener::bind(address).await.map_err(&failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let names = registry.toolbox().workspaces.names().join(", ");
    output::note(&format!("carrel mcp listening on http://{address}/mcp (workspaces: {names})"));
    let handler = move |scope| tools.for_http(&scope);
    serve_http(listener, options, handler, cancel).await.map_err(|error| match error {
        HttpError::Options(_) => CliError::usage(error),
        HttpError::Listener(_) => CliError::of(Code::Io, &error),
    })
}

fn options(
    address: SocketAddr,
    arguments: &McpArguments,
    environment: &Environment,
) -> Result<HttpOptions> {
    let token = token(arguments, environment)?;
    let mut options = HttpOptions::new(address, token).map_err(CliError::usage)?;
    for host in &arguments.allow_host {
        options = options.allow_host(host).map_err(CliError::usage)?;
    }
    for origin in &arguments.allow_origin {
        options = options.allow_origin(origin).map_err(CliError::usage)?;
    }
    Ok(options)
}

/// Reads the token: from a file, or from the environment.
fn token(arguments: &McpArguments, environment: &Environment) -> Result<Option<BearerToken>> {
    let text = match &arguments.token_file {
        Some(path) => Some(read_token(path)?),
        None => environment
            .get_str(carrel_config::environment::CARREL_MCP_TOKEN)
            .map(str::to_owned)
            .filter(|token| !token.is_empty()),
    };
    text.map(|text| BearerToken::new(text.trim())).transpose().map_err(CliError::usage)
}

#[expect(clippy::disallowed_methods, reason = "an operator's file, in no workspace")]
pub(crate) fn read_token(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        let subject = format!("could not read the token in {}", path.display());
        CliError::of(Code::Io, &error).context(subject).at(path)
    })
}
