//! As much of MCP as tools need.

use serde_json::{Value, json};

use crate::reporter::Reporter;
use crate::rpc::{Message, UNKNOWN_METHOD};
use crate::toolbox::Toolbox;

/// What is said to those who do not say which revision they speak.
const REVISION: &str = "2025-06-18";

/// Answers a line; nothing if it wants no answer.
pub(super) async fn answer(line: &str, tools: &Toolbox, reporter: &Reporter) -> Option<Value> {
    let Message::Request { id, method, params } = Message::of(line) else { return None };
    let result = match method.as_str() {
        "initialize" => Some(introduction(&params)),
        "ping" => Some(json!({})),
        "tools/list" => Some(json!({ "tools": tools.list() })),
        "tools/call" => Some(call(&params, tools, reporter).await),
        _ => None,
    };
    let mut answer = json!({ "jsonrpc": "2.0", "id": id });
    if let Some(result) = result {
        answer["result"] = result;
    } else {
        let message = format!("{method} is not offered here");
        answer["error"] = json!({ "code": UNKNOWN_METHOD, "message": message });
    }
    Some(answer)
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

async fn call(params: &Value, tools: &Toolbox, reporter: &Reporter) -> Value {
    let name = params["name"].as_str().unwrap_or_default();
    let arguments = params.get("arguments").filter(|arguments| !arguments.is_null());
    let used = tools.call(name, arguments.cloned().unwrap_or_else(|| json!({}))).await;
    reporter.something(used.event, Some(name)).await;
    json!({ "content": [{ "type": "text", "text": used.output }], "isError": !used.success })
}
