//! A client of a server that is a child of ours, over its standard streams.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::message::{self, initialize};
use crate::Fault;
use crate::measure::timed;

/// More than the largest answer, so that reading it takes as few steps as the pipe allows.
const BUFFER_BYTES: usize = 256 * 1024;

pub(crate) struct LineClient {
    child: Child,
    /// None when the server has been told to end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    next: u64,
}

impl LineClient {
    /// Starts a server. It says nothing before it is asked.
    pub(crate) fn start(command: &mut Command) -> Result<Self, Fault> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("the server has no output")?;
        let output = BufReader::with_capacity(BUFFER_BYTES, output);
        Ok(Self { child, input, output, line: Vec::new(), next: 0 })
    }

    /// Starts a server and agrees with it on a session.
    pub(crate) fn ready(command: &mut Command) -> Result<Self, Fault> {
        let mut client = Self::start(command)?;
        client.greet()?;
        Ok(client)
    }

    fn greet(&mut self) -> Result<(), Fault> {
        let request = initialize().to_string() + "\n";
        self.exchange(request.as_bytes())?;
        message::result(&self.line)?;
        let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.send(format!("{done}\n").as_bytes())
    }

    /// Takes the time from the start of a server to its list of tools, and ends it.
    pub(crate) fn time_start(command: &mut Command) -> Result<Duration, Fault> {
        let mut started = None;
        let time = timed(|| {
            let mut client = Self::start(command)?;
            client.greet()?;
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
            client.exchange(format!("{request}\n").as_bytes())?;
            started = Some(client);
            Ok::<_, Fault>(())
        })?;
        let client = started.ok_or("the server did not start")?;
        let tools = &message::result(&client.line)?["tools"];
        if tools.as_array().is_none_or(Vec::is_empty) {
            return Err("the server has no tools".into());
        }
        Ok(time)
    }

    /// Calls a tool, which must succeed, and returns the text of its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<String, Fault> {
        self.time(tool, arguments)?;
        message::text(&self.line)
    }

    /// Takes the time from the first byte of a call to the last byte of its result.
    pub(crate) fn time(&mut self, tool: &str, arguments: &Value) -> Result<Duration, Fault> {
        self.next += 1;
        let request = message::call(self.next, tool, arguments).to_string() + "\n";
        let time = timed(|| self.exchange(request.as_bytes()))?;
        message::must_succeed(&self.line)?;
        Ok(time)
    }

    /// Sends a line and takes the next one that comes back.
    pub(crate) fn exchange(&mut self, line: &[u8]) -> Result<(), Fault> {
        self.send(line)?;
        self.line.clear();
        match self.output.read_until(b'\n', &mut self.line)? {
            0 => Err("the server has ended".into()),
            _ => Ok(()),
        }
    }

    /// Returns how long the last line was.
    pub(crate) fn length(&self) -> usize {
        self.line.len()
    }

    fn send(&mut self, line: &[u8]) -> Result<(), Fault> {
        let input = self.input.as_mut().ok_or("the server was told to end")?;
        Ok(input.write_all(line)?)
    }
}

impl Drop for LineClient {
    /// The end of its input tells a server to end.
    fn drop(&mut self) {
        self.input = None;
        // What became of it changes no figure.
        let _ = self.child.wait();
    }
}
