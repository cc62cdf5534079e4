//! Code intelligence: overviews, symbols by name, definitions, references, search and maps.
//!
//! Answers come from syntax trees and the symbol index of the workspace (crate `code`). Each says of which kind
//! it is ([`AnswerFacts`]): syntactic answers know names and where they stand, not which of several
//! definitions a use means.

mod answer;
mod find_definition;
mod find_references;
mod outline;
mod read_symbol;
mod repo_map;
mod search_code;
mod source_file;
mod symbol_indexes;
mod symbol_query;
mod target;

pub use symbol_indexes::SymbolIndexes;

use crate::registry::Catalogue;

pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add::<outline::Outline>();
    catalogue.add::<read_symbol::ReadSymbol>();
    catalogue.add::<find_definition::FindDefinition>();
    catalogue.add::<find_references::FindReferences>();
    catalogue.add::<search_code::SearchCode>();
    catalogue.add::<repo_map::RepoMap>();
}
