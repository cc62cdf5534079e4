//! The part of MCP that a tool relay needs: `initialize`, `ping`, `tools/list`, `tools/call`, cancellation.

use serde_json::{Value, json};

use crate::rpc::{Message, UNKNOWN_METHOD};
use crate::session_tools::ToolOutcome;

/// The protocol revision for clients that name none.
const REVISION: &str = "2025-06-18";

/// The error code of a server that is at its limit.
const BUSY: i64 = -32000;

#[derive(Debug, PartialEq)]
pub(super) enum RelayRequest {
    Reply(Value),
    /// A tool call; the reply follows its result.
    Call {
        id: Value,
        tool: String,
        arguments: Value,
        progress: Option<Value>,
    },
    /// The handshake with its reply, and the client's name.
    Initialize {
        client: Option<String>,
        reply: Value,
    },
    Cancel(Value),
    Ignored,
}

pub(super) fn read(line: &str, tools: &[Value]) -> RelayRequest {
    match Message::of(line) {
        Message::Request { id, method, params } => match method.as_str() {
            "initialize" => RelayRequest::Initialize {
                client: params["clientInfo"]["name"].as_str().map(str::to_owned),
                reply: result(&id, &introduction(&params)),
            },
            "ping" => RelayRequest::Reply(result(&id, &json!({}))),
            "tools/list" => RelayRequest::Reply(result(&id, &json!({ "tools": tools }))),
            "tools/call" => call(id, &params),
            _ => RelayRequest::Reply(refusal(&id, &format!("{method} is not supported here"))),
        },
        Message::Notification { method, mut params } if method == "notifications/cancelled" => {
            RelayRequest::Cancel(params["requestId"].take())
        }
        Message::Notification { .. }
        | Message::Reply { .. }
        | Message::Other(_)
        | Message::Malformed(_)
        | Message::Text(_) => RelayRequest::Ignored,
    }
}

/// Echoes the client's revision: tools are the same in all of them.
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

pub(super) fn tool_reply(id: &Value, used: &ToolOutcome) -> Value {
    let tool_result = &used.result;
    let mut reply = json!({ "content": tool_result.content, "isError": tool_result.is_error });
    if let Some(facts) = &tool_result.facts {
        reply["structuredContent"] = facts.clone();
    }
    result(id, &reply)
}

fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Returns the error for a client beyond the limit.
pub(super) fn too_many(most: usize) -> Value {
    let message = format!("{most} clients use the tools of this session already; end one of them");
    json!({ "jsonrpc": "2.0", "id": null, "error": { "code": BUSY, "message": message } })
}

fn refusal(id: &Value, message: &str) -> Value {
    let error = json!({ "code": UNKNOWN_METHOD, "message": message });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}
