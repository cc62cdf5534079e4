//! Symbols that are items of a list with commas, such as keys of an object and variants of an enumeration.

use tree_sitter::Node;

use super::ParsedSource;
use crate::language::Language;

/// Nodes whose children stand between commas.
const LISTS: [&str; 12] = [
    "object",
    "enum_variant_list",
    "ordered_field_declaration_list",
    "enum_body",
    "enum_declaration_list",
    "enumerator_list",
    "flow_mapping",
    "inline_table",
    "array",
    "table_constructor",
    "object_pattern",
    "object_type_list",
];

/// The commas of the list that a symbol is an item of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commas {
    /// It is no item of a list.
    None,
    /// The last item may have one.
    TrailingAllowed,
    /// The last item must not have one.
    Between,
}

/// Finds the list that a symbol is an item of.
pub(super) fn commas(source: &ParsedSource<'_>, index: usize) -> Commas {
    let language = source.language();
    let parent = source.node_at(&source.symbol(index).definition).and_then(|node| node.parent());
    let is_list = |parent: Node<'_>| {
        LISTS.contains(&parent.kind())
            || (language == Language::Rust && parent.kind() == "field_declaration_list")
    };
    match language {
        // PHP ends each case of an enumeration with a semicolon.
        Language::Php => Commas::None,
        _ if !parent.is_some_and(is_list) => Commas::None,
        Language::Json | Language::Toml => Commas::Between,
        _ => Commas::TrailingAllowed,
    }
}
