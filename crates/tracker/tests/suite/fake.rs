//! A server that counts what it is asked, and fails when it is told to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// As it was sent, without the query.
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    /// Names in small letters.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.parameter(name)?.parse().ok()
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Say {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// Ends the connection without a word.
    Lose,
    /// Ends the connection in the middle of an answer.
    Break,
}

impl Reply {
    pub(crate) fn json(body: &Value) -> Self {
        Self::status(200, body)
    }

    pub(crate) fn status(status: u16, body: &Value) -> Self {
        Self::Say { status, headers: Vec::new(), body: body.to_string() }
    }

    pub(crate) fn text(status: u16, body: &str) -> Self {
        Self::Say { status, headers: Vec::new(), body: body.to_owned() }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        if let Self::Say { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.into()));
        }
        self
    }
}

/// A server on loopback.
pub(crate) struct Fake {
    pub(crate) address: String,
    inner: Arc<Inner>,
}

type Handler = dyn Fn(&Asked) -> Reply + Send + Sync;

struct Inner {
    handler: Box<Handler>,
    heard: Mutex<Vec<Asked>>,
    /// What is answered to the nth request, whatever it asks.
    instead: Mutex<BTreeMap<usize, Reply>>,
}

impl Fake {
    pub(crate) async fn start(handler: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let inner = Arc::new(Inner {
            handler: Box::new(handler),
            heard: Mutex::default(),
            instead: Mutex::default(),
        });
        let shared = Arc::clone(&inner);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { address, inner }
    }

    /// How many requests there were.
    pub(crate) fn count(&self) -> usize {
        self.inner.heard.lock().unwrap().len()
    }

    pub(crate) fn heard(&self) -> Vec<Asked> {
        self.inner.heard.lock().unwrap().clone()
    }

    /// Forgets what was asked so far.
    pub(crate) fn reset(&self) {
        self.inner.heard.lock().unwrap().clear();
    }

    /// Answers this to the nth request from now on, counted from 0.
    pub(crate) fn answer(&self, nth: usize, reply: Reply) {
        let nth = self.count() + nth;
        self.inner.instead.lock().unwrap().insert(nth, reply);
    }
}

async fn serve(mut stream: TcpStream, inner: Arc<Inner>) {
    while let Some(asked) = read(&mut stream).await {
        let nth = {
            let mut heard = inner.heard.lock().unwrap();
            heard.push(asked.clone());
            heard.len() - 1
        };
        let instead = inner.instead.lock().unwrap().remove(&nth);
        let reply = instead.unwrap_or_else(|| (inner.handler)(&asked));
        if write(&mut stream, reply).await.is_none() {
            return;
        }
    }
}

/// Returns nothing if the connection is to end.
async fn write(stream: &mut TcpStream, reply: Reply) -> Option<()> {
    let (status, headers, body) = match reply {
        Reply::Say { status, headers, body } => (status, headers, body),
        Reply::Lose => return None,
        Reply::Break => {
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"data\":";
            stream.write_all(head).await.ok()?;
            return None;
        }
    };
    let mut text = format!("HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\n");
    for (name, value) in headers {
        text.extend([&name, ": ", &value, "\r\n"]);
    }
    if status != 304 {
        text.extend(["content-length: ", &body.len().to_string(), "\r\n"]);
    }
    text.push_str("\r\n");
    if status != 304 {
        text.push_str(&body);
    }
    stream.write_all(text.as_bytes()).await.ok()
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    };
    let query = query.split('&').filter(|pair| !pair.is_empty()).map(pair).collect();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some(Asked { method, path: path.to_owned(), query, headers, body })
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).unwrap()
}
