//! `carrel mcp`: the tools over the Model Context Protocol, on stdio or HTTP.
//!
//! stdout belongs to the protocol; everything for people goes to stderr. Over HTTP clients send a token, since
//! every user of the machine can connect to a loopback port: the operator's, or one that is generated and
//! printed. An address that other machines can reach needs the operator's, which is checked before the port is
//! bound.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use carrel_config::{Environment, environment as variable};
use carrel_domain::{Code, Secret, hex};
use carrel_mcp::{
    Authentication, BearerToken, CallPath, ConformanceFixtures, HttpError, HttpOptions, RootsMode,
    ToolServer, WithFixtures, serve_http, serve_stdio,
};
use carrel_runner::state_directory;
use carrel_tools::{Registry, ToolSelection};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::arguments::McpArguments;
use crate::error::{CliError, Result};
use crate::sandbox::OverQuota;
use crate::signals::cancel_on_signal;
use crate::{output, run_server, toolbox};

/// The directory with records and logs of jobs, in the state directory.
const JOBS: &str = "jobs";

/// Random bytes of a generated token, which make guessing hopeless.
const TOKEN_BYTES: usize = 16;

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
    let (options, unless_chosen) = (&arguments.toolbox, ToolSelection::DEFAULT);
    let registry =
        toolbox::registry(options, environment, OverQuota::Refused, unless_chosen).await?;
    let registry = Arc::new(registry);
    toolbox::announce(&registry);
    if let Some(state) = state_directory(environment) {
        registry.toolbox().keep_jobs(state.join(JOBS));
    }
    let cancel = CancellationToken::new();
    let stopped = cancel_on_signal(&cancel)?;
    let roots = if arguments.ignore_roots { RootsMode::Ignore } else { RootsMode::Narrow };
    let tools = ToolServer::for_registry(Arc::clone(&registry), arguments.facts)
        .with_definitions(arguments.definitions)
        .with_roots(roots);
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
    let (mut options, generated) = options(address, arguments, environment)?;
    let listener = TcpListener::bind(address).await.map_err(&failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let names = registry.toolbox().workspaces.names().join(", ");
    output::note(&format!("carrel mcp listening on http://{address}/mcp (workspaces: {names})"));
    if let Some(token) = generated {
        let header = format!("Authorization: Bearer {}", token.expose());
        output::note(&format!("clients must send this header until it ends: {header}"));
    }
    let served = if let Some(replies) = arguments.conformance_fixtures {
        options.reply_format = replies;
        // Some fixtures send messages of their own during a call.
        options.call_path = CallPath::Service;
        let fixtures = ConformanceFixtures::default();
        let handler = move |scope| WithFixtures::new(tools.for_http(&scope), &fixtures);
        serve_http(listener, options, handler, cancel).await
    } else {
        let handler = move |scope| tools.for_http(&scope);
        serve_http(listener, options, handler, cancel).await
    };
    served.map_err(|error| match error {
        HttpError::Options(_) => CliError::usage(error),
        HttpError::Listener(_) => CliError::of(Code::Io, &error),
    })
}

fn options(
    address: SocketAddr,
    arguments: &McpArguments,
    environment: &Environment,
) -> Result<(HttpOptions, Option<Secret>)> {
    let (authentication, generated) = authentication(address, arguments, environment)?;
    let mut options = HttpOptions::new(address, authentication).map_err(CliError::usage)?;
    options.call_path = CallPath::Direct;
    for host in &arguments.allow_host {
        options = options.allow_host(host).map_err(CliError::usage)?;
    }
    for origin in &arguments.allow_origin {
        options = options.allow_origin(origin).map_err(CliError::usage)?;
    }
    Ok((options, generated))
}

/// Returns the proof that clients send, and the token if it was generated here: for a loopback address to
/// which the operator gave none.
fn authentication(
    address: SocketAddr,
    arguments: &McpArguments,
    environment: &Environment,
) -> Result<(Authentication, Option<Secret>)> {
    let bearer = |text: &str| {
        BearerToken::new(text.trim()).map(Authentication::Bearer).map_err(CliError::usage)
    };
    if arguments.no_token {
        return Ok((Authentication::Unauthenticated, None));
    }
    match given_token(arguments, environment)? {
        Some(text) => Ok((bearer(&text)?, None)),
        None if address.ip().to_canonical().is_loopback() => {
            let token = generate_token()?;
            Ok((bearer(token.expose())?, Some(token)))
        }
        None => Ok((Authentication::Unauthenticated, None)),
    }
}

/// Reads the operator's token: from a file, or from the environment.
fn given_token(arguments: &McpArguments, environment: &Environment) -> Result<Option<String>> {
    if let Some(path) = &arguments.token_file {
        return read_token(path).map(Some);
    }
    let token = environment.get_str(variable::CARREL_MCP_TOKEN).map(str::to_owned);
    Ok(token.filter(|token| !token.is_empty()))
}

fn generate_token() -> Result<Secret> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| CliError::of(Code::Io, &error))?;
    Ok(Secret::new(hex::encode(&bytes)))
}

#[expect(clippy::disallowed_methods, reason = "an operator's file, in no workspace")]
pub(crate) fn read_token(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        let subject = format!("could not read the token in {}", path.display());
        CliError::of(Code::Io, &error).context(subject).at(path)
    })
}
