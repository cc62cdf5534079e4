//! Parsing of source files, in bounded time.
//!
//! The parsers are C code that is given files which a tenant wrote. They recover from every error, so that
//! half a file still has symbols; what they did not understand is counted. A file beyond [`MAX_SOURCE_BYTES`]
//! is not parsed, and one that takes longer than [`PARSE_TIME`] is given up.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree, TreeCursor};

use crate::language::{Language, MissingGrammar};
use crate::scanner_limits;

/// Larger files are data or generated, and their trees take ten times the memory. The amalgamation of SQLite has
/// 9 MB.
pub const MAX_SOURCE_BYTES: usize = 12 << 20;

/// The time after which a parse is given up. Sources take a second for 5 MB; only hostile ones take longer.
pub const PARSE_TIME: Duration = Duration::from_secs(10);

/// The levels of a tree that walks descend. Source that people wrote has fewer than 200.
pub(crate) const MAX_DEPTH: usize = 1_000;

/// Why a file has no syntax tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// The build lacks the grammar.
    #[error(transparent)]
    Grammar(#[from] MissingGrammar),
    /// The file is too large.
    #[error("{bytes} bytes; at most {MAX_SOURCE_BYTES} are parsed")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The file is nested so deeply that the parser could not hold its state.
    #[error("nested more deeply than the parser of {language} can hold")]
    TooDeep {
        /// The language.
        language: Language,
    },
    /// The parser took too long.
    #[error("parsing took longer than {} s", PARSE_TIME.as_secs())]
    TimedOut,
}

/// A parsed source file.
#[derive(Clone, Debug)]
pub struct SyntaxTree {
    language: Language,
    tree: Tree,
}

impl SyntaxTree {
    /// Parses a source text.
    ///
    /// # Panics
    ///
    /// If a grammar is of a version that the parser does not read, which a test of all grammars excludes.
    pub fn parse(language: Language, source: &str) -> Result<Self, SyntaxError> {
        if source.len() > MAX_SOURCE_BYTES {
            return Err(SyntaxError::TooLarge { bytes: source.len() });
        }
        let grammar = language.grammar()?;
        if !scanner_limits::is_within(language, source) {
            return Err(SyntaxError::TooDeep { language });
        }
        let mut parser = Parser::new();
        // A grammar of a version that the parser does not read is as good as none.
        parser.set_language(&grammar).map_err(|_| MissingGrammar { language })?;
        let begun = Instant::now();
        let mut watch = |_: &ParseState| {
            if begun.elapsed() < PARSE_TIME {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        let options = ParseOptions::new().progress_callback(&mut watch);
        let bytes = source.as_bytes();
        let mut read = |offset: usize, _| bytes.get(offset..).unwrap_or_default();
        let tree = parser.parse_with_options(&mut read, None, Some(options));
        Ok(Self { language, tree: tree.ok_or(SyntaxError::TimedOut)? })
    }

    /// Returns the language.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Returns the tree of the parser's library.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the root of the tree.
    pub fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    /// Returns true if a part of the source was not understood.
    pub fn has_error(&self) -> bool {
        self.root().has_error()
    }

    /// Returns the byte ranges of the parts that were not understood, and of missing tokens, in order.
    pub fn errors(&self) -> Vec<std::ops::Range<usize>> {
        let mut errors = Vec::new();
        let mut cursor = self.tree.walk();
        loop {
            let node = cursor.node();
            if node.is_error() || node.is_missing() {
                errors.push(node.byte_range());
            }
            // Parts without errors are not entered.
            let enter = node.has_error() && !node.is_error();
            if enter && cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return errors;
                }
            }
        }
    }
}

/// Returns a node and all nodes below it, parents before their children, without recursion.
pub(crate) fn preorder(root: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let mut cursor = root.walk();
    let mut next = Some(root);
    std::iter::from_fn(move || {
        let node = next?;
        next = advance(&mut cursor).then(|| cursor.node());
        Some(node)
    })
}

fn advance(cursor: &mut TreeCursor<'_>) -> bool {
    if cursor.goto_first_child() {
        return true;
    }
    while !cursor.goto_next_sibling() {
        if !cursor.goto_parent() {
            return false;
        }
    }
    true
}

/// Returns the number of levels below a node.
pub(crate) fn depth(root: Node<'_>) -> usize {
    let mut cursor = root.walk();
    let mut deepest = 0;
    loop {
        deepest = deepest.max(cursor.depth() as usize);
        if !advance(&mut cursor) {
            return deepest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn errors_are_the_parts_that_were_not_understood() {
        let tree = SyntaxTree::parse(Language::Rust, "fn a() {}\n").unwrap();
        assert!(!tree.has_error());
        assert!(tree.errors().is_empty());
        let tree = SyntaxTree::parse(Language::Rust, "fn a( {}\nfn b() {}\n").unwrap();
        assert!(tree.has_error());
        assert_eq!(tree.errors().len(), 1);
    }

    #[test]
    fn a_file_beyond_the_limit_is_not_parsed() {
        let source = " ".repeat(MAX_SOURCE_BYTES + 1);
        let error = SyntaxTree::parse(Language::Json, &source).unwrap_err();
        assert_eq!(error, SyntaxError::TooLarge { bytes: source.len() });
    }

    #[test]
    fn a_deep_nesting_is_parsed_or_refused() {
        let source = "(".repeat(200_000);
        for language in [Language::Rust, Language::Python, Language::C, Language::TypeScript] {
            if let Ok(tree) = SyntaxTree::parse(language, &source) {
                assert!(tree.has_error());
                assert!(!tree.errors().is_empty());
            }
        }
    }
}
