//! The door of a worker, for other servers and for whoever asks after its health.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use carrel_api::auth::InternalToken;
use carrel_api::{Api, WorkerApiOptions, WorkerHealth, serve_worker};
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
use crate::failure::Failure;

/// The port of a worker.
const PORT: u64 = 8081;

/// The door of a worker.
#[derive(Debug)]
pub(crate) struct Door {
    listener: TcpListener,
    token: Option<Secret>,
    /// Where other servers find it; none if it lets no other in.
    pub(crate) address: Option<String>,
}

/// What is behind the door.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inside<'a> {
    pub(crate) tasks: &'a Tasks,
    pub(crate) spaces: &'a HostedWorkspaces,
    pub(crate) hosts: &'a Arc<[String]>,
    pub(crate) events: &'a AuditLog,
    pub(crate) github: &'a GitHub,
}

impl Door {
    /// Tells whether somebody named a port for it.
    pub(crate) fn is_wanted(environment: &Environment) -> bool {
        word(environment, WORKER_HEALTH_PORT).is_some()
    }

    /// Opens it: to this machine, or to others if they have a token to show.
    pub(crate) async fn open(
        environment: &Environment,
        settings: &Settings,
    ) -> Result<Self, Failure> {
        let token = settings.internal_token.clone();
        let port = number(environment, WORKER_HEALTH_PORT, PORT, (0, u64::from(u16::MAX)))?;
        let port = u16::try_from(port).unwrap_or(0);
        let host = host(environment, token.is_some())?;
        let failed = |source| Failure::Listen { address: format!("{host}:{port}"), source };
        let listener = TcpListener::bind((host, port)).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let address = match (&token, named(environment)?) {
            (None, _) => None,
            (Some(_), Some(named)) => Some(named),
            (Some(_), None) => Some(found_at(bound)),
        };
        Ok(Self { listener, token, address })
    }

    pub(crate) fn bound(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves until `stop` is cancelled.
    pub(crate) async fn serve(
        self,
        worker: &Worker,
        inside: Inside<'_>,
        sandbox: Value,
        stop: &CancellationToken,
    ) {
        let Inside { tasks, spaces, hosts, events, github } = inside;
        let health = WorkerHealth {
            worker: worker.id().clone(),
            volume: spaces.root().to_owned(),
            slots: worker.slots().clone(),
            sandbox,
        };
        let api = Api::new(
            WorkerApiOptions {
                tasks: tasks.clone(),
                spaces: spaces.clone(),
                token: InternalToken::new(&self.token.unwrap_or_else(|| Secret::new(""))),
                slots: worker.slots().clone(),
                hosts: Arc::clone(hosts),
                events: events.clone(),
                github: github.clone(),
                clock: Arc::new(SystemClock),
                stop: stop.clone(),
            }
            .into(),
        );
        serve_worker(self.listener, api, health).await;
    }
}

/// Returns where to listen. Without a token only this machine gets in, and it hears nothing but how the
/// worker is.
fn host(environment: &Environment, has_token: bool) -> Result<IpAddr, Failure> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let Some(text) = word(environment, WORKER_BIND_HOST) else {
        return Ok(if has_token { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { loopback });
    };
    let host = if text == "localhost" { Ok(loopback) } else { text.parse::<IpAddr>() };
    let host = host.map_err(|_| Failure::Variable {
        name: WORKER_BIND_HOST,
        value: text.clone(),
        expected: "an address of this machine, such as 0.0.0.0".to_owned(),
    })?;
    if !has_token && !host.to_canonical().is_loopback() {
        return Err(Failure::OpenWorker { host });
    }
    Ok(host)
}

fn named(environment: &Environment) -> Result<Option<String>, Failure> {
    let Some(text) = word(environment, CARREL_WORKER_URL) else { return Ok(None) };
    let server: ServerUrl = text.parse().map_err(|error| Failure::Variable {
        name: CARREL_WORKER_URL,
        value: text.clone(),
        expected: format!("an address: {error}"),
    })?;
    Ok(Some(server.to_string()))
}

/// Returns where others find what listens here: by the name of the machine, if it listens everywhere.
fn found_at(bound: SocketAddr) -> String {
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
        assert_eq!(found_at("127.0.0.1:81".parse().unwrap()), "http://127.0.0.1:81");
        assert_eq!(found_at("[::1]:81".parse().unwrap()), "http://[::1]:81");
        let everywhere = found_at("0.0.0.0:81".parse().unwrap());
        assert!(!everywhere.contains("0.0.0.0") && everywhere.ends_with(":81"), "{everywhere}");
    }
}
