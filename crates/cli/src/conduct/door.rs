//! The HTTP interface of a conductor.

use std::path::Path;
use std::sync::Arc;

use carrel_api::auth::Authority;
use carrel_api::{ConductorApi, ConductorOptions, serve_conductor};
use carrel_conductor::drive::Handle;
use carrel_config::{Environment, environment};
use carrel_domain::{Clock, Secret};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::output;

/// An open door. It is closed with [`Door::close`].
#[derive(Debug)]
pub(super) struct Door {
    serving: JoinHandle<()>,
    stop: CancellationToken,
}

impl Door {
    /// Opens a door if the command line or the workflow file wants one.
    pub(super) async fn open(
        handle: Handle,
        port: Option<u16>,
        data: &Path,
        environment: &Environment,
        clock: Arc<dyn Clock>,
    ) -> Result<Option<Self>, Failure> {
        let workflow = handle.workflow();
        let Some(conductor) = &workflow.config.conductor else { return Ok(None) };
        let server = &conductor.server;
        let Some(port) = port.or(server.port) else { return Ok(None) };
        let authority = Authority::load(environment, data)?;
        let listening = |source| Failure::Start { doing: "listening", source };
        let listener = TcpListener::bind((server.host.as_str(), port)).await.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let stop = CancellationToken::new();
        let webhook = environment.get_str(environment::CARREL_WEBHOOK_SECRET).map(Secret::new);
        let options = ConductorOptions { handle, authority, webhook, clock, stop: stop.clone() };
        let serving = tokio::spawn(serve_conductor(listener, ConductorApi::new(options)));
        let data = data.display();
        output::note(&format!(
            "it answers on http://{address}/api/v1/state to tokens of `carrel token new --data {data} --all`"
        ));
        Ok(Some(Self { serving, stop }))
    }

    /// Lets what is open end, for a moment.
    pub(super) async fn close(self) {
        self.stop.cancel();
        // It ends by itself, after its own grace.
        let _ = self.serving.await;
    }
}
