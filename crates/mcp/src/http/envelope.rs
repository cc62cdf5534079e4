//! The envelope of a message: its method, id and declared revision, read before the message itself.
//!
//! The two lifecycles need different parsers, so the choice between them cannot wait for a full parse.
//! In order of precedence:
//!
//! 1. `initialize` with a `protocolVersion` parameter is a handshake, even if the headers name a stateless revision.
//! 2. `server/discover` exists only in the stateless revision.
//! 3. A revision declared in `params._meta`, or a stateless revision in `MCP-Protocol-Version`, makes the
//!    message stateless; that includes `initialize` without its parameter, which the newer revision
//!    removed and must reject itself.
//! 4. Everything else belongs to a session.
//!
//! Fields that do not matter are skipped without an allocation.

use std::borrow::Cow;

use axum::http::HeaderMap;
use rmcp::model::{ProtocolVersion, RequestId};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, error::Category};

use super::error_response::VERSION_HEADER;
use crate::json_rpc;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EnvelopeFields<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    id: Option<Value>,
    params: Option<Parameters>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parameters {
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
    #[serde(rename = "protocolVersion")]
    protocol_version: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    protocol_version: Option<IgnoredAny>,
}

/// The lifecycle that a message follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    /// Opens a session.
    Handshake,
    /// Belongs to a session.
    Session,
    /// Stands alone, in the revision 2026-07-28.
    Stateless,
}

/// The envelope of one message.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) lifecycle: Lifecycle,
    pub(crate) identifier: Option<RequestId>,
}

impl Envelope {
    /// Reads the envelope of a body; the error is the reason why it is not JSON.
    pub(crate) fn read(body: &[u8], headers: &HeaderMap) -> Result<Self, String> {
        match serde_json::from_slice::<EnvelopeFields<'_>>(body) {
            Ok(fields) => Ok(Self {
                lifecycle: lifecycle(&fields, headers),
                identifier: fields.id.as_ref().and_then(json_rpc::identifier),
            }),
            Err(error) => match error.classify() {
                Category::Syntax | Category::Eof | Category::Io => Err(error.to_string()),
                // JSON of another shape; the full parser reports the details.
                Category::Data => Ok(Self { lifecycle: Lifecycle::Session, identifier: None }),
            },
        }
    }
}

fn lifecycle(fields: &EnvelopeFields<'_>, headers: &HeaderMap) -> Lifecycle {
    let parameters = fields.params.as_ref();
    let names_version = parameters.is_some_and(|parameters| parameters.protocol_version.is_some());
    match fields.method.as_deref() {
        Some("initialize") if names_version => Lifecycle::Handshake,
        Some("server/discover") => Lifecycle::Stateless,
        _ => {
            let meta = parameters.and_then(|parameters| parameters.meta.as_ref());
            let declares = meta.is_some_and(|meta| meta.protocol_version.is_some());
            if declares || is_stateless(headers) {
                Lifecycle::Stateless
            } else if fields.method.as_deref() == Some("initialize") {
                Lifecycle::Handshake
            } else {
                Lifecycle::Session
            }
        }
    }
}

/// Returns whether the headers name a known revision without sessions.
pub(crate) fn is_stateless(headers: &HeaderMap) -> bool {
    named_version(headers).and_then(known_version).is_some_and(|version| !version.has_initialize())
}

/// Returns whether the headers name a revision that the SDK does not know.
pub(crate) fn is_unknown(headers: &HeaderMap) -> bool {
    named_version(headers).is_some_and(|name| known_version(name).is_none())
}

fn named_version(headers: &HeaderMap) -> Option<&str> {
    // A header that is not text counts as an unknown version, not as a missing one.
    headers.get(VERSION_HEADER).map(|value| value.to_str().unwrap_or("?"))
}

fn known_version(name: &str) -> Option<&'static ProtocolVersion> {
    ProtocolVersion::KNOWN_VERSIONS.iter().find(|version| version.as_str() == name)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn lifecycle_of(body: &str, version: Option<&'static str>) -> Lifecycle {
        let mut headers = HeaderMap::new();
        if let Some(version) = version {
            headers.insert(VERSION_HEADER, HeaderValue::from_static(version));
        }
        Envelope::read(body.as_bytes(), &headers).expect("JSON").lifecycle
    }

    #[test]
    fn the_declared_revision_decides_the_lifecycle() {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let cases = [
            (r#"{"method":"tools/list"}"#.to_owned(), Some("2025-11-25"), Lifecycle::Session),
            (r#"{"method":"tools/list"}"#.to_owned(), None, Lifecycle::Session),
            (r#"{"method":"tools/list"}"#.to_owned(), Some("2026-07-28"), Lifecycle::Stateless),
            (
                format!(r#"{{"method":"tools/list","params":{{{meta}}}}}"#),
                None,
                Lifecycle::Stateless,
            ),
            (r#"{"method":"server/discover"}"#.to_owned(), None, Lifecycle::Stateless),
            (
                r#"{"method":"initialize","params":{"protocolVersion":"2026-07-28"}}"#.to_owned(),
                Some("2026-07-28"),
                Lifecycle::Handshake,
            ),
            (
                format!(r#"{{"method":"initialize","params":{{{meta}}}}}"#),
                Some("2026-07-28"),
                Lifecycle::Stateless,
            ),
            (r#"{"result":{}}"#.to_owned(), Some("2025-06-18"), Lifecycle::Session),
        ];
        for (body, version, expected) in cases {
            assert_eq!(lifecycle_of(&body, version), expected, "{body} {version:?}");
        }
    }

    #[test]
    fn a_body_that_is_not_json_is_told_apart_from_one_of_the_wrong_shape() {
        let headers = HeaderMap::new();
        assert!(Envelope::read(b"{\"method\":", &headers).is_err());
        assert!(Envelope::read(b"", &headers).is_err());
        assert!(Envelope::read(b"[1,2]", &headers).is_ok());
        assert!(Envelope::read(b"{\"method\":7}", &headers).is_ok());
    }
}
