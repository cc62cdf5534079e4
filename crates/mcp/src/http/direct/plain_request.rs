//! Requests that need no service loop.

use axum::http::{HeaderMap, HeaderName};
use rmcp::model::{
    CallToolRequestParams, JsonObject, PaginatedRequestParams, ProtocolVersion, RequestId,
    RequestMetaObject,
};
use serde::Deserialize;
use serde_json::Value;

use super::super::error_response::VERSION_HEADER;

const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");

const CALL_TOOL: &str = "tools/call";
const LIST_TOOLS: &str = "tools/list";
const PROGRESS_TOKEN: &str = "progressToken";
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Text is borrowed, so that a method with an escape in it is not plain.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageFields<'a> {
    jsonrpc: &'a str,
    id: RequestId,
    method: &'a str,
    params: Option<ParameterFields>,
}

/// The parameters of both methods.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParameterFields {
    name: Option<String>,
    arguments: Option<JsonObject>,
    #[serde(rename = "_meta")]
    meta: Option<JsonObject>,
}

/// A method and its parameters, without their metadata.
#[derive(Debug)]
pub(crate) enum PlainMethod {
    CallTool(CallToolRequestParams),
    ListTools(Option<PaginatedRequestParams>),
}

/// A `tools/call` or `tools/list` without a progress token and without a field that is unknown here.
#[derive(Debug)]
pub(crate) struct PlainRequest {
    pub(crate) identifier: RequestId,
    pub(crate) method: PlainMethod,
    pub(crate) meta: RequestMetaObject,
}

impl PlainRequest {
    /// Reads a plain request from a body. `None` is no verdict: the SDK's parser decides about the message.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let fields: MessageFields<'_> = serde_json::from_slice(body).ok()?;
        if fields.jsonrpc != "2.0" {
            return None;
        }
        let (method, meta) = match (fields.method, fields.params) {
            (CALL_TOOL, Some(ParameterFields { name: Some(name), arguments, meta })) => {
                let mut call = CallToolRequestParams::new(name);
                call.arguments = arguments;
                (PlainMethod::CallTool(call), meta)
            }
            (LIST_TOOLS, Some(ParameterFields { name: None, arguments: None, meta })) => {
                (PlainMethod::ListTools(Some(PaginatedRequestParams::default())), meta)
            }
            (LIST_TOOLS, None) => (PlainMethod::ListTools(None), None),
            _ => return None,
        };
        let meta = RequestMetaObject::from(meta.unwrap_or_default());
        let plain = Self { identifier: fields.id, method, meta };
        (!plain.meta.contains_key(PROGRESS_TOKEN)).then_some(plain)
    }

    /// Returns the name of the tool that is called.
    pub(crate) fn tool(&self) -> Option<&str> {
        match &self.method {
            PlainMethod::CallTool(call) => Some(&call.name),
            PlainMethod::ListTools(_) => None,
        }
    }

    /// Returns whether the request is a complete one of the stateless revision: headers that say the same as
    /// the body, well-formed metadata, and a client without the extension for tasks, which may be answered
    /// with one.
    pub(crate) fn stands_alone(&self, headers: &HeaderMap) -> bool {
        let version = ProtocolVersion::V_2026_07_28;
        let method = if self.tool().is_some() { CALL_TOOL } else { LIST_TOOLS };
        is_only(headers, VERSION_HEADER, version.as_str())
            && is_only(headers, METHOD_HEADER, method)
            && self.tool().is_none_or(|tool| is_only(headers, NAME_HEADER, tool))
            && self.meta.get(META_VERSION).and_then(Value::as_str) == Some(version.as_str())
            && self.meta.client_capabilities().is_some_and(|client| !client.supports_tasks())
    }
}

/// Returns whether a header is there once, with this value.
fn is_only(headers: &HeaderMap, name: HeaderName, value: &str) -> bool {
    let mut given = headers.get_all(name).iter();
    given.next().is_some_and(|first| first == value) && given.next().is_none()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

    fn call(meta: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"Read","_meta":{meta}}}}}"#
        )
    }

    fn headers(method: &'static str, name: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(VERSION_HEADER, HeaderValue::from_static("2026-07-28"));
        headers.insert(METHOD_HEADER, HeaderValue::from_static(method));
        headers.insert(NAME_HEADER, HeaderValue::from_static(name));
        headers
    }

    #[test]
    fn a_message_with_an_unknown_field_or_a_progress_token_is_not_plain() {
        assert!(PlainRequest::read(call("{}").as_bytes()).is_some());
        for message in [
            call(r#"{"progressToken":1}"#),
            call(r#"{"progressToken":null}"#),
            call("7"),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","task":{}}}"#
                .to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#
                .to_owned(),
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/list","params":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/list","params":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","method":"tools/list","params":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned(),
            "[]".to_owned(),
        ] {
            assert!(PlainRequest::read(message.as_bytes()).is_none(), "{message}");
        }
    }

    #[test]
    fn only_headers_and_metadata_that_agree_with_the_body_make_it_stand_alone() {
        let plain = |meta: &str| PlainRequest::read(call(meta).as_bytes()).expect("plain");
        let good = headers("tools/call", "Read");
        assert!(plain(META).stands_alone(&good));
        assert!(!plain(META).stands_alone(&headers("tools/list", "Read")));
        assert!(!plain(META).stands_alone(&headers("tools/call", "Write")));
        for name in [VERSION_HEADER, METHOD_HEADER, NAME_HEADER] {
            let (mut missing, mut twice) = (good.clone(), good.clone());
            missing.remove(&name);
            twice.append(&name, good[&name].clone());
            assert!(!plain(META).stands_alone(&missing), "{name} missing");
            assert!(!plain(META).stands_alone(&twice), "{name} twice");
        }
        for meta in [
            "{}".to_owned(),
            META.replace("2026-07-28", "2025-11-25"),
            META.replace("clientCapabilities\":{}", "clientCapabilities\":7"),
            META.replace(
                "clientCapabilities\":{}",
                r#"clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
            ),
        ] {
            assert!(!plain(&meta).stands_alone(&good), "{meta}");
        }
    }
}
