//! A client that sends exactly what it is told and shows everything that comes back.

use std::{collections::HashMap, fmt::Write as _, net::SocketAddr, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    time::timeout,
};

/// The longest a test waits for anything.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A response of the server.
#[derive(Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

impl HttpReply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    pub(crate) fn kind(&self) -> &str {
        self.headers.get("content-type").map_or("", String::as_str)
    }

    /// The text of a tool's result.
    pub(crate) fn text(&self) -> String {
        result_text(&self.json())
    }

    pub(crate) fn error_code(&self) -> Option<i64> {
        self.json()["error"]["code"].as_i64()
    }
}

/// The text of a tool's result in a message.
pub(crate) fn result_text(message: &Value) -> String {
    message["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// One event of a stream.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

/// A connection.
pub(crate) struct TestClient {
    pub(crate) stream: BufReader<TcpStream>,
    host: String,
}

impl TestClient {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        Self { stream: BufReader::new(stream), host: address.to_string() }
    }

    /// Sends bytes as they are.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).await.expect("the server reads");
    }

    /// Sends a request; `headers` replace the usual ones of the same name, an empty value drops them.
    pub(crate) async fn send(&mut self, method: &str, headers: &[(&str, &str)], body: &str) {
        let mut all = vec![
            ("host", self.host.clone()),
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json, text/event-stream".to_owned()),
        ];
        for (name, value) in headers {
            all.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            if !value.is_empty() {
                all.push((name, (*value).to_owned()));
            }
        }
        let mut head = format!("{method} /mcp HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in all {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        self.raw(format!("{head}\r\n{body}").as_bytes()).await;
    }

    /// Sends a request and reads the whole reply.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> HttpReply {
        self.send(method, headers, body).await;
        self.reply().await
    }

    pub(crate) async fn post(&mut self, headers: &[(&str, &str)], body: &Value) -> HttpReply {
        self.request("POST", headers, &body.to_string()).await
    }

    /// Reads a whole reply, of known length or in chunks.
    pub(crate) async fn reply(&mut self) -> HttpReply {
        timeout(TEST_TIMEOUT, self.read_reply()).await.expect("the server replies")
    }

    async fn read_reply(&mut self) -> HttpReply {
        let (status, headers) = self.head().await;
        let mut body = Vec::new();
        if let Some(length) = headers.get("content-length") {
            body.resize(length.parse().expect("a number"), 0);
            self.stream.read_exact(&mut body).await.expect("the whole body");
        } else if headers.contains_key("transfer-encoding") {
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
        }
        HttpReply { status, headers, body: String::from_utf8(body).expect("text") }
    }

    /// Reads the head of a reply.
    pub(crate) async fn head(&mut self) -> (u16, HashMap<String, String>) {
        let first = self.line().await;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("not a status line: {first:?}"));
        let mut headers = HashMap::new();
        loop {
            let line = self.line().await;
            match line.split_once(": ") {
                Some((name, value)) => headers.insert(name.to_lowercase(), value.to_owned()),
                None => return (status, headers),
            };
        }
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        let reading = self.stream.read_line(&mut line);
        timeout(TEST_TIMEOUT, reading).await.expect("a line in time").expect("a line");
        line.trim_end().to_owned()
    }

    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line().await, 16).expect("a size");
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk).await.expect("a chunk");
        chunk.truncate(size);
        (size > 0).then_some(chunk)
    }

    /// Reads the next event of a stream; `None` at its end. Each chunk is one event or a comment.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        loop {
            let chunk = timeout(TEST_TIMEOUT, self.chunk()).await.expect("an event in time")?;
            let text = String::from_utf8(chunk).expect("text");
            if let Some(event) = parse_event(&text) {
                return Some(event);
            }
        }
    }

    /// Returns whether the server closes the connection.
    pub(crate) async fn closed(&mut self) -> bool {
        let mut rest = Vec::new();
        timeout(TEST_TIMEOUT, self.stream.read_to_end(&mut rest)).await.is_ok()
    }

    /// Opens a session and returns its id.
    pub(crate) async fn initialize(&mut self, version: &str) -> String {
        let reply = self.post(&[], &initialize(version)).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.json()["result"]["protocolVersion"], version);
        let session = reply.headers.get("mcp-session-id").expect("a session").clone();
        let headers = [("mcp-session-id", session.as_str())];
        let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post(&headers, &notification).await.status, 202);
        session
    }
}

fn parse_event(text: &str) -> Option<Event> {
    let mut event = Event::default();
    let mut found = false;
    for line in text.lines() {
        match line.split_once(": ").or_else(|| line.split_once(':')) {
            Some(("id", id)) => id.clone_into(&mut event.id),
            Some(("data", data)) => {
                found = true;
                data.clone_into(&mut event.data);
            }
            _ => {}
        }
    }
    found.then_some(event)
}

pub(crate) fn initialize(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}
    }})
}

pub(crate) fn call(id: i64, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

pub(crate) fn call_with_progress(id: i64, tool: &str, arguments: &Value) -> Value {
    let mut call = call(id, tool, arguments);
    call["params"]["_meta"] = json!({"progressToken": format!("token-{id}")});
    call
}

/// A call of the revision 2026-07-28, with the headers it needs.
pub(crate) fn stateless_call(id: i64, tool: &str, arguments: &Value) -> Value {
    let mut call = call(id, tool, arguments);
    call["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    call
}

pub(crate) fn stateless_headers(tool: &str) -> [(&str, &str); 3] {
    [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)]
}
