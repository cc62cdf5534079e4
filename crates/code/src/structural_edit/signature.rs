//! The heads of functions: names, parameters, results and modifiers, up to the body.

use std::ops::Range;

use tree_sitter::Node;

use super::function_body::check_head;
use super::validation::{Scope, finish};
use super::{
    EditError, EditedSource, ParsedSource, Splice, SymbolTarget, checked_fragment, line_feed_of,
    with_endings,
};
use crate::language::Language;

/// Nodes at the start of a definition that a change of its signature keeps.
const ATTRIBUTES: [&str; 6] = [
    "decorator",
    "attribute_list",
    "annotation",
    "marker_annotation",
    "attribute_item",
    "attribute",
];

pub(super) fn replace(
    source: &ParsedSource<'_>,
    target: &SymbolTarget,
    signature: &str,
) -> Result<EditedSource, EditError> {
    let index = source.find_callable(target)?;
    check_head(source, index)?;
    let range = head_range(source, index);
    let old = &source.text[range.clone()];
    let mut signature = checked_fragment(signature)?.trim_start().to_owned();
    let has_body = source.symbol(index).body.is_some();
    strip_opening(&mut signature, source.language(), has_body);
    for sign in ["=>", " ="] {
        if has_body && old.ends_with(sign) && !signature.ends_with(sign) {
            signature.push(' ');
            signature.push_str(sign.trim_start());
        }
    }
    let rest = &source.text[range.end..];
    if has_body && rest.starts_with('{') {
        signature.push(' ');
    }
    let ending = line_feed_of(source.text, range.start);
    let splice = Splice::new(range, with_endings(&signature, ending));
    finish(source, &splice, Scope::Head, index)
}

/// Removes what stands between a head and its body, which stays as it is.
fn strip_opening(signature: &mut String, language: Language, has_body: bool) {
    let mut text = signature.trim_end();
    if has_body {
        text = match language {
            Language::Python => text.strip_suffix(':').unwrap_or(text),
            Language::Ruby => text.strip_suffix(';').unwrap_or(text),
            _ => text.strip_suffix('{').unwrap_or(text),
        };
    } else {
        text = text.strip_suffix(';').unwrap_or(text);
    }
    let length = text.trim_end().len();
    signature.truncate(length);
}

/// Returns the range of a head, without the white space between it and the body.
fn head_range(source: &ParsedSource<'_>, index: usize) -> Range<usize> {
    let symbol = source.symbol(index);
    let start = behind_attributes(source, symbol.head, symbol.name_range.start);
    let limit = match (source.language(), &symbol.body) {
        (Language::Python, Some(body)) => source.header_end(index).unwrap_or(body.start),
        (Language::Ruby | Language::Lua, _) => end_of_parameters(source, index),
        (_, Some(body)) => body.start,
        (_, None) => symbol.definition.end,
    };
    let text = source.text[start..limit.max(start)].trim_end();
    let text = if symbol.body.is_none() { text.trim_end_matches(';').trim_end() } else { text };
    start..start + text.len()
}

fn end_of_parameters(source: &ParsedSource<'_>, index: usize) -> usize {
    let symbol = source.symbol(index);
    let fallback = symbol.body.as_ref().map_or(symbol.definition.end, |body| body.start);
    super::function_body::function_node(source, symbol)
        .and_then(|node| {
            node.child_by_field_name("parameters").or(node.child_by_field_name("name"))
        })
        .map_or(fallback, |node| node.end_byte())
}

/// Returns the start of a definition behind the attributes and annotations that it begins with.
fn behind_attributes(source: &ParsedSource<'_>, head: usize, name: usize) -> usize {
    let mut at = head;
    while let Some(end) = attribute_at(source, at).filter(|end| *end < name) {
        let rest = &source.text[end..name];
        at = end + (rest.len() - rest.trim_start().len());
    }
    at
}

/// Returns the end of an attribute that begins here.
fn attribute_at(source: &ParsedSource<'_>, at: usize) -> Option<usize> {
    let mut next: Option<Node<'_>> = source.tree.root().descendant_for_byte_range(at, at + 1);
    while let Some(node) = next.filter(|node| node.start_byte() == at) {
        if ATTRIBUTES.contains(&node.kind()) {
            return Some(node.end_byte());
        }
        next = node.parent();
    }
    None
}
