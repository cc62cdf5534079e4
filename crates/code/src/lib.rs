//! Source files as syntax trees: symbols, an index of them, structural search and edits.
#![forbid(unsafe_code)]

mod definitions;
mod index;
mod language;
mod structural_edit;
mod symbol;
mod symbols;
mod syntax;
mod words;

pub use index::{
    Definition, FileUses, IndexError, IndexStatistics, IndexView, MAX_HITS, MAX_INDEX_BYTES,
    MapEntry, MapRequest, Refreshed, SearchHit, SearchRequest, SkipReason, StoredIndexError,
    SymbolIndex, UseLine,
};
pub use language::{Language, MissingGrammar};
pub use structural_edit::{
    AffectedSymbol, Candidate, Change, EditError, EditedSource, Escape, LeadingComments,
    MAX_FRAGMENT_BYTES, MAX_LISTED, ParseFailure, ParsedSource, Side, SymbolTarget, TargetError,
};
pub use symbol::{NamePath, Symbol, SymbolKind};
pub use symbols::{FileSymbols, MAX_SYMBOLS, signature, signature_of};
pub use syntax::{MAX_SOURCE_BYTES, PARSE_TIME, SyntaxError, SyntaxTree};
