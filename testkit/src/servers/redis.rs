//! A Redis server.

use std::process::Child;
use std::time::Duration;

use tempfile::TempDir;

use super::process::{command, free_port, kill, listens, program, start};

/// A Redis server that forgets everything when it ends, gone with this value.
#[derive(Debug)]
pub struct Redis {
    directory: TempDir,
    port: u16,
    child: Option<Child>,
}

impl Redis {
    /// Starts a server.
    pub fn start() -> Self {
        let directory = tempfile::Builder::new().prefix("carrel-redis-").tempdir().unwrap();
        let mut this = Self { directory, port: free_port(), child: None };
        this.restart();
        this
    }

    /// Returns the port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the address of the server.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Ends the server at once.
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
            server.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"]);
            server.args(["--save", "", "--appendonly", "no", "--daemonize", "no", "--dir"]);
            server.arg(self.directory.path());
            let mut child = start(server);
            if listens(&mut child, self.port) {
                self.child = Some(child);
                return;
            }
            kill(&mut child);
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("Redis does not start on port {}", self.port);
    }
}

impl Drop for Redis {
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
    fn a_server_answers_until_it_is_killed_and_again_after_a_restart() {
        let mut server = Redis::start();
        for _ in 0..2 {
            let mut client = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
            client.write_all(b"PING\r\n").unwrap();
            let mut answer = [0; 7];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"+PONG\r\n");
            server.kill();
            assert!(TcpStream::connect(("127.0.0.1", server.port())).is_err());
            server.restart();
        }
    }
}
