//! As much of MCP as tools need.

use serde_json::{Value, json};

use crate::rpc::{Message, UNKNOWN_METHOD};
use crate::session_tools::ToolOutcome;

/// What is said to those who do not say which revision they speak.
const REVISION: &str = "2025-06-18";

/// The code for a server that has too much to do.
const BUSY: i64 = -32000;

/// What a line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum RelayRequest {
    /// This answer, at once.
    Reply(Value),
    /// The use of a tool, to be answered under this id.
    Call { id: Value, tool: String, arguments: Value, progress: Option<Value> },
    /// This answer, at once. It is asked by whoever calls itself this.
    Initialize { client: Option<String>, answer: Value },
    /// The end of the request with this id.
    Cancel(Value),
    /// Nothing.
    Ignored,
}

/// Reads a line.
pub(super) fn read(line: &str, tools: &[Value]) -> RelayRequest {
    match Message::of(line) {
        Message::Request { id, method, params } => match method.as_str() {
            "initialize" => RelayRequest::Initialize {
                client: params["clientInfo"]["name"].as_str().map(str::to_owned),
                answer: result(&id, &introduction(&params)),
            },
            "ping" => RelayRequest::Reply(result(&id, &json!({}))),
            "tools/list" => RelayRequest::Reply(result(&id, &json!({ "tools": tools }))),
            "tools/call" => call(id, &params),
            _ => RelayRequest::Reply(refusal(&id, &format!("{method} is not offered here"))),
        },
        Message::Notice { method, mut params } if method == "notifications/cancelled" => {
            RelayRequest::Cancel(params["requestId"].take())
        }
        Message::Notice { .. }
        | Message::Reply { .. }
        | Message::Other(_)
        | Message::Malformed(_)
        | Message::Text(_) => RelayRequest::Ignored,
    }
}

/// All revisions have tools in the same words.
fn introduction(params: &Value) -> Value {
    let revision = params["protocolVersion"].as_str().unwrap_or(REVISION);
    json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "carrel", "title": "Carrel", "version": env!("CARGO_PKG_VERSION") },
    })
}

fn call(id: Value, params: &Value) -> RelayRequest {
    let tool = params["name"].as_str().unwrap_or_default().to_owned();
    let arguments = params.get("arguments").filter(|arguments| !arguments.is_null());
    let arguments = arguments.cloned().unwrap_or_else(|| json!({}));
    let progress = params.pointer("/_meta/progressToken").cloned();
    RelayRequest::Call { id, tool, arguments, progress }
}

/// Says what came of the use of a tool.
pub(super) fn told(id: &Value, used: &ToolOutcome) -> Value {
    let answer = &used.answer;
    let mut told = json!({ "content": answer.content, "isError": answer.is_error });
    if let Some(facts) = &answer.facts {
        told["structuredContent"] = facts.clone();
    }
    result(id, &told)
}

fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Says to one more client why it is not served.
pub(super) fn too_many(most: usize) -> Value {
    let message = format!("{most} clients use the tools of this session already; end one of them");
    json!({ "jsonrpc": "2.0", "id": null, "error": { "code": BUSY, "message": message } })
}

fn refusal(id: &Value, message: &str) -> Value {
    let error = json!({ "code": UNKNOWN_METHOD, "message": message });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}
