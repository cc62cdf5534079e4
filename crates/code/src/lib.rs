//! Source files as syntax trees: symbols, an index of them, structural search and edits.
#![forbid(unsafe_code)]

mod language;
mod syntax;

pub use language::{Language, MissingGrammar};
pub use syntax::{MAX_SOURCE_BYTES, PARSE_TIME, SyntaxError, SyntaxTree};
