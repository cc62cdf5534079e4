//! The program that is measured.

use std::path::PathBuf;
use std::process::Command;

use crate::Fault;
use crate::corpus::Corpus;
use crate::ground::Ground;
use crate::server::Server;
use crate::tools::REPLY_BYTES;

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
        command.arg("--max-reply").arg(REPLY_BYTES.to_string());
        command.env("XDG_STATE_HOME", &self.state);
        command
    }

    /// Starts it on a free port.
    pub(crate) fn over_http(&self) -> Result<Server, Fault> {
        let mut command = self.over_stdio();
        command.args(["--http", "127.0.0.1:0", "--no-token"]);
        Server::start(command)
    }
}
