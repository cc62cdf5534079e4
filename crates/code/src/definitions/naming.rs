//! The name of a definition: where it is below the node that defines it.

use tree_sitter::Node;

use crate::symbol::SymbolKind;

/// The nodes between a declaration and its name in C, such as pointers and parentheses.
const MAX_DECLARATORS: usize = 32;

/// The place of a definition's name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NameRule {
    /// The node in this field.
    Field(&'static str),
    /// The node in the first field, if the second is there too. Macros without a value guard headers.
    FieldBeside(&'static str, &'static str),
    /// Each node in this field is a name of its own.
    EachField(&'static str),
    /// Each node in this field is a definition of its own, which is its name alone.
    EachName(&'static str),
    /// The first child of this kind.
    Child(&'static str),
    /// The first name in the first child of this kind.
    NameInChild(&'static str),
    /// The first named child.
    FirstChild,
    /// The type in this field without its arguments and its module.
    BaseType(&'static str),
    /// The node in this field, if it is a plain name.
    PlainTarget(&'static str),
    /// The innermost name of the field `declarator`.
    Declarator,
    /// The same for each declarator.
    EachDeclarator,
    /// The same; a function without a body is a function.
    CDeclaration,
    /// The field `name` of a specifier with a body. Without one it only mentions the type.
    WithBody,
    /// The name of a method and the type of its receiver.
    GoMethod,
    /// The name of a type, whose kind depends on the type it is defined as.
    GoType,
    /// The name of a type, whose kind is a word before it.
    KotlinType,
    /// The same, with `extension` as one of the words.
    SwiftType,
    /// A variable, or a function that is assigned to it.
    JsVariable,
    /// A function or class that is assigned to a member, such as `exports.f = function () {}`.
    JsAssignment,
    /// A function that is the value of a key.
    JsPair,
    /// The last part of a dotted name; the parts before it are its receiver.
    Dotted,
    /// A function or a table that is assigned to a name.
    LuaAssignment,
    /// The value of the attribute `id`.
    HtmlId,
    /// The heading of a section.
    SectionHeading,
}

/// A name, as a rule found it.
#[derive(Clone, Debug)]
pub(crate) struct Naming<'t> {
    pub(crate) name: Node<'t>,
    pub(crate) receiver: Option<String>,
    /// The kind, where it differs from the rule's.
    pub(crate) kind: Option<SymbolKind>,
    /// The body, where it is not the field `body` of the node.
    pub(crate) body: Option<Node<'t>>,
    /// The definition, where it is not the node of the rule.
    pub(crate) definition: Option<Node<'t>>,
}

impl<'t> Naming<'t> {
    fn of(name: Node<'t>) -> Self {
        Self { name, receiver: None, kind: None, body: None, definition: None }
    }
}

impl NameRule {
    /// Finds the names that a node defines; none if it defines nothing.
    pub(crate) fn find<'t>(self, node: Node<'t>, source: &str) -> Vec<Naming<'t>> {
        let field = |name| node.child_by_field_name(name);
        let one = |name: Option<Node<'t>>| name.map(Naming::of).into_iter().collect();
        match self {
            Self::Field(name) => one(field(name)),
            Self::FieldBeside(name, other) => one(field(other).and_then(|_| field(name))),
            Self::EachField(name) => {
                let mut cursor = node.walk();
                let named = node.children_by_field_name(name, &mut cursor);
                named.filter(Node::is_named).map(Naming::of).collect()
            }
            Self::EachName(name) => {
                let mut cursor = node.walk();
                let named = node.children_by_field_name(name, &mut cursor);
                let named = named.filter(Node::is_named);
                named.map(|name| Naming { definition: Some(name), ..Naming::of(name) }).collect()
            }
            Self::Child(kind) => one(named_children(node).find(|child| child.kind() == kind)),
            Self::NameInChild(kind) => {
                let child = named_children(node).find(|child| child.kind() == kind);
                let is_name = |inner: &Node<'_>| inner.kind().ends_with("identifier");
                one(child.and_then(|child| named_children(child).find(is_name)))
            }
            Self::FirstChild => one(node.named_child(0)),
            Self::BaseType(name) => one(field(name).and_then(base_type)),
            Self::PlainTarget(name) => {
                one(field(name).filter(|left| matches!(left.kind(), "identifier" | "constant")))
            }
            Self::Declarator => field("declarator")
                .and_then(|declarator| declared(declarator, source))
                .into_iter()
                .collect(),
            Self::EachDeclarator => {
                let declaration = inner_declaration(node).unwrap_or(node);
                let each = named_children(declaration)
                    .filter(|child| child.kind() == "variable_declarator");
                each.filter_map(|declarator| declared(declarator, source)).collect()
            }
            Self::CDeclaration => {
                let mut cursor = node.walk();
                let each = node.children_by_field_name("declarator", &mut cursor);
                each.filter_map(|declarator| {
                    let naming = declared(declarator, source)?;
                    let kind = is_function(declarator).then_some(SymbolKind::Function);
                    Some(Naming { kind, ..naming })
                })
                .collect()
            }
            Self::WithBody => one(field("body").and_then(|_| field("name")).and_then(base_type)),
            Self::GoMethod => {
                let receiver = field("receiver").and_then(receiver_type);
                let receiver = receiver.map(|node| text(node, source).to_owned());
                field("name")
                    .map(|name| Naming { receiver, ..Naming::of(name) })
                    .into_iter()
                    .collect()
            }
            Self::GoType => {
                let body = field("type");
                let kind = match body.map(|body| body.kind()) {
                    Some("struct_type") => Some(SymbolKind::Struct),
                    Some("interface_type") => Some(SymbolKind::Interface),
                    _ => None,
                };
                let body = body.filter(|_| kind.is_some());
                field("name")
                    .map(|name| Naming { kind, body, ..Naming::of(name) })
                    .into_iter()
                    .collect()
            }
            Self::KotlinType | Self::SwiftType => {
                let kind = match self {
                    Self::KotlinType => kotlin_kind(node, source),
                    _ => swift_kind(node, source),
                };
                field("name").map(|name| Naming { kind, ..Naming::of(name) }).into_iter().collect()
            }
            Self::JsVariable => js_variable(node).into_iter().collect(),
            Self::JsAssignment => js_assignment(node, source).into_iter().collect(),
            Self::JsPair => {
                let value = field("value").filter(|value| is_js_function(*value));
                let body = value.and_then(|value| value.child_by_field_name("body"));
                let name = value.and_then(|_| field("key"));
                name.map(|name| Naming { body, ..Naming::of(name) }).into_iter().collect()
            }
            Self::Dotted => {
                field("name").and_then(|name| dotted(name, source)).into_iter().collect()
            }
            Self::LuaAssignment => lua_assignment(node, source).into_iter().collect(),
            Self::HtmlId => one(html_id(node, source)),
            Self::SectionHeading => one(section_heading(node)),
        }
    }
}

pub(crate) fn text<'s>(node: Node<'_>, source: &'s str) -> &'s str {
    source.get(node.byte_range()).unwrap_or_default()
}

fn named_children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let count = u32::try_from(node.named_child_count()).unwrap_or(u32::MAX);
    (0..count).filter_map(move |index| node.named_child(index))
}

/// Returns the name of a type without its arguments, references and module.
fn base_type(node: Node<'_>) -> Option<Node<'_>> {
    let mut node = node;
    for _ in 0..MAX_DECLARATORS {
        let inner = match node.kind() {
            "generic_type" | "reference_type" | "pointer_type" | "parenthesized_type" => {
                node.child_by_field_name("type").or_else(|| node.named_child(0))
            }
            "scoped_type_identifier"
            | "qualified_identifier"
            | "template_type"
            | "qualified_type" => node.child_by_field_name("name"),
            _ => return Some(node),
        };
        node = inner?;
    }
    None
}

/// Returns the type of a method's receiver in Go.
fn receiver_type(list: Node<'_>) -> Option<Node<'_>> {
    let parameter = named_children(list).find(|child| child.kind() == "parameter_declaration")?;
    base_type(parameter.child_by_field_name("type")?)
}

/// Returns the declaration in a node that wraps it, as fields in C# do.
fn inner_declaration(node: Node<'_>) -> Option<Node<'_>> {
    named_children(node).find(|child| child.kind() == "variable_declaration")
}

/// Returns the kind that the words of a declaration of Kotlin name; `None` for a class.
fn kotlin_kind(node: Node<'_>, source: &str) -> Option<SymbolKind> {
    let mut cursor = node.walk();
    if node.children(&mut cursor).any(|child| child.kind() == "interface") {
        return Some(SymbolKind::Interface);
    }
    let modifiers = named_children(node).find(|child| child.kind() == "modifiers")?;
    let mut each = named_children(modifiers);
    each.any(|modifier| text(modifier, source) == "enum").then_some(SymbolKind::Enum)
}

/// Returns the kind that the word before a type of Swift names; `None` for a class or an actor.
fn swift_kind(node: Node<'_>, source: &str) -> Option<SymbolKind> {
    match text(node.child_by_field_name("declaration_kind")?, source) {
        "struct" => Some(SymbolKind::Struct),
        "enum" => Some(SymbolKind::Enum),
        "extension" => Some(SymbolKind::Impl),
        _ => None,
    }
}

/// Returns the name below a declarator, with the type before `::`.
fn declared<'t>(declarator: Node<'t>, source: &str) -> Option<Naming<'t>> {
    let mut node = declarator;
    let mut receiver: Option<String> = None;
    for _ in 0..MAX_DECLARATORS {
        match node.kind() {
            "qualified_identifier" => {
                if let Some(scope) = node.child_by_field_name("scope").and_then(base_type) {
                    let scope = text(scope, source);
                    receiver = Some(match receiver {
                        Some(before) => format!("{before}::{scope}"),
                        None => scope.to_owned(),
                    });
                }
                node = node.child_by_field_name("name")?;
            }
            "template_function" | "template_method" | "variable_declarator" => {
                node = node.child_by_field_name("name")?;
            }
            kind if kind.ends_with("identifier")
                || matches!(kind, "operator_name" | "destructor_name" | "operator_cast") =>
            {
                return Some(Naming { receiver, ..Naming::of(node) });
            }
            _ => {
                let inner = node.child_by_field_name("declarator");
                node = inner.or_else(|| {
                    // Parentheses and attributes have no field.
                    named_children(node).find(|child| {
                        child.kind().ends_with("declarator") || child.kind().ends_with("identifier")
                    })
                })?;
            }
        }
    }
    None
}

/// Tells whether a declarator declares a function, and not a pointer to one.
fn is_function(declarator: Node<'_>) -> bool {
    let mut node = declarator;
    for _ in 0..MAX_DECLARATORS {
        match node.kind() {
            "function_declarator" => {
                let inner = node.child_by_field_name("declarator");
                return inner.is_none_or(|inner| inner.kind() != "parenthesized_declarator");
            }
            "pointer_declarator" | "reference_declarator" | "attributed_declarator" => {
                let inner = node.child_by_field_name("declarator").or_else(|| node.named_child(0));
                match inner {
                    Some(inner) => node = inner,
                    None => return false,
                }
            }
            _ => return false,
        }
    }
    false
}

fn is_js_function(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "arrow_function" | "function_expression" | "generator_function" | "function"
    )
}

fn is_inside_function(node: Node<'_>) -> bool {
    let mut next = node.parent();
    while let Some(parent) = next {
        if is_js_function(parent)
            || matches!(
                parent.kind(),
                "function_declaration" | "generator_function_declaration" | "method_definition"
            )
        {
            return true;
        }
        next = parent.parent();
    }
    false
}

fn js_variable(node: Node<'_>) -> Option<Naming<'_>> {
    let name = node.child_by_field_name("name").filter(|name| name.kind() == "identifier")?;
    let value = node.child_by_field_name("value");
    if let Some(value) = value.filter(|value| is_js_function(*value)) {
        let body = value.child_by_field_name("body");
        return Some(Naming { kind: Some(SymbolKind::Function), body, ..Naming::of(name) });
    }
    if let Some(value) = value.filter(|value| value.kind() == "class") {
        let body = value.child_by_field_name("body");
        return Some(Naming { kind: Some(SymbolKind::Class), body, ..Naming::of(name) });
    }
    (!is_inside_function(node)).then(|| Naming::of(name))
}

fn js_assignment<'t>(node: Node<'t>, source: &str) -> Option<Naming<'t>> {
    let left = node.child_by_field_name("left")?;
    let right = node.child_by_field_name("right")?;
    let kind = match right.kind() {
        "class" => SymbolKind::Class,
        _ if is_js_function(right) => SymbolKind::Function,
        _ => return None,
    };
    let body = right.child_by_field_name("body");
    let (name, receiver) = match left.kind() {
        "identifier" => (left, None),
        "member_expression" => {
            let object = left.child_by_field_name("object").map(|object| text(object, source));
            let receiver = object.map(|object| object.trim_end_matches(".prototype"));
            let receiver = receiver.filter(|object| {
                !matches!(*object, "exports" | "module.exports" | "module" | "this" | "self")
                    && object.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
            });
            (left.child_by_field_name("property")?, receiver.map(str::to_owned))
        }
        _ => return None,
    };
    Some(Naming { receiver, kind: Some(kind), body, ..Naming::of(name) })
}

/// Returns the last part of `a.b.c` or `a:b`.
fn dotted<'t>(name: Node<'t>, source: &str) -> Option<Naming<'t>> {
    let last = match name.kind() {
        "dot_index_expression" => name.child_by_field_name("field")?,
        "method_index_expression" => name.child_by_field_name("method")?,
        _ => return Some(Naming::of(name)),
    };
    let table = name.child_by_field_name("table").map(|table| text(table, source).to_owned());
    Some(Naming { receiver: table, ..Naming::of(last) })
}

fn lua_assignment<'t>(node: Node<'t>, source: &str) -> Option<Naming<'t>> {
    let name = node.named_child(0)?.named_child(0)?;
    let value = node.named_child(1)?.named_child(0)?;
    let naming = dotted(name, source)?;
    match value.kind() {
        "function_definition" => {
            let body = value.child_by_field_name("body");
            Some(Naming { kind: Some(SymbolKind::Function), body, ..naming })
        }
        _ if name.kind() == "identifier" => Some(naming),
        _ => None,
    }
}

fn html_id<'t>(node: Node<'t>, source: &str) -> Option<Node<'t>> {
    let tag = node.named_child(0)?;
    let mut attributes = named_children(tag).filter(|child| child.kind() == "attribute");
    let id = attributes.find(|attribute| {
        attribute.named_child(0).is_some_and(|name| text(name, source).eq_ignore_ascii_case("id"))
    })?;
    let value = id.named_child(1)?;
    Some(value.named_child(0).unwrap_or(value))
}

fn section_heading(node: Node<'_>) -> Option<Node<'_>> {
    let heading = node.named_child(0).filter(|child| child.kind() == "atx_heading")?;
    heading.child_by_field_name("heading_content")
}
