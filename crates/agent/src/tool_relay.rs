//! The tool relay: tools for agents that only accept MCP servers.
//!
//! ```text
//!   sandbox:  agent ── stdin/stdout ── carrel mcp (relay) ──┐ Unix socket
//!   outside:  conductor ── SessionTools ── ToolSocket ──────┘
//! ```
//!
//! Such an agent starts its MCP servers itself, inside its sandbox, where no tool could run. So the server
//! it starts is [`relay`], which copies bytes between its standard streams and a socket of the session; the
//! MCP protocol is spoken by the session outside (`connection`). The socket is in a directory of its
//! own below the temporary directory, mode 0700, and is removed with the session. A killed conductor leaves
//! it behind; [`remove_stale_sockets`] removes sockets that nothing listens on at the next start.
//!
//! A conductor of root runs agents under another user where there are no namespaces. Then the directory can be
//! entered but not listed by others, and the socket has a random name: the name is the secret.

mod connection;
mod stale_sockets;

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, chmod, rename};
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;

use crate::reporter::Reporter;
use crate::session_tools::SessionTools;
use connection::{RelayConnection, too_many};
pub use stale_sockets::remove_stale_sockets;

/// Concurrent relays of one session.
const MAX_RELAYS: usize = 16;

/// The prefix of socket directories.
const PREFIX: &str = "carrel-tools-";

/// The name of the socket while it is bound.
const BIND_NAME: &str = "socket";

/// The age from which a socket directory without a socket is stale.
const BIND_TIMEOUT: Duration = Duration::from_hours(1);

const CHUNK_BYTES: usize = 16 << 10;

/// A listening socket for relays. Dropping it closes and removes the socket.
#[derive(Debug)]
pub(crate) struct ToolSocket {
    /// The directory that the agent's sandbox has to show.
    pub(crate) directory: PathBuf,
    name: String,
    tools: Arc<SessionTools>,
    _stop: DropGuard,
}

impl ToolSocket {
    /// Creates a directory and listens on a socket in it.
    pub(crate) fn open(
        temporary: &Path,
        tools: Arc<SessionTools>,
        reporter: Reporter,
    ) -> io::Result<Self> {
        let directory = temporary.join(format!("{PREFIX}{:016x}", fastrand::u64(..)));
        std::fs::DirBuilder::new().mode(0o700).create(&directory)?;
        let stop = CancellationToken::new();
        let held = Arc::clone(&tools);
        let name = socket_name()?;
        let socket = Self { directory, name, tools: held, _stop: stop.clone().drop_guard() };
        let bound = socket.directory.join(BIND_NAME);
        let listener = UnixListener::bind(&bound)?;
        // `/proc/net/unix` shows the name that a socket was bound with, not the one it was renamed to.
        rename(bound, socket.path())?;
        socket.allow_other_users()?;
        carrel_exec::spawn_task(async move {
            let accepting = accept(&listener, &tools, &reporter, &stop);
            tokio::select! {
                () = accepting => {}
                () = stop.cancelled() => {}
            }
        });
        Ok(socket)
    }

    /// Closes the socket, and returns when all tool calls have ended.
    pub(crate) async fn close(self) {
        let tools = Arc::clone(&self.tools);
        drop(self);
        tools.close().await;
    }

    /// Lets other users who know the name of the socket connect, if this process is root. The user of the
    /// agent is not known yet.
    fn allow_other_users(&self) -> io::Result<()> {
        if rustix::process::geteuid().is_root() {
            chmod(self.path(), Mode::from_raw_mode(0o666))?;
            chmod(&self.directory, Mode::from_raw_mode(0o711))?;
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }
}

impl Drop for ToolSocket {
    fn drop(&mut self) {
        // A failure leaves an empty directory among temporary files.
        let _ = rustix::fs::unlink(self.path());
        let _ = rustix::fs::rmdir(&self.directory);
    }
}

/// Returns an unguessable name for root, and a short one otherwise: socket paths have at most 107 bytes.
fn socket_name() -> io::Result<String> {
    if !rustix::process::geteuid().is_root() {
        return Ok(BIND_NAME.to_owned());
    }
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

async fn accept(
    listener: &UnixListener,
    tools: &Arc<SessionTools>,
    reporter: &Reporter,
    stop: &CancellationToken,
) {
    let permits = Arc::new(Semaphore::new(MAX_RELAYS));
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            // A client that does not read it sees the connection close.
            let _ = stream.try_write(format!("{}\n", too_many(MAX_RELAYS)).as_bytes());
            continue;
        };
        let connection = RelayConnection::new(stream, Arc::clone(tools), reporter.clone());
        let stop = stop.clone();
        carrel_exec::spawn_task(async move {
            let result = tokio::select! {
                result = connection.run() => result,
                () = stop.cancelled() => Ok(()),
            };
            if let Err(error) = result {
                debug!(%error, "lost the connection to a tool relay");
            }
            drop(permit);
        });
    }
}

/// Copies bytes between the standard streams and a session's socket. Returns when the session has closed
/// the connection.
pub fn relay(socket: &Path) -> io::Result<()> {
    let stream = BlockingStream::connect(socket)?;
    let requests = stream.try_clone()?;
    std::thread::spawn(move || {
        // The end of stdin is passed on; replies that are due still arrive.
        let _ = copy(io::stdin().lock(), &requests);
        let _ = requests.shutdown(Shutdown::Write);
    });
    copy(&stream, io::stdout().lock())
}

fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match from.read(&mut chunk)? {
            0 => return Ok(()),
            length => {
                to.write_all(&chunk[..length])?;
                to.flush()?;
            }
        }
    }
}
