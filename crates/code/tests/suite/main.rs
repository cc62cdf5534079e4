//! The tests of this crate that use its public interface.
//!
//! - `hostile_code`: hostile sources, texts and rules
//! - `index`: the symbol index over real directories
//! - `optional_grammars`: the languages that a usual build leaves out
//! - `real_files`: random edits of real sources
//! - `rewrites`: replacements by rules, and renames
//! - `structural_edits`: edits that are addressed by symbols, in every language
//! - `structural_search`: patterns and rules in every language
//! - `symbols`: the symbols of a source in every language
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and its files are its own"
)]

mod hostile_code;
mod index;
#[cfg(feature = "all-grammars")]
mod optional_grammars;
mod real_files;
mod rewrites;
mod structural_edits;
mod structural_search;
mod symbols;
