//! The definitions of each language: which nodes of its grammar define a name, and where the name is.
//!
//! These tables stand in place of the tag queries that grammars ship. Those of C and C++ have no references,
//! TypeScript's are incomplete without JavaScript's, nine grammars have none, and compiling all of them takes a
//! second. A table of node kinds is compiled in microseconds, and the walk that reads it also sees nesting,
//! bodies and receivers.

mod naming;

use std::sync::OnceLock;

use naming::NameRule::{self, Child, EachField, Field};

pub(crate) use naming::Naming;

use crate::language::Language;
use crate::symbol::SymbolKind::{
    self, Class, Constant, Element, Enum, Function, Heading, Impl, Interface, Key, Macro, Method,
    Module, Selector, Struct, Trait, Type, Variable, Variant,
};

/// A kind of node that defines a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DefinitionRule {
    node: &'static str,
    pub(crate) kind: SymbolKind,
    pub(crate) name: NameRule,
    /// It counts inside of functions too. Variables there are not symbols.
    pub(crate) in_functions: bool,
}

/// The definitions and the other nodes of a language that a walk has to know.
struct Rules {
    definitions: &'static [DefinitionRule],
    /// Nodes that belong to the one definition inside them, such as `export` and decorators.
    wrappers: &'static [&'static str],
    /// Nodes above a definition that belong to it, beside comments.
    attributes: &'static [&'static str],
    /// Nodes without children that are names, beside what the grammar calls identifiers.
    names: &'static [&'static str],
}

/// The role of a node, by its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Nothing in particular.
    None,
    /// It defines a name.
    Definition(&'static DefinitionRule),
    /// A name.
    Name,
    /// A comment.
    Comment,
    /// Part of the definition below it.
    Attribute,
}

/// The roles of all nodes of a grammar.
#[derive(Debug)]
pub(crate) struct Roles {
    by_id: Vec<Role>,
    wrappers: Vec<bool>,
}

impl Roles {
    /// Returns the roles of a language whose grammar is compiled in.
    pub(crate) fn of(language: Language) -> &'static Self {
        static ALL: [OnceLock<Roles>; Language::ALL.len()] =
            [const { OnceLock::new() }; Language::ALL.len()];
        let place = Language::ALL.iter().position(|one| *one == language);
        ALL[place.expect("every language is in the list")].get_or_init(|| Self::new(language))
    }

    fn new(language: Language) -> Self {
        let rules = rules(language);
        let Ok(grammar) = language.grammar() else {
            return Self { by_id: Vec::new(), wrappers: Vec::new() };
        };
        let ids = (0..grammar.node_kind_count()).map(|id| u16::try_from(id).unwrap_or(u16::MAX));
        let kinds = ids.map(|id| {
            let kind = grammar.node_kind_for_id(id).unwrap_or_default();
            (kind, grammar.node_kind_is_named(id))
        });
        let (mut by_id, mut wrappers) = (Vec::new(), Vec::new());
        for (kind, named) in kinds {
            by_id.push(if named { rules.role(kind) } else { Role::None });
            wrappers.push(named && rules.wrappers.contains(&kind));
        }
        Self { by_id, wrappers }
    }

    pub(crate) fn role(&self, id: u16) -> Role {
        self.by_id.get(usize::from(id)).copied().unwrap_or(Role::None)
    }

    pub(crate) fn is_wrapper(&self, id: u16) -> bool {
        self.wrappers.get(usize::from(id)).copied().unwrap_or(false)
    }
}

impl Rules {
    fn role(&self, kind: &str) -> Role {
        if let Some(rule) = self.definitions.iter().find(|rule| rule.node == kind) {
            return Role::Definition(rule);
        }
        // A `doc_comment` of Rust is the text inside a comment that counts already.
        if kind.contains("comment") && kind != "doc_comment" {
            Role::Comment
        } else if self.attributes.contains(&kind) {
            Role::Attribute
        } else if kind.ends_with("identifier") || self.names.contains(&kind) {
            Role::Name
        } else {
            Role::None
        }
    }
}

const fn rule(node: &'static str, kind: SymbolKind, name: NameRule) -> DefinitionRule {
    DefinitionRule { node, kind, name, in_functions: true }
}

/// A definition that is a symbol outside of functions only.
const fn outer(node: &'static str, kind: SymbolKind, name: NameRule) -> DefinitionRule {
    DefinitionRule { node, kind, name, in_functions: false }
}

const NAME: NameRule = Field("name");

const NOTHING: Rules = Rules { definitions: &[], wrappers: &[], attributes: &[], names: &[] };

#[expect(clippy::too_many_lines, reason = "a table with one part for each language")]
fn rules(language: Language) -> Rules {
    match language {
        Language::Rust => {
            const {
                Rules {
                    definitions: &[
                        rule("function_item", Function, NAME),
                        rule("function_signature_item", Function, NAME),
                        rule("struct_item", Struct, NAME),
                        rule("union_item", Struct, NAME),
                        rule("enum_item", Enum, NAME),
                        rule("trait_item", Trait, NAME),
                        rule("impl_item", Impl, NameRule::BaseType("type")),
                        rule("mod_item", Module, NAME),
                        rule("type_item", Type, NAME),
                        rule("associated_type", Type, NAME),
                        rule("macro_definition", Macro, NAME),
                        rule("enum_variant", Variant, NAME),
                        rule("field_declaration", SymbolKind::Field, NAME),
                        outer("const_item", Constant, NAME),
                        outer("static_item", Variable, NAME),
                    ],
                    attributes: &["attribute_item"],
                    ..NOTHING
                }
            }
        }
        Language::Go => {
            const {
                Rules {
                    definitions: &[
                        rule("function_declaration", Function, NAME),
                        rule("method_declaration", Method, NameRule::GoMethod),
                        rule("type_spec", Type, NameRule::GoType),
                        rule("type_alias", Type, NAME),
                        rule("method_elem", Method, NAME),
                        rule("field_declaration", SymbolKind::Field, EachField("name")),
                        outer("const_spec", Constant, EachField("name")),
                        outer("var_spec", Variable, EachField("name")),
                    ],
                    wrappers: &["type_declaration", "const_declaration", "var_declaration"],
                    ..NOTHING
                }
            }
        }
        Language::Python => {
            const {
                Rules {
                    definitions: &[
                        rule("function_definition", Function, NAME),
                        rule("class_definition", Class, NAME),
                        outer("assignment", Variable, NameRule::PlainTarget("left")),
                        outer("type_alias_statement", Type, Child("type")),
                    ],
                    wrappers: &["decorated_definition", "expression_statement"],
                    ..NOTHING
                }
            }
        }
        Language::JavaScript => {
            const { Rules { definitions: JAVASCRIPT, wrappers: JAVASCRIPT_WRAPPERS, ..NOTHING } }
        }
        Language::TypeScript | Language::Tsx => {
            const {
                Rules {
                    definitions: TYPESCRIPT,
                    wrappers: TYPESCRIPT_WRAPPERS,
                    attributes: &["decorator"],
                    ..NOTHING
                }
            }
        }
        Language::Java => {
            const {
                Rules {
                    definitions: &[
                        rule("class_declaration", Class, NAME),
                        rule("record_declaration", Class, NAME),
                        rule("interface_declaration", Interface, NAME),
                        rule("annotation_type_declaration", Interface, NAME),
                        rule("enum_declaration", Enum, NAME),
                        rule("enum_constant", Variant, NAME),
                        rule("method_declaration", Method, NAME),
                        rule("annotation_type_element_declaration", Method, NAME),
                        rule("constructor_declaration", Method, NAME),
                        rule("compact_constructor_declaration", Method, NAME),
                        outer("field_declaration", SymbolKind::Field, NameRule::EachDeclarator),
                        outer("constant_declaration", Constant, NameRule::EachDeclarator),
                    ],
                    ..NOTHING
                }
            }
        }
        Language::C => Rules { definitions: C, attributes: C_ATTRIBUTES, ..NOTHING },
        Language::Cpp => {
            const {
                Rules {
                    definitions: CPP,
                    wrappers: &["template_declaration"],
                    attributes: C_ATTRIBUTES,
                    ..NOTHING
                }
            }
        }
        Language::Ruby => {
            const {
                Rules {
                    definitions: &[
                        rule("method", Function, NAME),
                        rule("singleton_method", Function, NAME),
                        rule("class", Class, NAME),
                        rule("module", Module, NAME),
                        outer("assignment", Constant, NameRule::PlainTarget("left")),
                    ],
                    names: &["constant", "instance_variable", "class_variable", "global_variable"],
                    ..NOTHING
                }
            }
        }
        Language::Php => {
            const {
                Rules {
                    definitions: &[
                        rule("function_definition", Function, NAME),
                        rule("method_declaration", Method, NAME),
                        rule("class_declaration", Class, NAME),
                        rule("interface_declaration", Interface, NAME),
                        rule("trait_declaration", Trait, NAME),
                        rule("enum_declaration", Enum, NAME),
                        rule("enum_case", Variant, NAME),
                        rule("namespace_definition", Module, NAME),
                        rule("property_element", SymbolKind::Field, NAME),
                        rule("const_element", Constant, Child("name")),
                    ],
                    wrappers: &["property_declaration", "const_declaration"],
                    names: &["name"],
                    ..NOTHING
                }
            }
        }
        Language::Lua => {
            const {
                Rules {
                    definitions: &[
                        rule("function_declaration", Function, NameRule::Dotted),
                        outer("assignment_statement", Variable, NameRule::LuaAssignment),
                    ],
                    wrappers: &["variable_declaration"],
                    ..NOTHING
                }
            }
        }
        Language::Bash => {
            const {
                Rules {
                    definitions: &[
                        rule("function_definition", Function, NAME),
                        outer("variable_assignment", Variable, NAME),
                    ],
                    wrappers: &["declaration_command"],
                    names: &["word", "variable_name"],
                    ..NOTHING
                }
            }
        }
        Language::CSharp => {
            const {
                Rules {
                    definitions: &[
                        rule("class_declaration", Class, NAME),
                        rule("record_declaration", Class, NAME),
                        rule("struct_declaration", Struct, NAME),
                        rule("interface_declaration", Interface, NAME),
                        rule("enum_declaration", Enum, NAME),
                        rule("enum_member_declaration", Variant, NAME),
                        rule("delegate_declaration", Type, NAME),
                        rule("method_declaration", Method, NAME),
                        rule("constructor_declaration", Method, NAME),
                        rule("local_function_statement", Function, NAME),
                        rule("property_declaration", SymbolKind::Field, NAME),
                        outer("field_declaration", SymbolKind::Field, NameRule::EachDeclarator),
                        rule("namespace_declaration", Module, NAME),
                        rule("file_scoped_namespace_declaration", Module, NAME),
                    ],
                    ..NOTHING
                }
            }
        }
        Language::Kotlin => {
            const {
                Rules {
                    definitions: &[
                        rule("class_declaration", Class, NameRule::KotlinType),
                        rule("object_declaration", Class, NAME),
                        rule("companion_object", Class, NAME),
                        rule("enum_entry", Variant, Child("identifier")),
                        rule("function_declaration", Function, NAME),
                        rule("type_alias", Type, Field("type")),
                        outer(
                            "property_declaration",
                            Variable,
                            NameRule::NameInChild("variable_declaration"),
                        ),
                    ],
                    ..NOTHING
                }
            }
        }
        Language::Swift => {
            const {
                Rules {
                    definitions: &[
                        rule("class_declaration", Class, NameRule::SwiftType),
                        rule("protocol_declaration", Interface, NAME),
                        rule("function_declaration", Function, NAME),
                        rule("protocol_function_declaration", Method, NAME),
                        rule("init_declaration", Method, NAME),
                        rule("typealias_declaration", Type, NAME),
                        rule("enum_entry", Variant, NAME),
                        outer("property_declaration", Variable, NAME),
                    ],
                    ..NOTHING
                }
            }
        }
        Language::Scala => {
            const {
                Rules {
                    definitions: &[
                        rule("class_definition", Class, NAME),
                        rule("object_definition", Class, NAME),
                        rule("trait_definition", Trait, NAME),
                        rule("enum_definition", Enum, NAME),
                        rule("function_definition", Function, NAME),
                        rule("function_declaration", Function, NAME),
                        rule("type_definition", Type, NAME),
                        outer("val_definition", Variable, NameRule::PlainTarget("pattern")),
                        outer("var_definition", Variable, NameRule::PlainTarget("pattern")),
                    ],
                    ..NOTHING
                }
            }
        }
        Language::Css => {
            const {
                Rules {
                    definitions: &[
                        rule("rule_set", Selector, Child("selectors")),
                        rule("keyframes_statement", Selector, Child("keyframes_name")),
                    ],
                    names: &["class_name", "id_name", "tag_name", "property_name"],
                    ..NOTHING
                }
            }
        }
        Language::Html => {
            const {
                Rules {
                    definitions: &[rule("element", Element, NameRule::HtmlId)],
                    names: &["tag_name", "attribute_name"],
                    ..NOTHING
                }
            }
        }
        Language::Json => {
            const { Rules { definitions: &[rule("pair", Key, Field("key"))], ..NOTHING } }
        }
        Language::Yaml => {
            const { Rules { definitions: &[rule("block_mapping_pair", Key, Field("key"))], ..NOTHING } }
        }
        Language::Toml => {
            const {
                Rules {
                    definitions: &[
                        rule("table", Key, NameRule::FirstChild),
                        rule("table_array_element", Key, NameRule::FirstChild),
                        rule("pair", Key, NameRule::FirstChild),
                    ],
                    names: &["bare_key"],
                    ..NOTHING
                }
            }
        }
        Language::Markdown => {
            const {
                Rules {
                    definitions: &[
                        rule("section", Heading, NameRule::SectionHeading),
                        // The grammar makes no sections of headings with a line below them.
                        rule("setext_heading", Heading, Field("heading_content")),
                    ],
                    ..NOTHING
                }
            }
        }
    }
}

const JAVASCRIPT_WRAPPERS: &[&str] =
    &["export_statement", "lexical_declaration", "variable_declaration", "expression_statement"];

const TYPESCRIPT_WRAPPERS: &[&str] = &[
    "ambient_declaration",
    "export_statement",
    "lexical_declaration",
    "variable_declaration",
    "expression_statement",
];

const JAVASCRIPT: &[DefinitionRule] = &[
    rule("function_declaration", Function, NAME),
    rule("generator_function_declaration", Function, NAME),
    rule("class_declaration", Class, NAME),
    rule("method_definition", Method, NAME),
    rule("field_definition", SymbolKind::Field, Field("property")),
    rule("variable_declarator", Variable, NameRule::JsVariable),
    rule("assignment_expression", Function, NameRule::JsAssignment),
    rule("pair", Function, NameRule::JsPair),
];

const TYPESCRIPT: &[DefinitionRule] = &[
    rule("function_declaration", Function, NAME),
    rule("generator_function_declaration", Function, NAME),
    rule("function_signature", Function, NAME),
    rule("class_declaration", Class, NAME),
    rule("abstract_class_declaration", Class, NAME),
    rule("interface_declaration", Interface, NAME),
    rule("type_alias_declaration", Type, NAME),
    rule("enum_declaration", Enum, NAME),
    rule("enum_body", Variant, NameRule::EachName("name")),
    rule("enum_assignment", Variant, NAME),
    rule("internal_module", Module, NAME),
    rule("module", Module, NAME),
    rule("method_definition", Method, NAME),
    rule("method_signature", Method, NAME),
    rule("abstract_method_signature", Method, NAME),
    rule("public_field_definition", SymbolKind::Field, NAME),
    rule("property_signature", SymbolKind::Field, NAME),
    rule("variable_declarator", Variable, NameRule::JsVariable),
    rule("assignment_expression", Function, NameRule::JsAssignment),
    rule("pair", Function, NameRule::JsPair),
];

const C_ATTRIBUTES: &[&str] = &["attribute_declaration"];

const C: &[DefinitionRule] = &[
    rule("function_definition", Function, NameRule::Declarator),
    outer("declaration", Variable, NameRule::CDeclaration),
    rule("type_definition", Type, NameRule::Declarator),
    rule("struct_specifier", Struct, NameRule::WithBody),
    rule("union_specifier", Struct, NameRule::WithBody),
    rule("enum_specifier", Enum, NameRule::WithBody),
    rule("enumerator", Variant, NAME),
    rule("field_declaration", SymbolKind::Field, NameRule::CDeclaration),
    rule("preproc_def", Macro, NameRule::FieldBeside("name", "value")),
    rule("preproc_function_def", Macro, NAME),
];

const CPP: &[DefinitionRule] = &[
    rule("function_definition", Function, NameRule::Declarator),
    outer("declaration", Variable, NameRule::CDeclaration),
    rule("type_definition", Type, NameRule::Declarator),
    rule("alias_declaration", Type, NAME),
    rule("concept_definition", Type, NAME),
    rule("class_specifier", Class, NameRule::WithBody),
    rule("struct_specifier", Struct, NameRule::WithBody),
    rule("union_specifier", Struct, NameRule::WithBody),
    rule("enum_specifier", Enum, NameRule::WithBody),
    rule("enumerator", Variant, NAME),
    rule("namespace_definition", Module, NAME),
    rule("field_declaration", SymbolKind::Field, NameRule::CDeclaration),
    rule("preproc_def", Macro, NameRule::FieldBeside("name", "value")),
    rule("preproc_function_def", Macro, NAME),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_that_a_table_names_is_in_the_grammar() {
        for language in Language::ALL {
            let Ok(grammar) = language.grammar() else { continue };
            let rules = rules(language);
            let definitions = rules.definitions.iter().map(|rule| rule.node);
            let others = rules.wrappers.iter().chain(rules.attributes).chain(rules.names);
            for node in definitions.chain(others.copied()) {
                assert_ne!(grammar.id_for_node_kind(node, true), 0, "{language}: {node}");
            }
        }
    }
}
