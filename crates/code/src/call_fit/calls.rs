//! The calls of a function.

use tree_sitter::Node;

use super::{CallFit, CallSite, Parameters};
use crate::language::Language;
use crate::name_ranges::name_ranges;
use crate::syntax::SyntaxTree;

/// The kinds of calls, and the field of each that is called.
const CALLS: [(&str, &str); 7] = [
    ("call_expression", "function"),
    ("call", "function"),
    ("method_invocation", "name"),
    ("function_call_expression", "function"),
    ("member_call_expression", "name"),
    ("nullsafe_member_call_expression", "name"),
    ("scoped_call_expression", "name"),
];

/// The kinds of expressions in front of a called name, with the fields of the name and of what is before it.
const ACCESSES: [(&str, &str, &str); 7] = [
    ("field_expression", "field", "value"),
    ("selector_expression", "field", "operand"),
    ("attribute", "attribute", "object"),
    ("member_expression", "property", "object"),
    ("scoped_identifier", "name", "path"),
    ("qualified_identifier", "name", "scope"),
    // With type arguments; nothing is before the name.
    ("generic_function", "function", ""),
];

/// Arguments that stand for several, or for one of another place.
const UNCOUNTED: [&str; 7] = [
    "keyword_argument",
    "list_splat",
    "dictionary_splat",
    "spread_element",
    "variadic_argument",
    "parameter_pack_expansion",
    "variadic_placeholder",
];

/// What stands before a called name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    /// A value: `x.f()`.
    Value,
    /// The type of the function, or a path: `T::f()`, `T.f()`.
    Type,
}

pub(super) fn of_function(
    tree: &SyntaxTree,
    source: &str,
    (name, container): (&str, Option<&str>),
    parameters: &Parameters,
) -> Vec<CallSite> {
    let mut sites = Vec::new();
    for range in name_ranges(tree, source, name) {
        let Some(node) = tree.root().descendant_for_byte_range(range.start, range.end) else {
            continue;
        };
        if is_definition(node) || is_imported(node) {
            continue;
        }
        let fit = match call_of(node, source, container) {
            None => CallFit::Unknown,
            // A method has something before it; a function of the same name is another one.
            Some((_, Before::Nothing)) if parameters.has_receiver => continue,
            Some((call, before)) => fit(tree.language(), call, before, parameters),
        };
        sites.push(CallSite { line: node.start_position().row + 1, name: range, fit });
    }
    sites
}

/// Tells whether a name is that of a definition.
fn is_definition(node: Node<'_>) -> bool {
    let Some(parent) = node.parent() else { return false };
    // A definition outside of its type, as C++ has them.
    if parent.kind() == "qualified_identifier" {
        return is_definition(parent);
    }
    let is_named = ["name", "declarator"].iter().any(|field| {
        parent.child_by_field_name(field).is_some_and(|named| named.id() == node.id())
    });
    is_named
        && (parent.child_by_field_name("parameters").is_some()
            || parent
                .child_by_field_name("value")
                .is_some_and(|value| value.child_by_field_name("parameters").is_some()))
}

fn is_imported(node: Node<'_>) -> bool {
    let mut around = node.parent();
    while let Some(one) = around {
        let kind = one.kind();
        if kind.contains("import") || kind == "use_declaration" || kind == "namespace_use_clause" {
            return true;
        }
        if kind.ends_with("_statement") || kind.ends_with("block") {
            return false;
        }
        around = one.parent();
    }
    false
}

/// Returns the call of a name, and what stands before it.
fn call_of<'t>(
    node: Node<'t>,
    source: &str,
    container: Option<&str>,
) -> Option<(Node<'t>, Before)> {
    let mut called = node;
    let mut before = Before::Nothing;
    loop {
        let parent = called.parent()?;
        let is_field = |field: &str| {
            parent.child_by_field_name(field).is_some_and(|child| child.id() == called.id())
        };
        if CALLS.iter().any(|(kind, field)| parent.kind() == *kind && is_field(field)) {
            let own = match parent.kind() {
                "method_invocation"
                | "member_call_expression"
                | "nullsafe_member_call_expression" => "object",
                "scoped_call_expression" => "scope",
                _ => "",
            };
            if let Some(object) = parent.child_by_field_name(own) {
                before = before_of(object, source, container);
            }
            return Some((parent, before));
        }
        let access =
            ACCESSES.iter().find(|(kind, field, _)| parent.kind() == *kind && is_field(field));
        let (kind, _, value) = access?;
        // The object of an expression of C++ has another name.
        let object =
            parent.child_by_field_name(value).or_else(|| parent.child_by_field_name("argument"));
        if let Some(object) = object {
            before = match *kind {
                "scoped_identifier" | "qualified_identifier" => Before::Type,
                _ => before_of(object, source, container),
            };
        }
        called = parent;
    }
}

fn before_of(object: Node<'_>, source: &str, container: Option<&str>) -> Before {
    let text = source.get(object.byte_range());
    let is_type = container.is_some() && text.map(last_name) == container;
    if is_type { Before::Type } else { Before::Value }
}

fn last_name(text: &str) -> &str {
    text.rsplit(['.', ':']).next().unwrap_or(text)
}

fn fit(language: Language, call: Node<'_>, before: Before, parameters: &Parameters) -> CallFit {
    let Some(count) = count(language, call, parameters) else { return CallFit::Unknown };
    let count = match before {
        // The receiver is the first argument.
        Before::Type if parameters.has_receiver && passes_receiver(language) => {
            let Some(count) = count.checked_sub(1) else { return CallFit::Misfits };
            count
        }
        Before::Nothing | Before::Value | Before::Type => count,
    };
    if parameters.takes(count) { CallFit::Fits } else { CallFit::Misfits }
}

/// Tells whether a call through the type passes the receiver as an argument.
fn passes_receiver(language: Language) -> bool {
    matches!(language, Language::Rust | Language::Python | Language::Go)
}

/// Returns the number of arguments of a call; none if it cannot be told.
fn count(language: Language, call: Node<'_>, parameters: &Parameters) -> Option<usize> {
    let arguments = call.child_by_field_name("arguments")?;
    match arguments.kind() {
        "generator_expression" => return Some(1),
        "template_string" => return None,
        _ => {}
    }
    let mut cursor = arguments.walk();
    let mut count = 0;
    let mut last = None;
    for argument in arguments.named_children(&mut cursor) {
        if argument.kind().contains("comment") || argument.is_extra() {
            continue;
        }
        let inner = argument.named_child(0).map(|inner| inner.kind());
        let is_named = argument.kind() == "argument"
            && (argument.child_by_field_name("name").is_some()
                || inner == Some("variadic_unpacking"));
        if is_named || UNCOUNTED.contains(&argument.kind()) {
            return None;
        }
        count += 1;
        last = Some(argument);
    }
    // A function of Go passes all of its results on.
    let is_call = last.is_some_and(|last| last.kind() == "call_expression");
    if language == Language::Go && count == 1 && is_call && !parameters.takes(1) {
        return None;
    }
    let has_error = arguments.has_error();
    (!has_error).then_some(count)
}
