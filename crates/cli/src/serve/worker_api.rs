//! The HTTP interface of a worker: health for monitoring, and its workspaces for servers that show the
//! internal token.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use carrel_api::auth::{Authority, InternalToken, RateLimitOptions, Transport};
use carrel_api::{Api, ApiOptions, AuthMode, WorkerHealth, serve_worker};
use carrel_client::ServerUrl;
use carrel_config::Environment;
use carrel_config::environment::{CARREL_WORKER_URL, WORKER_BIND_HOST, WORKER_HEALTH_PORT};
use carrel_domain::{Secret, SystemClock};
use carrel_github::GitHub;
use carrel_service::{HostedWorkspaces, Tasks, Worker};
use carrel_tools::AuditLog;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::settings::{Settings, number, word};
use crate::error::CliError;

const PORT: u64 = 8081;

#[derive(Debug)]
pub(crate) struct WorkerListener {
    listener: TcpListener,
    token: Option<Secret>,
    /// The URL that other servers reach it at; none without a token, since it then serves loopback only.
    pub(crate) address: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerContext<'a> {
    pub(crate) tasks: &'a Tasks,
    pub(crate) spaces: &'a HostedWorkspaces,
    pub(crate) hosts: &'a Arc<[String]>,
    pub(crate) events: &'a AuditLog,
    pub(crate) github: &'a GitHub,
}

impl WorkerListener {
    pub(crate) fn is_configured(environment: &Environment) -> bool {
        word(environment, WORKER_HEALTH_PORT).is_some()
    }

    /// Binds the port: on loopback, or on all addresses where there is an internal token.
    pub(crate) async fn open(
        environment: &Environment,
        settings: &Settings,
    ) -> Result<Self, CliError> {
        let token = settings.internal_token.clone();
        let port = number(environment, WORKER_HEALTH_PORT, PORT, (0, u64::from(u16::MAX)))?;
        let port = u16::try_from(port).unwrap_or(0);
        let host = host(environment, token.is_some())?;
        let failed = |source| CliError::Listen { address: format!("{host}:{port}"), source };
        let listener = TcpListener::bind((host, port)).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let address = match (&token, named(environment)?) {
            (None, _) => None,
            (Some(_), Some(named)) => Some(named),
            (Some(_), None) => Some(advertised_url(bound)),
        };
        Ok(Self { listener, token, address })
    }

    pub(crate) fn bound(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    pub(crate) async fn serve(
        self,
        worker: &Worker,
        context: WorkerContext<'_>,
        sandbox: Value,
        stop: &CancellationToken,
    ) {
        let WorkerContext { tasks, spaces, hosts, events, github } = context;
        let health = WorkerHealth {
            worker: worker.id().clone(),
            volume: spaces.root().to_owned(),
            slots: worker.slots().clone(),
            sandbox,
        };
        let token = self.token.unwrap_or_else(|| Secret::new(""));
        let api = Api::new(ApiOptions {
            tasks: tasks.clone(),
            spaces: spaces.clone(),
            authority: Authority::with_random_secret(),
            provider: None,
            console: None,
            transport: Transport::Network,
            clock: Arc::new(SystemClock),
            rates: RateLimitOptions::default(),
            hosts: Arc::clone(hosts),
            events: events.clone(),
            credentials: None,
            github: github.clone(),
            auth_mode: AuthMode::Internal(InternalToken::new(&token)),
            worker_proxy: None,
            slots: Some(worker.slots().clone()),
            stop: stop.clone(),
        });
        serve_worker(self.listener, api, health).await;
    }
}

/// Returns the address to bind. Without a token it has to be a loopback address, and only health is
/// served there.
fn host(environment: &Environment, has_token: bool) -> Result<IpAddr, CliError> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let Some(text) = word(environment, WORKER_BIND_HOST) else {
        return Ok(if has_token { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { loopback });
    };
    let host = if text == "localhost" { Ok(loopback) } else { text.parse::<IpAddr>() };
    let host = host.map_err(|_| CliError::Variable {
        name: WORKER_BIND_HOST,
        value: text.clone(),
        expected: "an address of this machine, such as 0.0.0.0".to_owned(),
    })?;
    if !has_token && !host.to_canonical().is_loopback() {
        return Err(CliError::OpenWorker { host });
    }
    Ok(host)
}

fn named(environment: &Environment) -> Result<Option<String>, CliError> {
    let Some(text) = word(environment, CARREL_WORKER_URL) else { return Ok(None) };
    let server: ServerUrl = text.parse().map_err(|error| CliError::Variable {
        name: CARREL_WORKER_URL,
        value: text.clone(),
        expected: format!("an address: {error}"),
    })?;
    Ok(Some(server.to_string()))
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
