//! The occurrences of a name in a source: which declare it, and which are members of something.

use tree_sitter::Node;

use crate::definitions::{Role, Roles};
use crate::language::Language;
use crate::structural_edit::ParsedSource;
use crate::syntax::preorder;

/// The role of a name at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameRole {
    /// It declares a variable, parameter, function or type.
    LocalDeclaration,
    /// It declares a field or method.
    MemberDeclaration,
    /// It refers to a variable, parameter, function or type.
    Local,
    /// It refers to a member of the object itself.
    OwnMember,
    /// It refers to a member of another object, or names an argument.
    Member,
}

impl NameRole {
    pub(super) fn is_local(self) -> bool {
        matches!(self, Self::LocalDeclaration | Self::Local)
    }
}

/// Finds all places of a name, in order.
pub(super) fn occurrences<'t>(source: &'t ParsedSource<'_>, name: &str) -> Vec<Node<'t>> {
    let roles = Roles::of(source.language());
    let is_occurrence = |node: &Node<'_>| {
        let is_name = matches!(roles.role(node.kind_id()), Role::Name)
            || node.kind() == "shorthand_property_identifier_pattern";
        is_name && node.child_count() == 0 && source.text().get(node.byte_range()) == Some(name)
    };
    preorder(source.tree().root()).filter(is_occurrence).collect()
}

pub(super) const fn is_javascript(language: Language) -> bool {
    matches!(language, Language::JavaScript | Language::TypeScript | Language::Tsx)
}

/// Returns the role of a name.
pub(super) fn role(language: Language, node: Node<'_>) -> NameRole {
    if is_javascript(language) { javascript_role(node) } else { plain_role(node) }
}

/// Returns the role as far as the kind of the node tells, without declarations.
fn plain_role(node: Node<'_>) -> NameRole {
    let is_member = match node.kind() {
        "field_identifier" | "property_identifier" | "property_name" => true,
        _ => node.parent().is_some_and(|parent| {
            let field = match parent.kind() {
                "attribute" => "attribute",
                "keyword_argument" => "name",
                "field_access" | "dot_index_expression" => "field",
                "method_index_expression" => "method",
                _ => return false,
            };
            parent.child_by_field_name(field) == Some(node)
        }),
    };
    if is_member { NameRole::Member } else { NameRole::Local }
}

fn javascript_role(node: Node<'_>) -> NameRole {
    match node.kind() {
        "property_identifier" | "private_property_identifier" => member_role(node),
        _ if is_foreign(node) => NameRole::Member,
        _ if declares(node) => NameRole::LocalDeclaration,
        _ => binding_role(node),
    }
}

fn member_role(node: Node<'_>) -> NameRole {
    const DECLARATIONS: [&str; 6] = [
        "method_definition",
        "field_definition",
        "public_field_definition",
        "property_signature",
        "method_signature",
        "abstract_method_signature",
    ];
    let Some(parent) = node.parent() else { return NameRole::Member };
    let is_name =
        ["name", "property"].iter().any(|field| parent.child_by_field_name(field) == Some(node));
    if DECLARATIONS.contains(&parent.kind()) && is_name {
        return NameRole::MemberDeclaration;
    }
    let object = parent.child_by_field_name("object").map(|object| object.kind());
    match (parent.kind(), object) {
        ("member_expression", Some("this" | "super")) => NameRole::OwnMember,
        _ => NameRole::Member,
    }
}

/// Tells whether it is the name of something in another module, beside the name that it has here.
fn is_foreign(node: Node<'_>) -> bool {
    node.parent().is_some_and(|parent| {
        let alias = parent.child_by_field_name("alias");
        match parent.kind() {
            "import_specifier" => alias.is_some_and(|alias| alias != node),
            "export_specifier" => alias == Some(node),
            _ => false,
        }
    })
}

/// Tells whether a name is that of a declaration, apart from variables and parameters.
fn declares(node: Node<'_>) -> bool {
    const NAMED: [&str; 12] = [
        "function_declaration",
        "generator_function_declaration",
        "function_expression",
        "function_signature",
        "class_declaration",
        "abstract_class_declaration",
        "class",
        "interface_declaration",
        "type_alias_declaration",
        "enum_declaration",
        "type_parameter",
        "internal_module",
    ];
    let Some(parent) = node.parent() else { return false };
    match parent.kind() {
        "import_specifier" => {
            let alias = parent.child_by_field_name("alias");
            alias.or_else(|| parent.child_by_field_name("name")) == Some(node)
        }
        "import_clause" | "namespace_import" => true,
        kind => NAMED.contains(&kind) && parent.child_by_field_name("name") == Some(node),
    }
}

/// Climbs the patterns around a name, to the variable or parameter that it is a part of.
fn binding_role(node: Node<'_>) -> NameRole {
    let mut inner = node;
    while let Some(outer) = inner.parent() {
        let is_field = |field: &str| outer.child_by_field_name(field) == Some(inner);
        let goes_on = match outer.kind() {
            "object_pattern" | "array_pattern" | "rest_pattern" => true,
            "assignment_pattern" | "object_assignment_pattern" => is_field("left"),
            "pair_pattern" => is_field("value"),
            _ => false,
        };
        if !goes_on {
            let binds = match outer.kind() {
                "variable_declarator" => is_field("name"),
                "formal_parameters" => true,
                "required_parameter" | "optional_parameter" => is_field("pattern"),
                "catch_clause" | "arrow_function" => is_field("parameter"),
                "for_in_statement" => {
                    is_field("left") && outer.child_by_field_name("kind").is_some()
                }
                _ => false,
            };
            return if binds { NameRole::LocalDeclaration } else { NameRole::Local };
        }
        inner = outer;
    }
    NameRole::Local
}
