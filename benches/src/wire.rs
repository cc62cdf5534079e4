//! A connection over HTTP that is kept, without a library between the clock and the socket.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::Fault;

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
            None if matches!(status, "202" | "204") => Ok(Some(self.body)),
            _ => Err(format!("not an answer of known length: {head}").into()),
        }
    }

    /// Returns the body of the last message.
    pub(crate) fn body(&self) -> &[u8] {
        &self.buffer[self.body..]
    }

    /// Returns the last message as it came: head and body.
    pub(crate) fn message(&self) -> &[u8] {
        &self.buffer
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
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
