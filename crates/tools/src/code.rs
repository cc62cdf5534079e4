//! Code intelligence: overviews, symbols by name, definitions, references, search and maps.
//!
//! Answers come from language servers (crate `lsp`) where one is installed and ready, and otherwise from syntax trees
//! and the symbol index of the workspace (crate `code`). Each says of which kind it is (`AnswerFacts`): syntactic
//! answers know names and where they stand, not which of several definitions a use means.

mod answer;
mod code_edit;
mod code_scan;
mod delete_symbol;
mod diagnostics;
mod find_definition;
mod find_references;
mod hover;
mod left_out;
mod moved_imports;
mod outline;
mod question;
mod read_symbol;
mod rename_symbol;
mod repo_map;
mod search_code;
mod semantics;
mod signature_calls;
mod source_file;
mod symbol_edit;
mod symbol_edit_tools;
mod symbol_indexes;
mod symbol_query;
mod unindexed;

pub(crate) use moved_imports::{MovedImports, UpdatedFile, update as update_imports};
pub(crate) use rename_symbol::LastRename;
pub use symbol_indexes::SymbolIndexes;

use crate::registry::Catalogue;

pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add::<outline::Outline>();
    catalogue.add::<read_symbol::ReadSymbol>();
    catalogue.add::<find_definition::FindDefinition>();
    catalogue.add::<find_references::FindReferences>();
    catalogue.add::<find_definition::FindImplementations>();
    catalogue.add::<hover::Hover>();
    catalogue.add::<diagnostics::Diagnostics>();
    catalogue.add::<rename_symbol::RenameSymbol>();
    catalogue.add::<search_code::SearchCode>();
    catalogue.add::<code_scan::CodeScan>();
    catalogue.add::<code_edit::CodeEdit>();
    catalogue.add::<repo_map::RepoMap>();
    catalogue.add::<symbol_edit_tools::EditFunctionBody>();
    catalogue.add::<symbol_edit_tools::ChangeFunctionSignature>();
    catalogue.add::<symbol_edit_tools::InsertAfterMethod>();
    catalogue.add::<symbol_edit_tools::ReplaceSymbol>();
    catalogue.add::<symbol_edit_tools::InsertBeforeSymbol>();
    catalogue.add::<symbol_edit_tools::InsertAfterSymbol>();
    catalogue.add::<delete_symbol::DeleteSymbol>();
}
