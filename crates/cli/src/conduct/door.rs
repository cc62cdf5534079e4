//! The API of `carrel run`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use carrel_api::auth::{Authority, KEY_FILE};
use carrel_api::{ConductorApi, ConductorOptions, serve_conductor};
use carrel_conductor::drive::Handle;
use carrel_config::environment::{CARREL_TOKEN_SECRET, CARREL_WEBHOOK_SECRET};
use carrel_config::{Environment, ServerConfig};
use carrel_domain::{Secret, SystemClock};
use tokio::net::{TcpListener, lookup_host};
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::output;
use crate::serve::settings::word;

/// Where programs look at the conductor, and give it orders.
pub(super) struct Door {
    listener: TcpListener,
    address: SocketAddr,
    authority: Authority,
    webhook: Option<Secret>,
}

impl Door {
    /// Listens where the command line or the workflow file says, if one of them does.
    pub(super) async fn open(
        port: Option<u16>,
        config: &ServerConfig,
        environment: &Environment,
        data: &Path,
    ) -> Result<Option<Self>, Failure> {
        let Some(port) = port.or(config.port) else { return Ok(None) };
        let failed =
            |source| Failure::Listen { address: format!("{}:{port}", config.host), source };
        let wanted = lookup_host((config.host.as_str(), port)).await.map_err(failed)?.next();
        let nowhere = || failed(std::io::Error::other("the host has no address"));
        let wanted = wanted.ok_or_else(nowhere)?;
        let has_key =
            word(environment, CARREL_TOKEN_SECRET).is_some() || data.join(KEY_FILE).exists();
        if !wanted.ip().to_canonical().is_loopback() && !has_key {
            return Err(Failure::NoKey { address: wanted });
        }
        let authority = Authority::load(environment, data)?;
        let listener = TcpListener::bind(wanted).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let webhook = word(environment, CARREL_WEBHOOK_SECRET).map(Secret::new);
        Ok(Some(Self { listener, address, authority, webhook }))
    }

    /// Says where it is.
    pub(super) fn announce(&self) {
        let address = self.address;
        output::note(&format!(
            "carrel run listening on http://{address}; `carrel token new --all` makes a token for it"
        ));
    }

    /// Answers until it is told to stop.
    pub(super) async fn serve(self, handle: Handle, stop: CancellationToken) {
        let Self { listener, authority, webhook, .. } = self;
        let clock = Arc::new(SystemClock);
        let options = ConductorOptions { handle, authority, webhook, clock, stop };
        serve_conductor(listener, ConductorApi::new(options)).await;
    }
}
