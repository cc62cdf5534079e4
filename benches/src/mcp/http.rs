//! A small client over HTTP that keeps its connection.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::message::{self, WITH_SESSIONS, WITHOUT_SESSIONS, alone};
use crate::Fault;
use crate::measure::timed;

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
        &self.connection.buffer
    }
}

/// A connection on which one request is answered after the other.
pub(crate) struct Connection {
    stream: TcpStream,
    /// The last message as it came: head and body.
    buffer: Vec<u8>,
    /// Where its body begins.
    body: usize,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Result<Self, Fault> {
        Self::over(TcpStream::connect(address)?)
    }

    pub(crate) fn over(stream: TcpStream) -> Result<Self, Fault> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new(), body: 0 })
    }

    /// Sends a request and reads the whole reply.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> Result<(), Fault> {
        self.send(request)?;
        if self.receive()? { Ok(()) } else { Err("the server closed the connection".into()) }
    }

    pub(crate) fn send(&mut self, message: &[u8]) -> Result<(), Fault> {
        Ok(self.stream.write_all(message)?)
    }

    /// Reads a message of known length; false if the other side has gone.
    pub(crate) fn receive(&mut self) -> Result<bool, Fault> {
        let (mut filled, mut wanted) = (0, None::<usize>);
        while wanted.is_none_or(|wanted| filled < wanted) {
            let room = wanted.unwrap_or_default().max(filled + READ_BYTES);
            self.buffer.resize(self.buffer.len().max(room), 0);
            match self.stream.read(&mut self.buffer[filled..])? {
                0 => return Ok(false),
                read => filled += read,
            }
            if wanted.is_none() {
                wanted = self.length(filled)?;
            }
        }
        self.buffer.truncate(filled);
        Ok(true)
    }

    /// Returns how long the message is, if its head has come.
    fn length(&mut self, filled: usize) -> Result<Option<usize>, Fault> {
        const END: &[u8] = b"\r\n\r\n";
        let Some(end) = memchr::memmem::find(&self.buffer[..filled], END) else { return Ok(None) };
        self.body = end + END.len();
        let head = std::str::from_utf8(&self.buffer[..end])?;
        let status = head.split(' ').nth(1).unwrap_or_default();
        let failed = head.starts_with("HTTP/") && !status.starts_with("20");
        let length = find_header(head, "content-length").map(str::parse::<usize>).transpose()?;
        match length {
            Some(length) if !failed => Ok(Some(self.body + length)),
            // An answer without a body may leave the length out.
            None if status == "202" => Ok(Some(self.body)),
            _ => Err(format!("not an answer of known length: {head}").into()),
        }
    }

    /// Returns the body of the last message.
    pub(crate) fn body(&self) -> &[u8] {
        &self.buffer[self.body..]
    }

    fn header(&self, name: &str) -> Option<String> {
        let head = std::str::from_utf8(&self.buffer[..self.body]).ok()?;
        find_header(head, name).map(str::to_owned)
    }
}

/// How much is read at once at least.
const READ_BYTES: usize = 128 * 1024;

fn find_header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}
