//! The texts around a pattern in which it is read.

use crate::language::Language;

/// Returns the texts around a pattern in which it may be read, the usual one first.
pub(super) fn contexts(language: Language, text: &str) -> &'static [(&'static str, &'static str)] {
    match language {
        Language::Java | Language::CSharp if begins_with_modifier(text) => {
            &[("class µ { ", " }"), ("", "")]
        }
        Language::Rust => &[
            ("", ""),
            ("fn µ() { ", " }"),
            ("fn µ() { let µ = ", "; }"),
            ("impl µ { ", " }"),
            ("struct µ { ", " }"),
            ("enum µ { ", " }"),
            ("fn µ() { match µ { ", " } }"),
            ("type µ = ", ";"),
        ],
        Language::C => &[
            ("void µ() { ", " }"),
            ("void µ() { µ = ", "; }"),
            ("", ""),
            ("", "\n"),
            ("struct µ { ", " };"),
        ],
        Language::Cpp => &[
            ("void µ() { ", " }"),
            ("void µ() { µ = ", "; }"),
            ("", ""),
            ("", "\n"),
            ("class µ { ", " };"),
        ],
        Language::CSharp => &[
            ("", ""),
            ("class µ { ", " }"),
            ("class µ { void µ() { ", " } }"),
            ("class µ { object µ = ", "; }"),
        ],
        Language::Java => &[
            ("", ""),
            ("class µ { void µ() { ", " } }"),
            ("class µ { Object µ = ", "; }"),
            ("class µ { ", " }"),
            ("", " class µ {}"),
        ],
        Language::Go => &[
            ("", ""),
            ("package µ\nfunc µ() {\n", "\n}\n"),
            ("package µ\nvar µ = ", "\n"),
            ("package µ\ntype µ struct {\n", "\n}\n"),
            ("package µ\ntype µ interface {\n", "\n}\n"),
        ],
        Language::JavaScript => {
            &[("", ""), ("(", ")"), ("class µ { ", " }"), ("({ ", " })"), ("", " class µ {}")]
        }
        Language::TypeScript | Language::Tsx => &[
            ("", ""),
            ("(", ")"),
            ("class µ { ", " }"),
            ("({ ", " })"),
            ("interface µ { ", " }"),
            ("type µ = ", ";"),
            ("", " class µ {}"),
        ],
        Language::Php => {
            &[("<?php ", ""), ("<?php ", ";"), ("<?php class µ { ", " }"), ("<?php µ = ", ";")]
        }
        Language::Python => &[("", ""), ("", "\ndef µ(): pass\n")],
        Language::Lua => &[("", ""), ("return ", "")],
        Language::Css => &[("", ""), ("a { ", "; }"), ("a { ", " }"), ("", " {}")],
        Language::Json => &[("", ""), ("{", "}")],
        Language::Toml if is_array(text) => &[("a = ", "\n")],
        Language::Swift => &[("", ""), ("class µ { ", " }"), ("func µ() { ", " }")],
        Language::Kotlin | Language::Scala => &[("", ""), ("class µ { ", " }")],
        Language::Bash
        | Language::Html
        | Language::Markdown
        | Language::Ruby
        | Language::Toml
        | Language::Yaml => &[("", ""), ("", "\n")],
    }
}

/// Tells whether a declaration of Java or C# can only be a member of a class.
fn begins_with_modifier(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    matches!(
        first,
        "public"
            | "private"
            | "protected"
            | "static"
            | "internal"
            | "virtual"
            | "override"
            | "abstract"
            | "sealed"
            | "readonly"
            | "volatile"
            | "transient"
            | "synchronized"
            | "native"
    )
}

/// Tells whether a text in brackets is an array, and not the head of a table.
fn is_array(text: &str) -> bool {
    let list = text.find("$$$");
    text.starts_with('[') && list.is_some_and(|list| text.find(']').is_some_and(|end| list < end))
}
