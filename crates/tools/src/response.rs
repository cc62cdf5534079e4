//! What a tool answers.

use serde_json::Value;

use crate::interface::Interface;

/// What a tool answers: bulk for the reader, facts for programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply<F> {
    /// The text of a file, matches, output, a diff: whatever is to be read. It is sent once.
    pub content: Vec<ToolContent>,
    /// Path, range, hash, counts, and what was cut.
    pub facts: F,
    /// Bulk and facts as one value, for a door that wants that instead.
    pub data: Option<Value>,
}

/// A piece of bulk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolContent {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// Its format, such as `image/png`.
        mime: &'static str,
        /// The file as it is.
        bytes: Vec<u8>,
    },
}

/// What a door encodes.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResponse {
    /// What is to be read.
    pub content: Vec<ToolContent>,
    /// The facts, or the error envelope.
    pub structured: Value,
    /// Bulk and facts as one value, if the door wants that and the tool has it.
    pub data: Option<Value>,
    /// The call was refused or failed. A command that ends with an error is no such thing.
    pub is_error: bool,
}

impl<F> Reply<F> {
    /// Answers with one text.
    pub fn text(text: impl Into<String>, facts: F) -> Self {
        Self::new(vec![ToolContent::Text(text.into())], facts)
    }

    /// Answers with several pieces.
    pub fn new(content: Vec<ToolContent>, facts: F) -> Self {
        Self { content, facts, data: None }
    }

    /// Adds what a door gets that wants bulk and facts as one value.
    #[must_use]
    pub fn with_data(mut self, interface: Interface, data: impl FnOnce(&F) -> Value) -> Self {
        self.data = interface.wants_data().then(|| data(&self.facts));
        self
    }
}

impl ToolResponse {
    /// Returns all text of the answer.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|content| match content {
            ToolContent::Text(text) => Some(text.as_str()),
            ToolContent::Image { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns how many bytes it has to read.
    pub fn length(&self) -> usize {
        let lengths = self.content.iter().map(|content| match content {
            ToolContent::Text(text) => text.len(),
            ToolContent::Image { bytes, .. } => bytes.len(),
        });
        lengths.sum()
    }
}
