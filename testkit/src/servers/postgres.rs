//! A PostgreSQL server.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use super::authority::TestAuthority;
use super::process::{READY, command, free_port, kill, listens, program, quit, remove, start};

const PROGRAMS: &str = "/usr/lib/postgresql";

/// User and group of the server when the tests run as root, which PostgreSQL refuses.
const NOBODY: (u32, u32) = (65534, 65534);

/// Enough for several stores in each of several tests that share a server.
const CONNECTIONS: &str = "max_connections=300";

/// A PostgreSQL server, stopped when it is dropped.
#[derive(Debug)]
pub struct PostgresServer {
    directory: TempDir,
    port: u16,
    durable: bool,
    encrypted: bool,
    child: Option<Child>,
    made: AtomicU32,
}

impl PostgresServer {
    /// Starts a server that does not sync to the disk.
    pub async fn start() -> Self {
        Self::begin(false).await
    }

    /// Starts a server that syncs to the disk, for tests that kill it.
    pub async fn start_durable() -> Self {
        Self::begin(true).await
    }

    /// Starts a server that offers encryption, with a certificate for a host that is signed with a hash function.
    /// Its user `bound` needs a password and encryption.
    pub async fn start_encrypted(authority: &TestAuthority, host: &str, hash: &str) -> Self {
        let mut this = Self::prepare(false);
        authority.issue(host, hash, &this.data());
        if let Some((user, group)) = user(&this.directory) {
            chown(this.data().join("server.key"), Some(user), Some(group)).unwrap();
            chown(this.data().join("server.pem"), Some(user), Some(group)).unwrap();
        }
        this.permit("hostssl all bound all scram-sha-256\nhost all bound all reject\nhost all all all trust\n");
        this.encrypted = true;
        this.restart().await;
        this
    }

    #[expect(clippy::disallowed_methods, reason = "a directory of the test's own")]
    fn permit(&self, rules: &str) {
        std::fs::write(self.data().join("pg_hba.conf"), rules).unwrap();
    }

    async fn begin(durable: bool) -> Self {
        let mut this = Self::prepare(durable);
        this.restart().await;
        this
    }

    fn prepare(durable: bool) -> Self {
        let directory = tempfile::Builder::new().prefix("carrel-pg-").tempdir().unwrap();
        let made = AtomicU32::new(0);
        let port = free_port();
        let this = Self { directory, port, durable, encrypted: false, child: None, made };
        if user(&this.directory).is_some() {
            chown(this.directory.path(), Some(NOBODY.0), Some(NOBODY.1)).unwrap();
        }
        let mut initialise = command(&program("initdb", PROGRAMS), user(&this.directory));
        initialise.arg("-D").arg(this.data());
        initialise.args(["-U", "carrel", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        assert!(initialise.status().unwrap().success(), "initdb failed");
        this
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Returns the port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL of the database `postgres`.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    fn url_of(&self, database: &str) -> String {
        format!("postgresql://carrel:secret@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates a database, as a copy of another if one is named, and returns its URL.
    pub async fn database(&self, copy_of: Option<&str>) -> String {
        let name = format!("test_{}", self.made.fetch_add(1, Ordering::Relaxed));
        let template = copy_of.map(|url| format!(" TEMPLATE {}", url.rsplit('/').next().unwrap()));
        let make = format!("CREATE DATABASE {name}{}", template.unwrap_or_default());
        self.client().await.expect("the server is ready").batch_execute(&make).await.unwrap();
        self.url_of(&name)
    }

    /// Kills the server without a shutdown.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            kill(&mut child);
        }
    }

    /// Starts the server again with its data.
    pub async fn restart(&mut self) {
        self.kill();
        let until = Instant::now() + READY;
        // The backends of a killed server take a moment to end.
        while Instant::now() < until {
            let mut child = start(self.server());
            if listens(&mut child, self.port) && self.is_ready(&mut child).await {
                self.child = Some(child);
                return;
            }
            kill(&mut child);
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("PostgreSQL does not start in {}", self.data().display());
    }

    fn server(&self) -> std::process::Command {
        let mut server = command(&program("postgres", PROGRAMS), user(&self.directory));
        server.arg("-D").arg(self.data()).arg("-k").arg(self.directory.path());
        server.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-c", CONNECTIONS]);
        if !self.durable {
            server.args(["-c", "fsync=off", "-c", "full_page_writes=off"]);
        }
        if self.encrypted {
            server.args(["-c", "ssl=on", "-c", "ssl_cert_file=server.pem"]);
            server.args(["-c", "ssl_key_file=server.key"]);
        }
        server
    }

    async fn is_ready(&self, child: &mut Child) -> bool {
        let until = Instant::now() + READY;
        while Instant::now() < until && child.try_wait().unwrap().is_none() {
            if self.client().await.is_ok() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    /// Connects as the superuser.
    pub async fn client(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

/// Returns the user and group to run as: those of the directory's owner, unless that is root.
#[expect(clippy::disallowed_methods, reason = "a directory of the test's own")]
fn user(directory: &TempDir) -> Option<(u32, u32)> {
    let owner = std::fs::metadata(directory.path()).unwrap().uid();
    (owner == 0 || owner == NOBODY.0).then_some(NOBODY)
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            quit(&mut child);
        }
        remove(self.directory.path());
    }
}
