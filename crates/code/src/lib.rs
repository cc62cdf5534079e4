//! Source files as syntax trees: symbols, an index of them, structural search and edits.
#![forbid(unsafe_code)]

mod definitions;
mod language;
mod symbol;
mod symbols;
mod syntax;

pub use language::{Language, MissingGrammar};
pub use symbol::{NamePath, Symbol, SymbolKind};
pub use symbols::{FileSymbols, MAX_SYMBOLS, signature};
pub use syntax::{MAX_SOURCE_BYTES, PARSE_TIME, SyntaxError, SyntaxTree};
