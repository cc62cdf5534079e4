//! A small client over HTTP that keeps its connection.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};

use super::message::{self, WITH_SESSIONS, WITHOUT_SESSIONS, alone};
use crate::Fault;
use crate::measure::timed;
use crate::wire::Connection;

/// Whose rules a client follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revision {
    /// 2025-11-25, in a session.
    WithSession,
    /// 2026-07-28: every call stands alone.
    Alone,
}

impl Revision {
    pub(crate) const BOTH: [Self; 2] = [Self::WithSession, Self::Alone];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WithSession => WITH_SESSIONS,
            Self::Alone => WITHOUT_SESSIONS,
        }
    }
}

pub(crate) struct HttpClient {
    connection: Connection,
    address: SocketAddr,
    revision: Revision,
    session: Option<String>,
    next: u64,
}

impl HttpClient {
    /// Connects, and opens a session if the revision has them.
    pub(crate) fn connect(address: SocketAddr, revision: Revision) -> Result<Self, Fault> {
        let connection = Connection::open(address)?;
        let mut client = Self { connection, address, revision, session: None, next: 0 };
        if revision == Revision::WithSession {
            client.greet()?;
        }
        Ok(client)
    }

    fn greet(&mut self) -> Result<(), Fault> {
        let request = self.encode(None, &message::initialize());
        self.connection.exchange(&request)?;
        message::result(self.connection.body())?;
        self.session = Some(self.connection.header("mcp-session-id").ok_or("no session")?);
        let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let request = self.encode(None, &done);
        self.connection.exchange(&request)
    }

    /// Calls a tool, which must succeed, and returns the text of its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<String, Fault> {
        self.time(tool, arguments)?;
        message::text(self.connection.body())
    }

    /// Takes the time from the first byte of a call to the last byte of its result.
    pub(crate) fn time(&mut self, tool: &str, arguments: &Value) -> Result<Duration, Fault> {
        let request = self.request(tool, arguments);
        let time = timed(|| self.connection.exchange(&request))?;
        message::must_succeed(self.connection.body())?;
        Ok(time)
    }

    /// Returns what goes over the wire to call a tool.
    pub(crate) fn request(&mut self, tool: &str, arguments: &Value) -> Vec<u8> {
        self.next += 1;
        let call = message::call(self.next, tool, arguments);
        match self.revision {
            Revision::WithSession => self.encode(None, &call),
            Revision::Alone => self.encode(Some(tool), &alone(call)),
        }
    }

    fn encode(&self, tool: Option<&str>, message: &Value) -> Vec<u8> {
        let (body, host) = (message.to_string(), self.address);
        let mut text = format!(
            "POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\
             mcp-protocol-version: {}\r\n",
            body.len(),
            self.revision.name()
        );
        if let Some(session) = &self.session {
            let _ = write!(text, "mcp-session-id: {session}\r\n");
        }
        if let Some(tool) = tool {
            let _ = write!(text, "mcp-method: tools/call\r\nmcp-name: {tool}\r\n");
        }
        (text + "\r\n" + &body).into_bytes()
    }

    /// Gives up everything but the connection, for requests that are sent as they are.
    pub(crate) fn into_connection(self) -> Connection {
        self.connection
    }

    /// Returns the last reply as it came over the wire.
    pub(crate) fn reply(&self) -> &[u8] {
        self.connection.message()
    }
}
