//! A first look at a request body: is it JSON, and which revision's rules is it for?

use std::borrow::Cow;

use axum::http::HeaderMap;
use rmcp::model::{ProtocolVersion, RequestId};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, error::Category};

use super::error_response::VERSION_HEADER;
use crate::json_rpc;

/// The parts of a message that decide who handles it. Everything else is skipped unread.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Outline<'a> {
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

/// Whose rules a message follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    /// It opens a session.
    Handshake,
    /// It belongs to a session.
    Session,
    /// It stands alone, as the revision 2026-07-28 has it.
    Stateless,
}

/// What a first look says.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) lifecycle: Lifecycle,
    pub(crate) identifier: Option<RequestId>,
}

impl Envelope {
    /// Looks at a body; the error is why it is not JSON.
    pub(crate) fn read(body: &[u8], headers: &HeaderMap) -> Result<Self, String> {
        match serde_json::from_slice::<Outline<'_>>(body) {
            Ok(outline) => Ok(Self {
                lifecycle: lifecycle(&outline, headers),
                identifier: outline.id.as_ref().and_then(json_rpc::identifier),
            }),
            Err(error) => match error.classify() {
                Category::Syntax | Category::Eof | Category::Io => Err(error.to_string()),
                // JSON of another shape; the full reading says what is wrong with it.
                Category::Data => Ok(Self { lifecycle: Lifecycle::Session, identifier: None }),
            },
        }
    }
}

fn lifecycle(outline: &Outline<'_>, headers: &HeaderMap) -> Lifecycle {
    let parameters = outline.params.as_ref();
    let names_version = parameters.is_some_and(|parameters| parameters.protocol_version.is_some());
    match outline.method.as_deref() {
        // Without a version it is no handshake but the removed method of the newer revision.
        Some("initialize") if names_version => Lifecycle::Handshake,
        Some("server/discover") => Lifecycle::Stateless,
        _ => {
            let meta = parameters.and_then(|parameters| parameters.meta.as_ref());
            let declares = meta.is_some_and(|meta| meta.protocol_version.is_some());
            if declares || is_stateless(headers) {
                Lifecycle::Stateless
            } else if outline.method.as_deref() == Some("initialize") {
                Lifecycle::Handshake
            } else {
                Lifecycle::Session
            }
        }
    }
}

/// Whether the headers name a known revision without sessions.
pub(crate) fn is_stateless(headers: &HeaderMap) -> bool {
    named_version(headers).and_then(known_version).is_some_and(|version| !version.has_initialize())
}

/// Whether the headers name a revision that nobody knows.
pub(crate) fn is_unknown(headers: &HeaderMap) -> bool {
    named_version(headers).is_some_and(|name| known_version(name).is_none())
}

fn named_version(headers: &HeaderMap) -> Option<&str> {
    // A header that is no text names no version that is known.
    headers.get(VERSION_HEADER).map(|value| value.to_str().unwrap_or("?"))
}

fn known_version(name: &str) -> Option<&'static ProtocolVersion> {
    ProtocolVersion::KNOWN_VERSIONS.iter().find(|version| version.as_str() == name)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn look(body: &str, version: Option<&'static str>) -> Lifecycle {
        let mut headers = HeaderMap::new();
        if let Some(version) = version {
            headers.insert(VERSION_HEADER, HeaderValue::from_static(version));
        }
        Envelope::read(body.as_bytes(), &headers).expect("JSON").lifecycle
    }

    #[test]
    fn the_revision_decides_who_handles_a_message() {
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
            assert_eq!(look(&body, version), expected, "{body} {version:?}");
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
