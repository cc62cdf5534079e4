//! The HTTP interface of a worker: health for monitoring, and its workspaces for servers that show the
//! internal token.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use carrel_api::auth::{Authority, InternalToken, RateLimitOptions, Transport};
use carrel_api::{Api, ApiOptions, AuthMode, HostRules, WorkerHealth, serve_worker};
use carrel_config::Environment;
use carrel_config::environment::{CARREL_WORKER_URL, WORKER_BIND_HOST, WORKER_HEALTH_PORT};
use carrel_domain::{Code, Secret, SystemClock};
use carrel_service::Worker;
use serde_json::json;
use tokio::net::TcpListener;

use super::lifecycle::ServerProcess;
use super::settings::{Settings, number, server_url, word};
use crate::error::{CliError, Result};

const PORT: u64 = 8081;

#[derive(Debug)]
pub(crate) struct WorkerListener {
    listener: TcpListener,
    token: Option<Secret>,
    /// The URL that other servers reach it at; none without a token, since it then serves loopback only.
    pub(crate) address: Option<String>,
}

impl WorkerListener {
    /// Binds the port: on loopback, or on all addresses where there is an internal token.
    pub(crate) async fn open(environment: &Environment, settings: &Settings) -> Result<Self> {
        let token = settings.internal_token.clone();
        let port = number(environment, WORKER_HEALTH_PORT, (0, u64::from(u16::MAX)))?;
        let port = u16::try_from(port.unwrap_or(PORT)).unwrap_or(0);
        let host = host(environment, token.is_some())?;
        let failed = CliError::listen(format!("{host}:{port}"));
        let listener = TcpListener::bind((host, port)).await.map_err(&failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let named = server_url(environment, CARREL_WORKER_URL)?.map(|named| named.to_string());
        let address = token.as_ref().map(|_| named.unwrap_or_else(|| advertised_url(bound)));
        Ok(Self { listener, token, address })
    }

    pub(crate) fn bound(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    pub(crate) async fn serve(self, worker: &Worker, process: &ServerProcess) {
        let spaces = &process.volume.spaces;
        let health = WorkerHealth {
            worker: worker.id().clone(),
            volume: spaces.root().to_owned(),
            slots: worker.slots().clone(),
            sandbox: process.volume.diagnosis().await,
        };
        let token = self.token.unwrap_or_else(|| Secret::new(""));
        let api = Api::new(ApiOptions {
            tasks: process.backend.tasks.clone(),
            spaces: spaces.clone(),
            authority: Authority::with_random_secret(),
            provider: None,
            console: None,
            transport: Transport::Network,
            host_rules: HostRules::internal(),
            clock: Arc::new(SystemClock),
            rates: RateLimitOptions::default(),
            hosts: Arc::clone(&process.hosts),
            events: process.volume.events.clone(),
            credentials: None,
            github: process.github.clone(),
            auth_mode: AuthMode::Internal(InternalToken::new(&token)),
            worker_proxy: None,
            slots: Some(worker.slots().clone()),
            stop: process.stop.clone(),
        });
        serve_worker(self.listener, api, health).await;
    }
}

/// Returns the address to bind. Without a token it has to be a loopback address, and only health is
/// served there.
fn host(environment: &Environment, has_token: bool) -> Result<IpAddr> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let Some(text) = word(environment, WORKER_BIND_HOST) else {
        return Ok(if has_token { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { loopback });
    };
    let host = if text == "localhost" { Ok(loopback) } else { text.parse::<IpAddr>() };
    let host = host.map_err(|_| {
        let expected = "an address of this machine, such as 0.0.0.0";
        CliError::variable(WORKER_BIND_HOST, &text, expected)
    })?;
    if !has_token && !host.to_canonical().is_loopback() {
        let message = format!(
            "WORKER_BIND_HOST={host} lets other machines reach the worker, and there is no token to keep strangers out; set WORKER_INTERNAL_TOKEN, or unset WORKER_BIND_HOST"
        );
        let detail = json!({ "host": host.to_string() });
        return Err(CliError::new(Code::Usage, message).with(detail));
    }
    Ok(host)
}

/// Returns the URL of a bound address, with the host's name if all addresses are bound.
fn advertised_url(bound: SocketAddr) -> String {
    if !bound.ip().is_unspecified() {
        return format!("http://{bound}");
    }
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("http://{name}:{}", bound.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn without_a_token_only_this_machine_gets_in() {
        let read = |value: Option<&str>, token| {
            let pairs = value.map(|value| ("WORKER_BIND_HOST", value));
            host(&Environment::from_pairs(pairs), token)
                .map(|host| host.to_string())
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(None, false), Ok("127.0.0.1".to_owned()));
        assert_eq!(read(None, true), Ok("0.0.0.0".to_owned()));
        assert_eq!(read(Some("localhost"), false), Ok("127.0.0.1".to_owned()));
        assert_eq!(read(Some("10.0.0.1"), true), Ok("10.0.0.1".to_owned()));
        for host in ["0.0.0.0", "10.0.0.1", "::"] {
            let error = read(Some(host), false).unwrap_err();
            assert!(error.contains("WORKER_INTERNAL_TOKEN") && error.contains(host), "{error}");
        }
        assert!(read(Some("odd host"), true).unwrap_err().contains("WORKER_BIND_HOST"));
    }

    #[test]
    fn others_find_a_worker_by_what_it_listens_at() {
        assert_eq!(advertised_url("127.0.0.1:81".parse().unwrap()), "http://127.0.0.1:81");
        assert_eq!(advertised_url("[::1]:81".parse().unwrap()), "http://[::1]:81");
        let everywhere = advertised_url("0.0.0.0:81".parse().unwrap());
        assert!(!everywhere.contains("0.0.0.0") && everywhere.ends_with(":81"), "{everywhere}");
    }
}
