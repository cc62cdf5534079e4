//! Symbols that are items of a list with commas, such as keys of an object and variants of an enumeration.

use tree_sitter::Node;

use super::ParsedSource;
use crate::language::Language;
use crate::symbol::SymbolKind;

/// Nodes whose children stand between commas.
const LISTS: [&str; 13] = [
    "object",
    "enum_variant_list",
    "ordered_field_declaration_list",
    "enum_body",
    "enum_declaration_list",
    "enumerator_list",
    "enum_member_declaration_list",
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
    let is_variant = source.symbol(index).kind == SymbolKind::Variant;
    let is_list = |parent: Node<'_>| match (language, parent.kind()) {
        (Language::Rust, "field_declaration_list") => true,
        // Functions may follow the variants.
        (Language::Kotlin, "enum_class_body") => is_variant,
        (_, kind) => LISTS.contains(&kind),
    };
    match language {
        // PHP ends each case of an enumeration with a semicolon.
        Language::Php => Commas::None,
        _ if !parent.is_some_and(is_list) => Commas::None,
        Language::Json | Language::Toml => Commas::Between,
        _ => Commas::TrailingAllowed,
    }
}
