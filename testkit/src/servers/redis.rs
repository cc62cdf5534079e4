//! A Redis server.

use std::process::Child;
use std::time::Duration;

use tempfile::TempDir;

use super::authority::TestAuthority;
use super::process::{command, free_port, kill, listens, program, start};

/// A Redis server without persistence, stopped when it is dropped.
#[derive(Debug)]
pub struct RedisServer {
    directory: TempDir,
    port: u16,
    encrypted: bool,
    child: Option<Child>,
}

impl RedisServer {
    /// Starts a server.
    pub fn start() -> Self {
        let mut this = Self::prepare();
        this.restart();
        this
    }

    /// Starts a server that accepts encrypted connections alone, with a certificate for a host.
    pub fn start_encrypted(authority: &TestAuthority, host: &str) -> Self {
        let mut this = Self::prepare();
        this.encrypted = true;
        authority.issue(host, "sha256", this.directory.path());
        this.restart();
        this
    }

    fn prepare() -> Self {
        let directory = tempfile::Builder::new().prefix("carrel-redis-").tempdir().unwrap();
        Self { directory, port: free_port(), encrypted: false, child: None }
    }

    /// Returns the port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        let start = if self.encrypted { "rediss://localhost" } else { "redis://127.0.0.1" };
        format!("{start}:{}/0", self.port)
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            kill(&mut child);
        }
    }

    /// Starts the server again, empty.
    pub fn restart(&mut self) {
        self.kill();
        for _ in 0..20 {
            let mut server = command(&program("redis-server", "/opt/redis"), None);
            let port = self.port.to_string();
            let files = self.directory.path();
            if self.encrypted {
                server.args(["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"]);
                server.arg("--tls-cert-file").arg(files.join("server.pem"));
                server.arg("--tls-key-file").arg(files.join("server.key"));
            } else {
                server.args(["--port", &port]);
            }
            server.args(["--bind", "127.0.0.1"]);
            server.args(["--save", "", "--appendonly", "no", "--daemonize", "no", "--dir"]);
            server.arg(self.directory.path());
            let mut child = start(server);
            if listens(&mut child, self.port) {
                self.child = Some(child);
                return;
            }
            kill(&mut child);
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("Redis does not start on port {}", self.port);
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_server_replies_until_it_is_killed_and_again_after_a_restart() {
        let mut server = RedisServer::start();
        for _ in 0..2 {
            let mut client = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
            client.write_all(b"PING\r\n").unwrap();
            let mut reply = [0; 7];
            client.read_exact(&mut reply).unwrap();
            assert_eq!(&reply, b"+PONG\r\n");
            server.kill();
            assert!(TcpStream::connect(("127.0.0.1", server.port())).is_err());
            server.restart();
        }
    }
}
