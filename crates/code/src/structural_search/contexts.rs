//! The texts around a pattern in which it is read.

use crate::language::Language;

/// Returns the texts around a pattern in which it may be read, the usual one first.
pub(super) const fn contexts(language: Language) -> &'static [(&'static str, &'static str)] {
    match language {
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
        ],
        Language::Go => &[
            ("", ""),
            ("package µ\nfunc µ() {\n", "\n}\n"),
            ("package µ\nvar µ = ", "\n"),
            ("package µ\ntype µ struct {\n", "\n}\n"),
            ("package µ\ntype µ interface {\n", "\n}\n"),
        ],
        Language::JavaScript => &[("", ""), ("(", ")"), ("class µ { ", " }"), ("({ ", " })")],
        Language::TypeScript | Language::Tsx => &[
            ("", ""),
            ("(", ")"),
            ("class µ { ", " }"),
            ("({ ", " })"),
            ("interface µ { ", " }"),
            ("type µ = ", ";"),
        ],
        Language::Php => {
            &[("<?php ", ""), ("<?php ", ";"), ("<?php class µ { ", " }"), ("<?php µ = ", ";")]
        }
        Language::Lua => &[("", ""), ("return ", "")],
        Language::Css => &[("", ""), ("a { ", "; }"), ("a { ", " }"), ("", " {}")],
        Language::Json => &[("", ""), ("{", "}")],
        Language::Kotlin | Language::Swift | Language::Scala => &[("", ""), ("class µ { ", " }")],
        Language::Bash
        | Language::Html
        | Language::Markdown
        | Language::Python
        | Language::Ruby
        | Language::Toml
        | Language::Yaml => &[("", ""), ("", "\n")],
    }
}
