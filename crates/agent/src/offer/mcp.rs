//! As much of MCP as tools need.

use serde_json::{Value, json};

use crate::rpc::{Message, UNKNOWN_METHOD};
use crate::toolbox::Used;

/// What is said to those who do not say which revision they speak.
const REVISION: &str = "2025-06-18";

/// What a line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Asked {
    /// This answer, at once.
    Answer(Value),
    /// The use of a tool, to be answered under this id.
    Call { id: Value, tool: String, arguments: Value },
    /// The end of the request with this id.
    Cancel(Value),
    /// Nothing.
    Nothing,
}

/// Reads a line.
pub(super) fn read(line: &str, tools: &[Value]) -> Asked {
    match Message::of(line) {
        Message::Request { id, method, params } => match method.as_str() {
            "initialize" => Asked::Answer(result(&id, &introduction(&params))),
            "ping" => Asked::Answer(result(&id, &json!({}))),
            "tools/list" => Asked::Answer(result(&id, &json!({ "tools": tools }))),
            "tools/call" => call(id, &params),
            _ => Asked::Answer(refusal(&id, &format!("{method} is not offered here"))),
        },
        Message::Notice { method, mut params } if method == "notifications/cancelled" => {
            Asked::Cancel(params["requestId"].take())
        }
        Message::Notice { .. }
        | Message::Reply { .. }
        | Message::Other(_)
        | Message::Malformed(_)
        | Message::Text(_) => Asked::Nothing,
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

fn call(id: Value, params: &Value) -> Asked {
    let tool = params["name"].as_str().unwrap_or_default().to_owned();
    let arguments = params.get("arguments").filter(|arguments| !arguments.is_null());
    Asked::Call { id, tool, arguments: arguments.cloned().unwrap_or_else(|| json!({})) }
}

/// Says what came of the use of a tool.
pub(super) fn told(id: &Value, used: &Used) -> Value {
    let answer = &used.answer;
    result(id, &json!({ "content": answer.content, "isError": answer.is_error }))
}

fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn refusal(id: &Value, message: &str) -> Value {
    let error = json!({ "code": UNKNOWN_METHOD, "message": message });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}
