//! The HTTP API of `carrel run --port`: state, events and operator commands.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use carrel_api::auth::{Authority, KEY_FILE};
use carrel_api::{ConductorApi, ConductorOptions, HostRules, serve_conductor};
use carrel_conductor::drive::Handle;
use carrel_config::environment::{CARREL_TOKEN_SECRET, CARREL_WEBHOOK_SECRET};
use carrel_config::{Environment, ServerConfig};
use carrel_domain::{Secret, SystemClock};
use tokio::net::{TcpListener, lookup_host};
use tokio_util::sync::CancellationToken;

use crate::error::{CliError, Result};
use crate::output;
use crate::serve::settings::{self, word};

/// A bound listener with the keys that its callers are checked against.
pub(super) struct RunApi {
    listener: TcpListener,
    address: SocketAddr,
    authority: Authority,
    webhook: Option<Secret>,
    host_rules: HostRules,
}

impl RunApi {
    /// Binds the port of the command line, else that of the workflow file; none if neither names one. An
    /// address that other machines can reach is refused until there is a key for tokens.
    pub(super) async fn open(
        port: Option<u16>,
        config: &ServerConfig,
        environment: &Environment,
        data: &Path,
    ) -> Result<Option<Self>> {
        let Some(port) = port.or(config.port) else { return Ok(None) };
        let failed = CliError::listen(format!("{}:{port}", config.host));
        let address = lookup_host((config.host.as_str(), port)).await.map_err(&failed)?.next();
        let unresolved = || failed(std::io::Error::other("the host has no address"));
        let address = address.ok_or_else(unresolved)?;
        let has_key =
            word(environment, CARREL_TOKEN_SECRET).is_some() || data.join(KEY_FILE).exists();
        if !address.ip().to_canonical().is_loopback() && !has_key {
            return Err(CliError::no_key(address));
        }
        let authority = Authority::load(environment, data)?;
        let listener = TcpListener::bind(address).await.map_err(&failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let webhook = word(environment, CARREL_WEBHOOK_SECRET).map(Secret::new);
        let host_rules = settings::host_rules(address, environment)?;
        Ok(Some(Self { listener, address, authority, webhook, host_rules }))
    }

    pub(super) fn announce(&self) {
        let address = self.address;
        output::note(&format!(
            "carrel run listening on http://{address}; `carrel token new --all` makes a token for it"
        ));
    }

    pub(super) async fn serve(self, handle: Handle, stop: CancellationToken) {
        let Self { listener, authority, webhook, host_rules, .. } = self;
        let clock = Arc::new(SystemClock);
        let options = ConductorOptions { handle, authority, webhook, host_rules, clock, stop };
        serve_conductor(listener, ConductorApi::new(options)).await;
    }
}
