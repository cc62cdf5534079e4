//! Answering hooks.

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

use super::{KEY, MAX_MESSAGE_BYTES, Request, SOCKET, Wish, directory};

/// Hooks that are answered at once. More than that wait.
const MAX_AT_ONCE: usize = 16;

/// How long a hook may take to say what it wants.
const SAYING: Duration = Duration::from_secs(10);

/// Where hooks ask for issues of a database.
#[derive(Debug)]
pub(crate) struct Desk {
    listener: UnixListener,
    issues: Arc<dyn IssueStore>,
    key: String,
}

impl Desk {
    /// Listens in a data directory. What an earlier one left there is of no use to anybody; the socket
    /// stays, and says that the issues are in a database.
    #[expect(clippy::disallowed_methods, reason = "the server's own directory, in no workspace")]
    pub(crate) fn open(data: &Path, issues: Arc<dyn IssueStore>) -> io::Result<Self> {
        close(data)?;
        let place = directory(data);
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let key = format!("{:032x}", u128::from_ne_bytes(bytes));
        let options = File::options().create_new(true).write(true).mode(0o600).clone();
        options.open(place.join(KEY))?.write_all(key.as_bytes())?;
        // The name of a socket may be shorter than that of a directory.
        let place = File::open(place)?;
        let listener = UnixListener::bind(format!("/proc/self/fd/{}/{SOCKET}", place.as_raw_fd()))?;
        Ok(Self { listener, issues, key })
    }

    /// Answers until it is dropped.
    pub(crate) async fn run(self) {
        let places = Arc::new(Semaphore::new(MAX_AT_ONCE));
        let (issues, key): (Arc<dyn IssueStore>, Arc<str>) = (self.issues, self.key.into());
        let mut talks = JoinSet::new();
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let Ok((stream, _)) = self.listener.accept().await else { return };
            let (issues, key) = (Arc::clone(&issues), Arc::clone(&key));
            talks.spawn(async move {
                let _place = place;
                if let Err(error) = talk(stream, &*issues, &key).await {
                    debug!(%error, "lost a hook that asked for issues");
                }
            });
            while talks.try_join_next().is_some() {}
        }
    }
}

/// Takes away what says that the issues of a data directory are in a database.
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

async fn talk(mut stream: UnixStream, issues: &dyn IssueStore, key: &str) -> io::Result<()> {
    let mut said = Vec::new();
    let mut asked = (&mut stream).take(MAX_MESSAGE_BYTES);
    tokio::time::timeout(SAYING, asked.read_to_end(&mut said)).await??;
    let answer = match serde_json::from_slice::<Request>(&said) {
        Ok(request) if is_same(&request.key, key) => answer(issues, request).await,
        Ok(_) => Err("the key is that of another carrel run".to_owned()),
        Err(error) => Err(format!("the request cannot be read: {error}")),
    };
    stream.write_all(&serde_json::to_vec(&answer)?).await?;
    stream.shutdown().await
}

/// Compares in a time that tells nothing about where two keys differ.
fn is_same(one: &str, other: &str) -> bool {
    Sha256::digest(one) == Sha256::digest(other)
}

async fn answer(issues: &dyn IssueStore, request: Request) -> Result<Value, String> {
    let now = request.now;
    match request.wish {
        Wish::Add(issue) => told(issues.add_issue(issue, now).await),
        Wish::List(filter) => told(issues.issues(filter).await),
        Wish::Change(number, change) => told(issues.change_issue(number, change, now).await),
        Wish::Comment(number, comment) => told(issues.comment(number, comment, now).await),
        Wish::Comments(number, limit) => told(issues.comments(number, limit).await),
        Wish::Name => told(issues.tracker_name().await),
    }
}

fn told(answer: Result<impl Serialize, StoreError>) -> Result<Value, String> {
    let answer = answer.map_err(|error| message_of(&error))?;
    serde_json::to_value(answer).map_err(|error| error.to_string())
}
