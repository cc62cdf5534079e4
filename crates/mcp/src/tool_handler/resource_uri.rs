//! The URIs of resources.
//!
//! | URI | resource |
//! |---|---|
//! | `carrel://files/WORKSPACE/PATH` | a file; PATH is relative to the workspace |
//! | `carrel://jobs/ID/log` | the output of a command so far |
//! | `carrel://docs/PAGE` | a page of the documentation |
//!
//! Segments are percent-encoded. A path is decoded once and then resolved by the kernel beneath the
//! workspace, so that no encoding of `..`, and no link, leads out of it.

use std::fmt::{self, Write as _};

const FILES: &str = "carrel://files/";
const JOBS: &str = "carrel://jobs/";
const DOCS: &str = "carrel://docs/";
const LOG: &str = "/log";

/// A longer URI is refused: no path of the kernel needs it, not even encoded.
const MAX_URI_BYTES: usize = 16 * 1024;

/// A resource that a URI names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ResourceUri {
    File { workspace: String, path: String },
    JobLog { id: String },
    Page { name: String },
}

impl ResourceUri {
    /// Parses a URI; none if it is not of this server.
    pub(super) fn parse(uri: &str) -> Option<Self> {
        if uri.len() > MAX_URI_BYTES || uri.contains(['?', '#']) {
            return None;
        }
        if let Some(rest) = uri.strip_prefix(FILES) {
            let (workspace, path) = rest.split_once('/')?;
            let (workspace, path) = (decoded(workspace)?, decoded(path)?);
            let is_given = !workspace.is_empty() && !path.is_empty();
            return is_given.then_some(Self::File { workspace, path });
        }
        if let Some(rest) = uri.strip_prefix(JOBS) {
            return Some(Self::JobLog { id: decoded(rest.strip_suffix(LOG)?)? });
        }
        uri.strip_prefix(DOCS).and_then(decoded).map(|name| Self::Page { name })
    }
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { workspace, path } => {
                write!(formatter, "{FILES}{}/{}", encoded(workspace, ""), encoded(path, "/"))
            }
            Self::JobLog { id } => write!(formatter, "{JOBS}{}{LOG}", encoded(id, "")),
            Self::Page { name } => write!(formatter, "{DOCS}{}", encoded(name, "")),
        }
    }
}

/// Encodes a text; bytes of `kept` and unreserved ones stay.
fn encoded(text: &str, kept: &str) -> String {
    let is_kept = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.as_bytes().contains(&byte)
    };
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_kept(byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("writing to a string cannot fail");
        }
    }
    encoded
}

/// Decodes a text once; none if it is not well encoded, or is no UTF-8 then.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit =
            |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(rest.next()?)? * 16 + digit(rest.next()?)?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_one_resource_and_every_resource_has_one() {
        let file = |workspace: &str, path: &str| ResourceUri::File {
            workspace: workspace.to_owned(),
            path: path.to_owned(),
        };
        for (uri, resource) in [
            ("carrel://files/api/src/main.rs", file("api", "src/main.rs")),
            ("carrel://files/api%2Fcrates/a%20b%25", file("api/crates", "a b%")),
            ("carrel://files/api/%C3%A4%3F%23", file("api", "ä?#")),
            ("carrel://jobs/job_1/log", ResourceUri::JobLog { id: "job_1".to_owned() }),
            ("carrel://docs/mcp.md", ResourceUri::Page { name: "mcp.md".to_owned() }),
        ] {
            assert_eq!(ResourceUri::parse(uri), Some(resource.clone()));
            assert_eq!(resource.to_string(), uri);
        }
        // Dots are data here; the kernel decides about them.
        assert_eq!(ResourceUri::parse("carrel://files/api/%2e%2e/x"), Some(file("api", "../x")));
    }

    #[test]
    fn other_texts_are_no_uris_of_this_server() {
        for text in [
            "",
            "file:///etc/passwd",
            "carrel://files/api",
            "carrel://files/api/",
            "carrel://files//x",
            "carrel://files/api/%",
            "carrel://files/api/%4",
            "carrel://files/api/%+4",
            "carrel://files/api/%ff",
            "carrel://files/api/x?y",
            "carrel://files/api/x#y",
            "carrel://jobs/job_1",
            "CARREL://files/api/x",
            "carrel:files/api/x",
        ] {
            assert_eq!(ResourceUri::parse(text), None, "{text}");
        }
        assert_eq!(ResourceUri::parse(&format!("carrel://files/a/{}", "x".repeat(20_000))), None);
    }
}
