//! The parameters of a function.

use tree_sitter::Node;

use super::Parameters;
use crate::language::Language;
use crate::syntax::{SyntaxTree, preorder};

/// Decorators of Python that leave the parameters as they are.
const HARMLESS_DECORATORS: [&str; 6] =
    ["staticmethod", "classmethod", "abstractmethod", "override", "final", "overload"];

/// The meaning of one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameter {
    Required,
    Optional,
    /// Any number of arguments.
    Rest,
    Receiver,
    /// Further parameters are keywords.
    KeywordsFollow,
    Ignored,
}

pub(super) fn of_function(
    tree: &SyntaxTree,
    source: &str,
    name: &str,
    line: usize,
) -> Option<Parameters> {
    let language = tree.language();
    let named = preorder(tree.root()).find_map(|node| {
        let (found, list) = function(node)?;
        let text = source.get(found.byte_range())?;
        let is_it = found.start_position().row + 1 == line && last_name(text) == name;
        is_it.then_some((node, list))
    });
    let (function, list) = named?;
    let mut all = Parameters {
        required: 0,
        most: Some(0),
        has_receiver: language == Language::Go && function.kind() == "method_declaration",
        needs_keyword: false,
    };
    let mut are_keywords = false;
    let mut cursor = list.walk();
    for node in list.named_children(&mut cursor) {
        for parameter in kinds(language, node, source) {
            match parameter {
                Parameter::Required if are_keywords => all.needs_keyword = true,
                Parameter::Optional if are_keywords => {}
                Parameter::Required => all.add(1),
                Parameter::Optional => all.most = all.most.map(|most| most + 1),
                Parameter::Rest => {
                    all.most = None;
                    are_keywords = language == Language::Python;
                }
                Parameter::Receiver => all.has_receiver = true,
                Parameter::KeywordsFollow => are_keywords = true,
                Parameter::Ignored => {}
            }
        }
    }
    if language == Language::Python {
        return of_python(all, function, source);
    }
    Some(all)
}

impl Parameters {
    fn add(&mut self, count: usize) {
        self.required += count;
        self.most = self.most.map(|most| most + count);
    }
}

/// Returns the name and the parameters of a node that defines a function.
fn function(node: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    let field = |name: &str| node.child_by_field_name(name);
    if node.kind() == "variable_declarator" {
        let value = field("value")?;
        return Some((field("name")?, value.child_by_field_name("parameters")?));
    }
    Some((field("name").or_else(|| field("declarator"))?, field("parameters")?))
}

/// Returns the last part of a path of names.
fn last_name(text: &str) -> &str {
    text.rsplit([':', '.', '*', ' ']).next().unwrap_or(text)
}

/// Takes the receiver of a method out of its parameters.
fn of_python(mut all: Parameters, function: Node<'_>, source: &str) -> Option<Parameters> {
    let decorated = function.parent().filter(|parent| parent.kind() == "decorated_definition");
    let mut is_static = false;
    if let Some(decorated) = decorated {
        let mut cursor = decorated.walk();
        for child in decorated.children(&mut cursor).filter(|child| child.kind() == "decorator") {
            let text = source.get(child.byte_range())?.trim_start_matches('@').trim();
            let name = last_name(text);
            if !HARMLESS_DECORATORS.contains(&name) {
                return None;
            }
            is_static |= name == "staticmethod";
        }
    }
    let around = decorated.unwrap_or(function).parent().and_then(|block| block.parent());
    if around.is_some_and(|around| around.kind() == "class_definition") && !is_static {
        all.has_receiver = true;
        all.required = all.required.saturating_sub(1);
        all.most = all.most.map(|most| most.saturating_sub(1));
    }
    Some(all)
}

/// Returns the meaning of one node of a list of parameters, which may name several.
fn kinds(language: Language, node: Node<'_>, source: &str) -> Vec<Parameter> {
    let has = |field: &str| node.child_by_field_name(field).is_some();
    let one = match node.kind() {
        "self_parameter" | "receiver_parameter" => Parameter::Receiver,
        "variadic_parameter"
        | "variadic_parameter_declaration"
        | "spread_parameter"
        | "rest_pattern"
        | "list_splat_pattern" => Parameter::Rest,
        "keyword_separator" => Parameter::KeywordsFollow,
        "default_parameter"
        | "typed_default_parameter"
        | "assignment_pattern"
        | "optional_parameter"
        | "optional_parameter_declaration" => Parameter::Optional,
        "typed_parameter" => match node.named_child(0).map(|child| child.kind()) {
            Some("list_splat_pattern") => Parameter::Rest,
            Some("dictionary_splat_pattern") => Parameter::Ignored,
            _ => Parameter::Required,
        },
        "required_parameter" => {
            match node.child_by_field_name("pattern").map(|child| child.kind()) {
                Some("rest_pattern") => Parameter::Rest,
                Some("this") => Parameter::Ignored,
                _ if has("value") => Parameter::Optional,
                _ => Parameter::Required,
            }
        }
        "simple_parameter" | "property_promotion_parameter" if has("default_value") => {
            Parameter::Optional
        }
        "parameter_declaration" if language == Language::Go => {
            let mut cursor = node.walk();
            let names = node.children_by_field_name("name", &mut cursor).count();
            return vec![Parameter::Required; names.max(1)];
        }
        "parameter_declaration"
            if !has("declarator") && source.get(node.byte_range()) == Some("void") =>
        {
            Parameter::Ignored
        }
        "parameter"
        | "parameter_declaration"
        | "identifier"
        | "object_pattern"
        | "array_pattern"
        | "tuple_pattern"
        | "formal_parameter"
        | "simple_parameter"
        | "property_promotion_parameter" => Parameter::Required,
        // Comments and attributes, `/` and `**keywords` of Python.
        _ => Parameter::Ignored,
    };
    vec![one]
}
