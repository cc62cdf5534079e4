//! The comparison of the syntax errors before and after an edit.
//!
//! A result may have as many inside of the replaced range as were there, and as many outside of it. In a file of C or C++ with macros
//! that the grammar does not understand, as half of the files of large projects have, further ones do not count.

use std::ops::Range;

use tree_sitter::Node;

use super::splice::{line_end, line_start};
use super::{ParseFailure, Splice, line_of};
use crate::language::Language;
use crate::syntax::{SyntaxTree, preorder};

/// The longest line of a result in a message.
const MAX_EXCERPT: usize = 80;

/// Returns the place of a syntax error that the splice brought.
pub(crate) fn first_new_error(
    (old, old_text): (&SyntaxTree, &str),
    (new, text): (&SyntaxTree, &str),
    splice: &Splice,
) -> Option<ParseFailure> {
    let new_errors = errors(new);
    if new_errors.is_empty() {
        return None;
    }
    let old_errors = errors(old);
    let has_macros = matches!(new.language(), Language::C | Language::Cpp)
        && old_errors.iter().any(|error| is_word(old_text, error));
    let within = |place: Range<usize>| {
        move |error: &Range<usize>| place.start <= error.start && error.end <= place.end
    };
    let (old_inside, old_outside): (Vec<_>, Vec<_>) =
        old_errors.iter().cloned().partition(within(splice.range.clone()));
    let (inside, outside): (Vec<_>, Vec<_>) =
        new_errors.into_iter().partition(within(splice.new_range()));
    let known: Vec<_> =
        old_outside.iter().filter_map(|error| splice.moved_start(error.start)).collect();
    let is_macro = |error: &&Range<usize>| has_macros && is_word(text, error);
    let inside: Vec<_> = inside.iter().filter(|error| !is_macro(error)).collect();
    let failure = if inside.len() > old_inside.len() {
        inside.first().copied()
    } else if outside.len() > old_outside.len() {
        let unknown = outside.iter().find(|error| known.binary_search(&error.start).is_err());
        unknown.or(outside.first())
    } else {
        None
    };
    failure.map(|error| failure_at(text, error.start))
}

/// Returns what is wrong in a tree: errors, and in Python blocks without a statement, which the grammar lets pass.
fn errors(tree: &SyntaxTree) -> Vec<Range<usize>> {
    let mut errors = tree.errors();
    if tree.language() == Language::Python {
        errors.extend(empty_blocks(tree));
        errors.sort_by_key(|range| range.start);
    }
    errors
}

/// Tells whether an error is one word, as a macro before a type is.
fn is_word(text: &str, error: &Range<usize>) -> bool {
    let word = text.get(error.clone()).unwrap_or_default().trim();
    !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn empty_blocks(tree: &SyntaxTree) -> Vec<Range<usize>> {
    let has_empty_block = |node: &Node<'_>| {
        let body = node.child_by_field_name("body");
        let block = body.or_else(|| node.child_by_field_name("consequence"));
        block.is_some_and(|block| block.kind() == "block" && is_empty_block(block))
    };
    let nodes = preorder(tree.root()).filter(has_empty_block);
    nodes.map(|node| node.start_byte()..node.start_byte()).collect()
}

fn is_empty_block(block: Node<'_>) -> bool {
    let mut cursor = block.walk();
    block.named_children(&mut cursor).all(|child| child.is_extra())
}

fn failure_at(text: &str, at: usize) -> ParseFailure {
    let at = at.min(text.len());
    let line = text[line_start(text, at)..line_end(text, at)].trim();
    let excerpt = if line.len() > MAX_EXCERPT {
        format!("{}…", &line[..line.floor_char_boundary(MAX_EXCERPT)])
    } else {
        line.to_owned()
    };
    ParseFailure { line: line_of(text, at), excerpt }
}
