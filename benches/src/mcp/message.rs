//! What clients say and what they make of the answers.

use serde_json::{Value, json};

use crate::Fault;

/// The revision with sessions.
pub(crate) const WITH_SESSIONS: &str = "2025-11-25";

/// The revision without.
pub(crate) const WITHOUT_SESSIONS: &str = "2026-07-28";

/// What a result of a tool that failed has in it. Looking for it takes less than reading JSON of
/// 100 KB, which would leave the server idle between two calls for longer than they take.
const FAILED: &[u8] = br#""isError":true"#;

/// An error instead of a result has this near its beginning.
const REFUSED: &[u8] = br#""error":{"#;
const HEAD_BYTES: usize = 64;

pub(crate) fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": WITH_SESSIONS,
        "capabilities": {},
        "clientInfo": { "name": "carrel-bench", "version": "1" },
    } })
}

pub(crate) fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// Makes a message stand alone, as the revision without sessions has it.
pub(crate) fn alone(mut message: Value) -> Value {
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": WITHOUT_SESSIONS,
        "io.modelcontextprotocol/clientInfo": { "name": "carrel-bench", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
        // One session for all calls, since some edit what an earlier one has read.
        "dev.carrel/session": "bench",
    });
    message
}

/// Refuses what is no result of a tool that succeeded.
pub(crate) fn must_succeed(reply: &[u8]) -> Result<(), Fault> {
    let head = &reply[..reply.len().min(HEAD_BYTES)];
    if contains(head, REFUSED) || contains(reply, FAILED) || !contains(reply, b"\"result\"") {
        let shown = String::from_utf8_lossy(&reply[..reply.len().min(500)]);
        return Err(format!("a call failed: {shown}").into());
    }
    Ok(())
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}

/// Returns the result that a message brings.
pub(crate) fn result(reply: &[u8]) -> Result<Value, Fault> {
    let mut reply: Value = serde_json::from_slice(reply)?;
    match reply["result"].take() {
        Value::Null => Err(format!("no result: {reply}").into()),
        result => Ok(result),
    }
}

/// Returns the text of a tool's result.
pub(crate) fn text(reply: &[u8]) -> Result<String, Fault> {
    let result = result(reply)?;
    Ok(result["content"][0]["text"].as_str().ok_or("no text")?.to_owned())
}
