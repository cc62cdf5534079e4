//! Edits of one source that are addressed by symbols instead of lines.
//!
//! An operation finds a symbol in the syntax tree, replaces one range of bytes, and parses the whole result. It
//! is refused unless every byte outside of the range is kept, no error node was added, and every other symbol is
//! where it was, moved only by the difference in length. The last rule is what keeps a body from closing its
//! brace early and going on with a second function: the text would parse, and the caller would not have
//! said so.
//!
//! New text may come with any base indentation and with line feeds alone; it takes the indentation of its place
//! and the line endings of the file. Lines inside of string literals are never moved.
//!
//! ```
//! use carrel_code::{Language, ParsedSource, SymbolTarget};
//!
//! let source = ParsedSource::parse(Language::Python, "def f(x):\n    return x\n")?;
//! let target = SymbolTarget::parse("f")?;
//! let edited = source.replace_body(&target, "x += 1\nreturn x")?;
//! assert_eq!(edited.text, "def f(x):\n    x += 1\n    return x\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod function_body;
mod indentation;
mod insertion;
mod list_item;
mod parse_check;
mod removal;
mod signature;
mod splice;
mod target;
mod validation;

use std::ops::Range;

use tree_sitter::Node;

use crate::language::Language;
use crate::symbol::{Symbol, SymbolKind};
use crate::symbols::FileSymbols;
use crate::syntax::{SyntaxError, SyntaxTree};

pub use error::{EditError, ParseFailure};
pub use target::{Candidate, MAX_LISTED, SymbolTarget, TargetError};
pub use validation::Escape;

pub(crate) use indentation::{
    Indentation, leading_white_space, literal_rows, literal_rows_of, reindent,
};
pub(crate) use parse_check::first_new_error;
pub(crate) use splice::{Splice, line_feed_of, line_of, with_endings};

/// The largest text that one operation inserts. A whole file is written by other means.
pub const MAX_FRAGMENT_BYTES: usize = 1 << 20;

/// A source with its syntax tree and symbols.
#[derive(Clone, Debug)]
pub struct ParsedSource<'s> {
    text: &'s str,
    tree: SyntaxTree,
    symbols: FileSymbols,
}

/// A source after an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedSource {
    /// The whole text.
    pub text: String,
    /// The part that was replaced.
    pub change: Change,
    /// The symbols that were edited, inserted or removed: those of the old text if none is left.
    pub symbols: Vec<AffectedSymbol>,
}

/// The part of a text that an edit replaced. The rest is the same in both texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The bytes in the old text.
    pub old: Range<usize>,
    /// The bytes in the new text.
    pub new: Range<usize>,
    /// The first and last line in the old text, counted from 1.
    pub old_lines: (usize, usize),
    /// The first and last line in the new text.
    pub new_lines: (usize, usize),
}

/// A symbol that an edit touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffectedSymbol {
    /// The names from the outermost symbol to this one.
    pub path: Vec<String>,
    /// Its kind.
    pub kind: SymbolKind,
    /// The line of its name, counted from 1.
    pub line: usize,
}

/// The side of a symbol where text is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Above it and its comments.
    Before,
    /// Below it.
    After,
}

/// The treatment of the comments and attributes right above a symbol that is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeadingComments {
    /// They stay, and the text replaces the definition alone.
    Keep,
    /// The text replaces them too.
    Replace,
}

impl<'s> ParsedSource<'s> {
    /// Parses a source.
    pub fn parse(language: Language, text: &'s str) -> Result<Self, SyntaxError> {
        let tree = SyntaxTree::parse(language, text)?;
        let symbols = FileSymbols::of(&tree, text);
        Ok(Self { text, tree, symbols })
    }

    /// Returns the text.
    pub fn text(&self) -> &'s str {
        self.text
    }

    /// Returns the language.
    pub fn language(&self) -> Language {
        self.tree.language()
    }

    /// Returns the syntax tree.
    pub fn tree(&self) -> &SyntaxTree {
        &self.tree
    }

    /// Returns the symbols.
    pub fn symbols(&self) -> &FileSymbols {
        &self.symbols
    }

    /// Replaces what is between the delimiters of a function's body.
    ///
    /// Between braces the text is taken as it is, line feeds included, and moved to the right only if it is not
    /// indented beyond the function. Where lines or keywords delimit the body it is put on lines of its own.
    pub fn replace_body(
        &self,
        target: &SymbolTarget,
        body: &str,
    ) -> Result<EditedSource, EditError> {
        function_body::replace(self, target, body)
    }

    /// Replaces a function's head: all between its comments, decorators and attributes above and its body below.
    pub fn replace_signature(
        &self,
        target: &SymbolTarget,
        signature: &str,
    ) -> Result<EditedSource, EditError> {
        signature::replace(self, target, signature)
    }

    /// Inserts a method below a method of the same type, after a blank line. The line tells a declaration from its
    /// definition.
    pub fn insert_after_method(
        &self,
        receiver: &str,
        method: &str,
        line: Option<usize>,
        text: &str,
    ) -> Result<EditedSource, EditError> {
        insertion::insert_after_method(self, receiver, method, line, text)
    }

    /// Inserts text beside a symbol, at its indentation and with as many blank lines between as its neighbours have.
    pub fn insert(
        &self,
        target: &SymbolTarget,
        side: Side,
        text: &str,
    ) -> Result<EditedSource, EditError> {
        insertion::insert(self, target, side, text)
    }

    /// Replaces a whole definition.
    pub fn replace_symbol(
        &self,
        target: &SymbolTarget,
        text: &str,
        comments: LeadingComments,
    ) -> Result<EditedSource, EditError> {
        removal::replace(self, target, text, comments)
    }

    /// Removes a definition with the comments above it and the blank lines that separated it.
    pub fn delete_symbol(&self, target: &SymbolTarget) -> Result<EditedSource, EditError> {
        removal::delete(self, target)
    }

    fn symbol(&self, index: usize) -> &Symbol {
        &self.symbols.symbols[index]
    }

    /// Returns the outermost node whose bytes are exactly this range.
    fn node_at(&self, range: &Range<usize>) -> Option<Node<'_>> {
        let mut node = self.tree.root().descendant_for_byte_range(range.start, range.end)?;
        while let Some(parent) = node.parent().filter(|parent| parent.byte_range() == *range) {
            node = parent;
        }
        Some(node)
    }

    /// Returns the names of a symbol for messages.
    fn path_text(&self, index: usize) -> String {
        self.symbols.path(index).join("::")
    }
}

/// Returns a fragment without blank lines around it, or refuses one that is empty or too long.
fn checked_fragment(text: &str) -> Result<String, EditError> {
    if text.len() > MAX_FRAGMENT_BYTES {
        return Err(EditError::FragmentTooLarge { bytes: text.len() });
    }
    let text = text.replace("\r\n", "\n");
    let text = text.trim_end();
    let begin = text.len() - text.trim_start().len();
    // The indentation of the first line belongs to it.
    let begin = text[..begin].rfind('\n').map_or(0, |feed| feed + 1);
    if text[begin..].trim().is_empty() {
        Err(EditError::EmptyFragment)
    } else {
        Ok(text[begin..].to_owned())
    }
}
