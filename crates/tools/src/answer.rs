//! What a tool answers.

use serde_json::Value;

use crate::events::Door;

/// What a tool answers: bulk for the reader, facts for programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply<F> {
    /// The text of a file, matches, output, a diff: whatever is to be read. It is sent once.
    pub content: Vec<Content>,
    /// Path, range, hash, counts, and what was cut.
    pub facts: F,
    /// Bulk and facts as one value, for a door that wants that instead.
    pub data: Option<Value>,
}

/// A piece of bulk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
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
pub struct Answer {
    /// What is to be read.
    pub content: Vec<Content>,
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
        Self::new(vec![Content::Text(text.into())], facts)
    }

    /// Answers with several pieces.
    pub fn new(content: Vec<Content>, facts: F) -> Self {
        Self { content, facts, data: None }
    }

    /// Adds what a door gets that wants bulk and facts as one value.
    #[must_use]
    pub fn with_data(mut self, door: Door, data: impl FnOnce(&F) -> Value) -> Self {
        self.data = door.wants_data().then(|| data(&self.facts));
        self
    }
}

impl Answer {
    /// Returns all text of the answer.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|content| match content {
            Content::Text(text) => Some(text.as_str()),
            Content::Image { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns how many bytes it has to read.
    pub fn length(&self) -> usize {
        let lengths = self.content.iter().map(|content| match content {
            Content::Text(text) => text.len(),
            Content::Image { bytes, .. } => bytes.len(),
        });
        lengths.sum()
    }
}
