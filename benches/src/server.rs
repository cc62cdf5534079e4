//! A server as a child of its own.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::Fault;

/// What a server says on stderr before its address.
const LISTENING: &str = " listening on http://";

/// A running server.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Kept open, because the server may say something at any time.
    said: BufReader<ChildStderr>,
}

impl Server {
    /// Starts it, and waits until it says where it listens.
    pub(crate) fn start(mut command: Command) -> Result<Self, Fault> {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let said = BufReader::new(child.stderr.take().ok_or("the server has no stderr")?);
        let mut server = Self { child, address: ([127, 0, 0, 1], 0).into(), said };
        server.address = server.wait()?;
        Ok(server)
    }

    fn wait(&mut self) -> Result<SocketAddr, Fault> {
        let mut line = String::new();
        while self.said.read_line(&mut line)? > 0 {
            if let Some((_, rest)) = line.split_once(LISTENING) {
                let address = rest.split('/').next().unwrap_or_default();
                return Ok(address.trim().parse()?);
            }
            line.clear();
        }
        Err("the server ended before it listened".into())
    }

    /// Returns the number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns how much memory of the machine it has.
    pub(crate) fn resident_bytes(&self) -> Result<u64, Fault> {
        let text = std::fs::read_to_string(format!("/proc/{}/statm", self.id()))?;
        let pages: u64 = text.split(' ').nth(1).ok_or("no resident pages")?.parse()?;
        Ok(pages * rustix::param::page_size() as u64)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is our child and was not waited for, so the number is still its own.
        if let Some(process) = Pid::from_raw(self.id().cast_signed()) {
            let _ = kill_process(process, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}
