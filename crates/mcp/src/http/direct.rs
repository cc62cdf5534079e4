//! The short way of a plain request: from the connection's task straight to the handler.
//!
//! The SDK serves a request with a service loop and two or three tasks, and parses it by trying one message
//! type after the other. For `tools/call` and `tools/list`, which are most of the traffic, that costs several
//! times as much as the tool itself. A [`PlainRequest`] is parsed once, and its handler is polled in the task
//! of the connection.
//!
//! A request is plain if it has nothing that needs the service loop: no progress token, no task, no field that
//! [`plain_request`] does not know, no header that disagrees with the body. Everything else, every malformed
//! message among it, takes the long way, so that there is one place for each error. The result of a handler is
//! shaped for the client's revision as the SDK's dispatch does. A test holds both ways against each other, byte
//! by byte.
//!
//! What a call owes its client does not depend on the way. In a session it goes on without its connection, its
//! reply can be resumed and `notifications/cancelled` reaches it; in the stateless revision a client that closes
//! its response cancels it. An [`InlineCall`] keeps running in a task of its own when its connection's task
//! drops it.

mod inline_call;
mod plain_request;
mod stateless_peer;

use std::fmt;

use futures_util::future::BoxFuture;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolResponse, ClientCapabilities, ErrorCode, JsonObject, JsonRpcMessage,
        ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
    },
    service::{Peer, RequestContext},
};
use serde_json::Value;

use crate::panic_shield::PanicShield;
pub(crate) use inline_call::InlineCall;
pub(crate) use plain_request::{PlainMethod, PlainRequest};
pub(crate) use stateless_peer::StatelessPeer;

/// The annotation in a tool's schema.
const ARGUMENT_HEADER: &str = "x-mcp-header";

/// The shape of results, by the client's revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultShape {
    /// Since 2026-07-28: every result says its type, and lists say for how long they may be kept.
    Typed,
    /// Before.
    Plain,
}

impl ResultShape {
    fn of(version: &ProtocolVersion) -> Self {
        // Revisions are dates, so their text is in the order of time.
        let is_typed = version.as_str() >= ProtocolVersion::V_2026_07_28.as_str();
        if is_typed { Self::Typed } else { Self::Plain }
    }
}

impl PanicShield {
    /// Serves one request of a client that has not declared tasks. The future may be dropped only by a
    /// runtime that ends.
    pub(crate) fn dispatch(
        self,
        request: PlainMethod,
        context: RequestContext<RoleServer>,
        shape: ResultShape,
    ) -> BoxFuture<'static, Result<ServerResult, ErrorData>> {
        match request {
            PlainMethod::CallTool(call) => Box::pin(async move {
                let response = self.call_tool(call, context).await;
                shaped(response.and_then(without_task), shape)
            }),
            PlainMethod::ListTools(page) => Box::pin(async move {
                let listed = self.list_tools(page, context).await;
                shaped(listed.map(ServerResult::ListToolsResult), shape)
            }),
        }
    }

    /// Returns whether the handler speaks a revision.
    pub(crate) fn speaks(&self, version: &ProtocolVersion) -> bool {
        self.supported_protocol_versions().contains(version)
    }

    /// Returns whether headers of a call have to repeat arguments of the tool.
    pub(crate) fn repeats_arguments(&self, tool: &str) -> bool {
        self.get_tool(tool).is_some_and(|tool| has_argument_header(&tool.input_schema))
    }
}

/// Refuses a task, which a client that has not declared tasks could not read.
fn without_task(response: CallToolResponse) -> Result<ServerResult, ErrorData> {
    if matches!(response, CallToolResponse::Task(_)) {
        let required = ClientCapabilities::builder().enable_tasks().build();
        return Err(ErrorData::missing_required_client_capability(required));
    }
    Ok(response.into())
}

/// Shapes a result for the client's revision, as the SDK does.
fn shaped(
    result: Result<ServerResult, ErrorData>,
    shape: ResultShape,
) -> Result<ServerResult, ErrorData> {
    match (result, shape) {
        (Ok(mut result), ResultShape::Typed) => {
            result.fill_missing_cache_hints();
            Ok(result)
        }
        (Ok(ServerResult::InputRequiredResult(_)), ResultShape::Plain) => {
            let message =
                "InputRequiredResult requires negotiated protocol version 2026-07-28 or newer";
            Err(ErrorData::invalid_request(message, None))
        }
        (Ok(mut result), ResultShape::Plain) => {
            result.strip_result_type_for_legacy_peer();
            Ok(result)
        }
        (Err(mut error), ResultShape::Typed) if error.code == ErrorCode::RESOURCE_NOT_FOUND => {
            error.code = ErrorCode::INVALID_PARAMS;
            Err(error)
        }
        (Err(error), ResultShape::Typed | ResultShape::Plain) => Err(error),
    }
}

/// Looks for the annotation of an argument that a header repeats, in a schema and the objects below it.
fn has_argument_header(schema: &JsonObject) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut schemas = properties.into_iter().flat_map(JsonObject::values);
    schemas.any(|schema| {
        schema.as_object().is_some_and(|schema| {
            schema.contains_key(ARGUMENT_HEADER) || has_argument_header(schema)
        })
    })
}

/// The handler of a session and the client at its other end.
#[derive(Clone)]
pub(crate) struct SessionHandler {
    pub(crate) handler: PanicShield,
    pub(crate) peer: Peer<RoleServer>,
}

impl fmt::Debug for SessionHandler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SessionHandler")
    }
}

impl SessionHandler {
    /// Returns the shape of results if calls of this client may take the short way. They may not if it declared
    /// roots: a change of the roots narrows later calls, and notifications pass through the service loop. Nor
    /// if it declared tasks.
    pub(crate) fn shape(&self) -> Option<ResultShape> {
        let client = self.peer.peer_info()?;
        let is_plain = client.capabilities.roots.is_none() && !client.capabilities.supports_tasks();
        is_plain.then(|| ResultShape::of(&client.protocol_version))
    }
}

/// Makes the message that answers a request.
pub(crate) fn reply(
    identifier: RequestId,
    result: Result<ServerResult, ErrorData>,
) -> ServerJsonRpcMessage {
    match result {
        Ok(result) => JsonRpcMessage::response(result, identifier),
        Err(error) => JsonRpcMessage::error(error, Some(identifier)),
    }
}
