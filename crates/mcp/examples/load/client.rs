//! A client that does as little as possible: one connection, one call after the other.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// How many bytes are read at once.
const READ_BYTES: usize = 64 * 1024;

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"done","arguments":{}}}"#;

const STATELESS_CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"done","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}"#;

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The two ways to speak.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Revision {
    Session,
    Stateless,
}

impl Revision {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Session => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }
}

pub(crate) struct LoadClient {
    stream: TcpStream,
    request: Vec<u8>,
    /// Ends the session, if there is one.
    goodbye: Option<Vec<u8>>,
    buffer: Vec<u8>,
}

impl LoadClient {
    pub(crate) async fn connect(address: SocketAddr, revision: Revision) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut client = Self { stream, request: Vec::new(), goodbye: None, buffer: Vec::new() };
        client.request = match revision {
            Revision::Stateless => {
                let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: done\r\n";
                request("POST", address, headers, STATELESS_CALL)
            }
            Revision::Session => {
                let head = client.exchange(&request("POST", address, "", INITIALIZE)).await?;
                let name = "mcp-session-id: ";
                let session = head.lines().find_map(|line| line.strip_prefix(name));
                let session = session.ok_or(io::ErrorKind::InvalidData)?;
                let headers = format!("{name}{session}\r\nmcp-protocol-version: 2025-11-25\r\n");
                client.exchange(&request("POST", address, &headers, INITIALIZED)).await?;
                client.goodbye = Some(request("DELETE", address, &headers, ""));
                request("POST", address, &headers, CALL)
            }
        };
        Ok(client)
    }

    /// Calls the tool and waits for the whole reply.
    pub(crate) async fn call(&mut self) -> io::Result<()> {
        let request = std::mem::take(&mut self.request);
        let head = self.exchange(&request).await;
        self.request = request;
        match head? {
            head if head.starts_with("HTTP/1.1 200") => Ok(()),
            head => Err(io::Error::other(head)),
        }
    }

    /// Ends the session.
    pub(crate) async fn finish(mut self) -> io::Result<()> {
        if let Some(goodbye) = self.goodbye.take() {
            self.exchange(&goodbye).await?;
        }
        Ok(())
    }

    /// Sends a request and reads its reply; returns the head of it.
    async fn exchange(&mut self, request: &[u8]) -> io::Result<String> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            self.buffer.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(head) = complete(&self.buffer) {
                return Ok(head.to_owned());
            }
        }
    }
}

/// The head of a reply, once all of it is there. Event streams end with an empty chunk.
fn complete(bytes: &[u8]) -> Option<&str> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let body = &bytes[end + 4..];
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let done = match length.and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None => !head.contains("transfer-encoding") || body.ends_with(b"0\r\n\r\n"),
    };
    done.then_some(head)
}

fn request(method: &str, address: SocketAddr, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
