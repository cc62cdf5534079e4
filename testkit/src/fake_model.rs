//! A scripted model on loopback: the part of the Responses API that Codex uses.
//!
//! Real agents run against it in tests without a network or a key. Each request of a turn gets the next reply of
//! the script, as server-sent events with fixed token counts; a script that is used up replies with a message.
//! The requests are kept, so that a test can look at the prompts and tool results that the agent sent.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use carrel_domain::sync;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// One reply of the script.
#[derive(Clone, Debug)]
pub enum ModelReply {
    /// A message, which ends the turn.
    Say(&'static str),
    /// A tool call with its arguments.
    Call(&'static str, Value),
    /// A call of an MCP server's tool: its namespace, name and arguments.
    CallIn(&'static str, &'static str, Value),
    /// No reply; the request stays open.
    Silence,
    /// An HTTP error with this status.
    Refuse(u16),
}

/// A running model, stopped when it is dropped.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Value>>>,
    serving: JoinHandle<()>,
}

#[derive(Clone, Debug)]
struct Script {
    replies: Arc<Mutex<VecDeque<ModelReply>>>,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl FakeModel {
    /// Starts a model that gives the replies in order, one for each request of a turn.
    pub async fn start(replies: impl IntoIterator<Item = ModelReply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
        let replies = Arc::new(Mutex::new(replies.into_iter().collect()));
        let script = Script { replies, requests: Arc::clone(&requests) };
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let script = script.clone();
                tokio::spawn(async move { script.serve(stream).await });
            }
        });
        Self { address, requests, serving }
    }

    /// Returns the bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        sync::lock(&self.requests).clone()
    }

    /// Returns a `config.toml` for Codex that uses this model.
    pub fn codex_settings(&self) -> String {
        format!(
            "model = \"scripted\"\nmodel_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\
             web_search = \"disabled\"\n[analytics]\nenabled = false\n[model_providers.scripted]\n\
             name = \"scripted\"\nbase_url = \"http://{}/v1\"\nwire_api = \"responses\"\n\
             request_max_retries = 0\nstream_max_retries = 0\n",
            self.address
        )
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Script {
    async fn serve(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        let Some((path, body)) = read(&mut stream).await else { return };
        if !path.ends_with("/responses") {
            return write(stream, 404, "application/json", "{}").await;
        }
        if body["tools"].as_array().is_none_or(Vec::is_empty) {
            // Not a turn: agents ask for a title of the session without tools.
            let title = json!({ "title": "A title" }).to_string();
            return write(stream, 200, "text/event-stream", &events(0, &message(0, &title))).await;
        }
        let number = {
            let mut requests = sync::lock(&self.requests);
            requests.push(body);
            requests.len()
        };
        let next = sync::lock(&self.replies).pop_front();
        let item = match next.unwrap_or(ModelReply::Say("There is no more to say.")) {
            ModelReply::Silence => return std::future::pending().await,
            ModelReply::Refuse(status) => {
                let body = json!({ "error": { "message": "refused", "type": "refused" } });
                return write(stream, status, "application/json", &body.to_string()).await;
            }
            ModelReply::Say(text) => message(number, text),
            ModelReply::Call(name, arguments) => call(number, name, &arguments),
            ModelReply::CallIn(namespace, name, arguments) => {
                let mut call = call(number, name, &arguments);
                call["namespace"] = namespace.into();
                call
            }
        };
        write(stream, 200, "text/event-stream", &events(number, &item)).await;
    }
}

fn message(number: usize, text: &str) -> Value {
    json!({
        "type": "message", "role": "assistant", "id": format!("message-{number}"),
        "content": [{ "type": "output_text", "text": text }],
    })
}

fn call(number: usize, name: &str, arguments: &Value) -> Value {
    json!({
        "type": "function_call", "id": format!("item-{number}"),
        "call_id": format!("call-{number}"), "name": name, "arguments": arguments.to_string(),
    })
}

fn events(number: usize, item: &Value) -> String {
    let id = format!("response-{number}");
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": null,
        "output_tokens": 2, "output_tokens_details": null, "total_tokens": 12,
    });
    let events = [
        ("response.created", json!({ "response": { "id": id } })),
        ("response.output_item.done", json!({ "output_index": 0, "item": item })),
        ("response.completed", json!({ "response": { "id": id, "usage": usage } })),
    ];
    let shown = events.map(|(name, mut event)| {
        event["type"] = name.into();
        format!("event: {name}\ndata: {event}\n\n")
    });
    shown.concat()
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        stream.read_line(&mut line).await.ok()?;
        let header = line.trim().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((path, serde_json::from_slice(&body).unwrap_or_default()))
}

async fn write(mut stream: BufReader<TcpStream>, status: u16, media: &str, body: &str) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n"
    );
    // The client may have closed the connection.
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
    let _ = stream.shutdown().await;
}
