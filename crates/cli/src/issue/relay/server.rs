//! The side of `carrel run`: answers hooks from the store.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::message_of;
use carrel_store::{IssueStore, StoreError};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::debug;

use super::{KEY, MAX_MESSAGE_BYTES, RelayOperation, Request, SOCKET, directory};

/// Connections that are served at once; more wait.
const MAX_CONNECTIONS: usize = 16;

/// Bounds the time for reading a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct RelayServer {
    listener: UnixListener,
    issues: Arc<dyn IssueStore>,
    key: String,
}

impl RelayServer {
    /// Listens in a data directory, replacing the socket and key of an earlier process. The socket stays
    /// after the end: it marks that the issues are in a database.
    #[expect(clippy::disallowed_methods, reason = "the server's own directory, in no workspace")]
    pub(crate) fn open(data: &Path, issues: Arc<dyn IssueStore>) -> io::Result<Self> {
        close(data)?;
        let directory = directory(data);
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let key = format!("{:032x}", u128::from_ne_bytes(bytes));
        let options = File::options().create_new(true).write(true).mode(0o600).clone();
        options.open(directory.join(KEY))?.write_all(key.as_bytes())?;
        // A socket address holds 108 bytes, fewer than a directory's path may have.
        let directory = File::open(directory)?;
        let listener =
            UnixListener::bind(format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd()))?;
        Ok(Self { listener, issues, key })
    }

    pub(crate) async fn run(self) {
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let (issues, key): (Arc<dyn IssueStore>, Arc<str>) = (self.issues, self.key.into());
        let mut connections = JoinSet::new();
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            let Ok((stream, _)) = self.listener.accept().await else { return };
            let (issues, key) = (Arc::clone(&issues), Arc::clone(&key));
            connections.spawn(async move {
                let _permit = permit;
                if let Err(error) = serve(stream, &*issues, &key).await {
                    debug!(%error, "lost the connection of a hook");
                }
            });
            while connections.try_join_next().is_some() {}
        }
    }
}

/// Removes the socket and the key: the issues of the data directory are no longer in a database.
#[expect(clippy::disallowed_methods, reason = "the server's own directory, in no workspace")]
pub(crate) fn close(data: &Path) -> io::Result<()> {
    for name in [KEY, SOCKET] {
        match std::fs::remove_file(directory(data).join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

async fn serve(mut stream: UnixStream, issues: &dyn IssueStore, key: &str) -> io::Result<()> {
    let mut received = Vec::new();
    let mut request = (&mut stream).take(MAX_MESSAGE_BYTES);
    tokio::time::timeout(REQUEST_TIMEOUT, request.read_to_end(&mut received)).await??;
    let reply = match serde_json::from_slice::<Request>(&received) {
        Ok(request) if is_same(&request.key, key) => perform(issues, request).await,
        Ok(_) => Err("the key is that of another carrel run".to_owned()),
        Err(error) => Err(format!("the request cannot be read: {error}")),
    };
    stream.write_all(&serde_json::to_vec(&reply)?).await?;
    stream.shutdown().await
}

/// Compares in constant time, by hash.
fn is_same(one: &str, other: &str) -> bool {
    Sha256::digest(one) == Sha256::digest(other)
}

async fn perform(issues: &dyn IssueStore, request: Request) -> Result<Value, String> {
    let now = request.now;
    match request.operation {
        RelayOperation::Add(issue) => encode(issues.add_issue(issue, now).await),
        RelayOperation::List(filter) => encode(issues.issues(filter).await),
        RelayOperation::Change(number, change) => {
            encode(issues.change_issue(number, change, now).await)
        }
        RelayOperation::Comment(number, comment) => {
            encode(issues.comment(number, comment, now).await)
        }
        RelayOperation::Comments(number, limit) => encode(issues.comments(number, limit).await),
        RelayOperation::Name => encode(issues.tracker_name().await),
    }
}

fn encode(result: Result<impl Serialize, StoreError>) -> Result<Value, String> {
    let value = result.map_err(|error| message_of(&error))?;
    serde_json::to_value(value).map_err(|error| error.to_string())
}
