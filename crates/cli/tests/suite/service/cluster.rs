//! Servers and workers that share a PostgreSQL and a Redis of their own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use carrel_testkit::servers::{PostgresServer, RedisServer};
use rustix::process::Signal;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::test_environment::{Client, DEADLINE, Service, new_id};
use crate::interfaces::Server;
use crate::test_environment::TestEnvironment;

/// What servers and workers show each other.
pub(crate) const TOKEN: &str = "internal-token-of-the-tests";

/// What signs the tokens of all servers.
const SECRET: &str = "a secret of the tests that has enough bytes";

/// A PostgreSQL and a Redis server, with the volumes of the workers.
pub(crate) struct Cluster {
    runtime: Runtime,
    pub(crate) postgres: PostgresServer,
    pub(crate) redis: RedisServer,
    test_env: TestEnvironment,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        Self::with(RedisServer::start())
    }

    pub(crate) fn with(redis: RedisServer) -> Self {
        let runtime = Runtime::new().unwrap();
        let postgres = runtime.block_on(PostgresServer::start());
        Self { runtime, postgres, redis, test_env: TestEnvironment::usual() }
    }

    pub(crate) fn restart_postgres(&mut self) {
        self.runtime.block_on(self.postgres.restart());
    }

    /// The environment of a process, and more.
    fn variables(&self, more: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = [
            ("DATABASE_URL", self.postgres.url()),
            ("REDIS_URL", self.redis.url()),
            ("WORKER_INTERNAL_TOKEN", TOKEN.to_owned()),
            ("WORKER_BIND_HOST", "127.0.0.1".to_owned()),
            ("WORKER_HEALTH_PORT", "0".to_owned()),
            ("CARREL_TOKEN_SECRET", SECRET.to_owned()),
            ("CARREL_LEASE_SECONDS", "3".to_owned()),
        ];
        let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
        own.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Starts a server without a worker of its own, and waits until it is ready.
    pub(crate) fn api(&self, more: &[(&str, &str)]) -> Service {
        let service = self.serve(&["--no-worker"], more);
        until_ready(&service.stranger(), "ready");
        service
    }

    /// Starts a server.
    pub(crate) fn serve(&self, options: &[&str], more: &[(&str, &str)]) -> Service {
        let variables = self.variables(more);
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Service::start_as(options, &variables)
    }

    /// The directory of a volume.
    pub(crate) fn volume(&self, name: &str) -> PathBuf {
        self.test_env.path(name)
    }

    /// Starts a worker of a volume.
    pub(crate) fn worker(&self, volume: &str, more: &[(&str, &str)]) -> WorkerProcess {
        let mut command = self.test_env.carrel();
        // It needs nothing but its volume.
        command.arg("worker").current_dir("/");
        command.env("WORKSPACE_VOLUME_PATH", self.volume(volume));
        command.envs(self.variables(more));
        WorkerProcess::start(command)
    }
}

/// Waits until a server says that it is this.
pub(crate) fn until_ready(client: &Client, status: &str) -> Value {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let said = client.get("/readyz");
        if said.json()["status"] == status {
            assert_eq!(said.status == 503, status == "not_ready", "{said:?}");
            return said.json();
        }
        assert!(Instant::now() < deadline, "it never says {status}: {said:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A running `carrel worker`.
pub(crate) struct WorkerProcess {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    pub(crate) id: String,
}

impl WorkerProcess {
    fn start(command: std::process::Command) -> Self {
        let mut server = Server::start(command, Stdio::null(), Stdio::null());
        let deadline = Instant::now() + DEADLINE;
        loop {
            let text = server.stderr();
            let said = text.lines().find_map(|line| line.strip_prefix("carrel worker "));
            if let Some((id, address)) =
                said.and_then(|said| said.split_once(" listening on http://"))
            {
                return Self { server, address: address.parse().unwrap(), id: id.to_owned() };
            }
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "it does not work: {text}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends it without warning.
    pub(crate) fn kill(&mut self) {
        self.server.signal(Signal::KILL);
        self.server.wait(DEADLINE);
    }

    /// Asks it to end, and returns how long that took.
    pub(crate) fn terminate(&mut self) -> Duration {
        let begun = Instant::now();
        self.server.signal(Signal::TERM);
        let status = self.server.wait(DEADLINE);
        assert!(status.success(), "{status:?}: {}", self.server.stderr());
        begun.elapsed()
    }

    /// A client of its own endpoint.
    pub(crate) fn client(&self) -> Client {
        Client { address: self.address, token: None, workspace: new_id() }
    }
}

/// Tells whether a volume holds the directory of a workspace.
pub(crate) fn holds(volume: &Path, workspace: &str) -> bool {
    volume.join(workspace).is_dir()
}
