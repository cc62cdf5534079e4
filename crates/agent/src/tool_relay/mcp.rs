//! The replies of MCP that a tool relay needs.

use serde_json::{Value, json};

use crate::rpc::UNKNOWN_METHOD;
use crate::session_tools::ToolOutcome;

/// The protocol revision for clients that name none.
const REVISION: &str = "2025-06-18";

/// The error code of a server that is at its limit.
const BUSY: i64 = -32000;

/// Echoes the client's revision: tools are the same in all of them.
pub(super) fn introduction(params: &Value) -> Value {
    let revision = params["protocolVersion"].as_str().unwrap_or(REVISION);
    json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "carrel", "title": "Carrel", "version": env!("CARGO_PKG_VERSION") },
    })
}

pub(super) fn tool_reply(id: &Value, used: &ToolOutcome) -> Value {
    let tool_result = &used.result;
    let mut reply = json!({ "content": tool_result.content, "isError": tool_result.is_error });
    if let Some(facts) = &tool_result.facts {
        reply["structuredContent"] = facts.clone();
    }
    result(id, &reply)
}

pub(super) fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Returns the error for a client beyond the limit.
pub(super) fn too_many(most: usize) -> Value {
    let message = format!("{most} clients use the tools of this session already; end one of them");
    json!({ "jsonrpc": "2.0", "id": null, "error": { "code": BUSY, "message": message } })
}

pub(super) fn refusal(id: &Value, message: &str) -> Value {
    let error = json!({ "code": UNKNOWN_METHOD, "message": message });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}
