//! The program that is measured.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::Fault;
use crate::corpus::Corpus;
use crate::ground::Ground;

/// What the server says on stderr before its address.
const LISTENING: &str = "carrel mcp listening on http://";

/// The release program, the workspace that it serves, and where it keeps its state.
pub(crate) struct Carrel {
    program: PathBuf,
    workspace: PathBuf,
    state: PathBuf,
}

impl Carrel {
    pub(crate) fn new(ground: &Ground, corpus: &Corpus, program: PathBuf) -> Result<Self, Fault> {
        let state = ground.directory("mcp-state")?;
        Ok(Self { program, workspace: corpus.path.clone(), state })
    }

    /// Returns the command that serves over stdin and stdout.
    pub(crate) fn over_stdio(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("mcp").arg("--workspace").arg(&self.workspace);
        command.env("XDG_STATE_HOME", &self.state);
        command
    }

    /// Starts it on a free port.
    pub(crate) fn over_http(&self) -> Result<HttpServer, Fault> {
        let mut command = self.over_stdio();
        command.args(["--http", "127.0.0.1:0"]).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let said = BufReader::new(child.stderr.take().ok_or("the server has no stderr")?);
        let mut server = HttpServer { child, address: ([127, 0, 0, 1], 0).into(), said };
        server.address = server.wait()?;
        Ok(server)
    }
}

/// A running server.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Kept open, because the server may say something at any time.
    said: BufReader<ChildStderr>,
}

impl HttpServer {
    fn wait(&mut self) -> Result<SocketAddr, Fault> {
        let mut line = String::new();
        while self.said.read_line(&mut line)? > 0 {
            if let Some((_, rest)) = line.split_once(LISTENING) {
                let address = rest.split('/').next().unwrap_or_default();
                return Ok(address.parse()?);
            }
            line.clear();
        }
        Err("the server ended before it listened".into())
    }

    /// Returns how much memory of the machine it has.
    pub(crate) fn resident_bytes(&self) -> Result<u64, Fault> {
        let text = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id()))?;
        let pages: u64 = text.split(' ').nth(1).ok_or("no resident pages")?.parse()?;
        Ok(pages * rustix::param::page_size() as u64)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // It is our child and was not waited for, so the number is still its own.
        if let Some(process) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(process, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}
