//! Replies of tools, typed and encoded.

use serde_json::Value;

use carrel_audit::Interface;

/// A tool's reply: content to read, and facts for programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply<F> {
    /// Bulk: the text of a file, matches, output, a diff. It is not repeated in the facts.
    pub content: Vec<ToolContent>,
    /// Path, range, hash, counts, truncation.
    pub facts: F,
    /// Content and facts as one JSON value, for interfaces that send that instead.
    pub data: Option<Value>,
}

/// A block of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolContent {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// The media type, such as `image/png`.
        mime: &'static str,
        /// The bytes of the file.
        bytes: Vec<u8>,
    },
}

/// A reply or a failure as interfaces encode it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResponse {
    /// Bulk, or the message of the failure.
    pub content: Vec<ToolContent>,
    /// The facts, or the error envelope.
    pub structured: Value,
    /// Content and facts as one value, if the interface sends that and the tool provides it.
    pub data: Option<Value>,
    /// The call was refused or failed. A command that exits with an error is a successful call.
    pub is_error: bool,
}

impl<F> Reply<F> {
    /// Makes a reply with one text.
    pub fn text(text: impl Into<String>, facts: F) -> Self {
        Self::new(vec![ToolContent::Text(text.into())], facts)
    }

    /// Makes a reply with several blocks.
    pub fn new(content: Vec<ToolContent>, facts: F) -> Self {
        Self { content, facts, data: None }
    }

    /// Adds the combined value, if the interface sends it.
    #[must_use]
    pub fn with_data(mut self, interface: Interface, data: impl FnOnce(&F) -> Value) -> Self {
        self.data = interface.wants_data().then(|| data(&self.facts));
        self
    }
}

impl ToolResponse {
    /// Returns all text of the content, joined by line feeds.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            ToolContent::Text(text) => Some(text.as_str()),
            ToolContent::Image { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}
