//! Source files as syntax trees: symbols, an index of them, structural search and edits.
#![forbid(unsafe_code)]

mod call_fit;
mod definitions;
mod index;
mod language;
mod line_index;
mod name_ranges;
mod rewrite;
mod scanner_limits;
mod structural_edit;
mod structural_search;
mod symbol;
mod symbols;
mod syntax;
mod words;

pub use call_fit::{CallFit, CallSite, Parameters, call_sites};
pub use index::{
    Definition, FileDefinitions, FileUses, IndexError, IndexStatistics, IndexView, MAX_HITS,
    MAX_INDEX_BYTES, MapEntry, MapRequest, Refreshed, SearchHit, SearchRequest, SkipReason,
    StoredIndexError, SymbolIndex, UseLine,
};
pub use language::{Language, MissingGrammar};
pub use name_ranges::name_ranges;
pub use rewrite::{
    CodeEdit, MAX_OPERATIONS, OperationEffect, Region, Rename, RenameTarget, Replacement,
    RewriteError, RewriteProblem, RewrittenSource, Site, rewrite,
};
pub use structural_edit::{
    AffectedSymbol, Candidate, Change, EditError, EditedSource, Escape, LeadingComments,
    MAX_FRAGMENT_BYTES, MAX_LISTED, ParseFailure, ParsedSource, Side, SymbolTarget, TargetError,
};
pub use structural_search::{
    Capture, CodeMatch, CodeSearch, Constraint, Constraints, MAX_COMPARED_DEPTH, MAX_CONDITIONS,
    MAX_LIST_DEPTH, MAX_MATCHES, MAX_PATTERN_BYTES, MAX_PATTERN_DEPTH, MAX_REGEX_BYTES,
    MAX_RULE_DEPTH, PatternError, PatternText, Relation, Rule, RuleError, SearchError,
    SearchResult, StopBy, Strictness, TimeBudget,
};
pub use symbol::{NamePath, Symbol, SymbolKind};
pub use symbols::{FileSymbols, MAX_SYMBOLS, signature, signature_of};
pub use syntax::{MAX_SOURCE_BYTES, PARSE_TIME, SyntaxError, SyntaxTree};
