//! Tools that agents reach over MCP, and that run outside their walls.
//!
//! An agent that takes no tools from whoever speaks to it takes them from MCP servers that it starts. Such a
//! server is inside the agent's walls, where no tool could run; so it is a relay, [`relay`], between its own
//! stdin and stdout and a socket that the session listens on.

mod connection;
mod mcp;
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
use connection::RelayConnection;
pub use stale_sockets::remove_stale_sockets;

/// How many relays one session serves at once.
const MAX_RELAYS: usize = 16;

/// How the names of directories begin that tools are offered in.
const PREFIX: &str = "carrel-tools-";

/// What the socket is called until it has its name.
const BOUND: &str = "socket";

/// How long such a directory may be without a socket.
const BINDING: Duration = Duration::from_hours(1);

/// How much is read at once.
const CHUNK_BYTES: usize = 16 << 10;

/// A socket that tools are offered on, until this is dropped.
#[derive(Debug)]
pub(crate) struct ToolSocket {
    directory: PathBuf,
    /// What the socket in it is called.
    name: String,
    tools: Arc<SessionTools>,
    _stop: DropGuard,
}

impl ToolSocket {
    /// Listens in a new directory where nobody else finds the socket.
    pub(crate) fn open(
        temporary: &Path,
        tools: Arc<SessionTools>,
        reporter: Reporter,
    ) -> io::Result<Self> {
        let directory = temporary.join(format!("{PREFIX}{:016x}", fastrand::u64(..)));
        std::fs::DirBuilder::new().mode(0o700).create(&directory)?;
        let stop = CancellationToken::new();
        let held = Arc::clone(&tools);
        let name = name_of_socket()?;
        let offer = Self { directory, name, tools: held, _stop: stop.clone().drop_guard() };
        let bound = offer.directory.join(BOUND);
        let listener = UnixListener::bind(&bound)?;
        // Everybody can read in /proc what a socket was bound as, and nobody what it is called since.
        rename(bound, offer.socket())?;
        offer.let_in_whoever_knows_it()?;
        tokio::spawn(async move {
            let serving = serve(&listener, &tools, &reporter, &stop);
            tokio::select! {
                () = serving => {}
                () = stop.cancelled() => {}
            }
        });
        Ok(offer)
    }

    /// Returns the directory that the agent has to see.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Offers nothing any more, and ends the tools that run.
    pub(crate) async fn close(self) {
        let tools = Arc::clone(&self.tools);
        drop(self);
        tools.close().await;
    }

    /// Lets an agent in that runs as somebody else, as those of root do where there are no namespaces. Who
    /// that will be is not known yet, so the name of the socket is the key: others cannot list it.
    fn let_in_whoever_knows_it(&self) -> io::Result<()> {
        if rustix::process::geteuid().is_root() {
            chmod(self.socket(), Mode::from_raw_mode(0o666))?;
            chmod(&self.directory, Mode::from_raw_mode(0o711))?;
        }
        Ok(())
    }

    /// Returns the socket in it.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join(&self.name)
    }
}

impl Drop for ToolSocket {
    fn drop(&mut self) {
        // What is left is empty, and in a directory for temporary files.
        let _ = rustix::fs::unlink(self.socket());
        let _ = rustix::fs::rmdir(&self.directory);
    }
}

/// Returns a name that nobody can guess where that matters; where not, one that leaves room, since the
/// path of a socket has at most 107 bytes.
fn name_of_socket() -> io::Result<String> {
    if !rustix::process::geteuid().is_root() {
        return Ok(BOUND.to_owned());
    }
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// Serves relays until the socket breaks.
async fn serve(
    listener: &UnixListener,
    tools: &Arc<SessionTools>,
    reporter: &Reporter,
    stop: &CancellationToken,
) {
    let places = Arc::new(Semaphore::new(MAX_RELAYS));
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            // One that does not read it sees that the connection ends.
            let _ = stream.try_write(format!("{}\n", mcp::too_many(MAX_RELAYS)).as_bytes());
            continue;
        };
        let talk = RelayConnection::new(stream, Arc::clone(tools), reporter.clone());
        let stop = stop.clone();
        tokio::spawn(async move {
            let talked = tokio::select! {
                talked = talk.run() => talked,
                () = stop.cancelled() => Ok(()),
            };
            if let Err(error) = talked {
                debug!(%error, "lost an agent that uses tools");
            }
            drop(place);
        });
    }
}

/// Passes on what an agent says and is answered, between stdin, stdout and the socket of its session. Returns
/// when either side has ended.
pub fn relay(socket: &Path) -> io::Result<()> {
    let stream = BlockingStream::connect(socket)?;
    let asking = stream.try_clone()?;
    std::thread::spawn(move || {
        // The end of the input is passed on; what is still to be answered is waited for.
        let _ = pass_on(io::stdin().lock(), &asking);
        let _ = asking.shutdown(Shutdown::Write);
    });
    pass_on(&stream, io::stdout().lock())
}

/// Passes on each piece at once.
fn pass_on(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
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
