//! Metavariables in the text of patterns and replacements: `$NAME` for one node, `$$$NAME` for any number.
//!
//! Grammars do not know `$NAME`. In a pattern the dollar signs are therefore replaced by a letter that every
//! grammar takes for the start of a name and that sources hardly use. Where names cannot stand for values, as in
//! JSON, the variable becomes a string instead.

use std::ops::Range;

use crate::language::Language;

/// The letter in place of each dollar sign.
pub(super) const STAND_IN: char = 'µ';

/// A metavariable in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metavariable<'t> {
    /// Its place, with the dollar signs.
    pub(crate) range: Range<usize>,
    /// Its name; empty for a nameless `$$$`.
    pub(crate) name: &'t str,
    /// The number of dollar signs.
    pub(crate) dollars: usize,
}

impl Metavariable<'_> {
    /// Returns true if it stands for any number of nodes.
    pub(crate) fn is_variadic(&self) -> bool {
        self.dollars == 3
    }

    /// Returns true if it captures nothing.
    pub(crate) fn is_nameless(&self) -> bool {
        self.name.is_empty() || self.name.starts_with('_')
    }
}

/// Finds the metavariables of a text: upper-case names behind one to three dollar signs.
pub(crate) fn metavariables(text: &str) -> Vec<Metavariable<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = memchr::memchr(b'$', &bytes[at..]) {
        let start = at + offset;
        let dollars = bytes[start..].iter().take_while(|byte| **byte == b'$').count();
        let from = start + dollars;
        let is_first = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
        let is_further = |byte: &&u8| is_first(**byte) || byte.is_ascii_digit();
        let length = if bytes.get(from).copied().is_some_and(is_first) {
            bytes[from..].iter().take_while(is_further).count()
        } else {
            0
        };
        let end = from + length;
        let goes_on = bytes.get(end).is_some_and(u8::is_ascii_alphanumeric);
        if dollars <= 3 && !goes_on && (length > 0 || dollars == 3) {
            found.push(Metavariable { range: start..end, name: &text[from..end], dollars });
        }
        at = end.max(from);
    }
    found
}

/// Returns the text of a pattern as its grammar can read it.
pub(super) fn readable(language: Language, text: &str) -> String {
    let mut readable = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for variable in metavariables(text) {
        let before = &text[at..variable.range.start];
        readable.push_str(before);
        let name = stand_in(&variable);
        if has_quoted_variables(language) && !is_quoted(&text[..variable.range.start]) {
            readable.extend(["\"", &name, "\""]);
        } else {
            readable.push_str(&name);
        }
        if needs_semicolon(language, text, &variable) {
            readable.push(';');
        }
        at = variable.range.end;
    }
    readable.push_str(&text[at..]);
    readable
}

fn stand_in(variable: &Metavariable<'_>) -> String {
    let mut name = String::from(STAND_IN).repeat(variable.dollars);
    name.push_str(variable.name);
    name
}

/// Tells whether a variable that stands for statements needs a semicolon to be one.
fn needs_semicolon(language: Language, text: &str, variable: &Metavariable<'_>) -> bool {
    let has_semicolons = matches!(
        language,
        Language::C | Language::Cpp | Language::CSharp | Language::Java | Language::Php
    );
    let before = text[..variable.range.start].trim_end();
    let after = &text[variable.range.end..];
    let line = after.trim_start_matches([' ', '\t', '\r']);
    has_semicolons
        && variable.is_variadic()
        && before.ends_with(['{', '}', ';'])
        && (line.starts_with(['}', '\n']) || (line.is_empty() && !before.is_empty()))
}

/// Tells whether names cannot stand for values in a language, and strings do instead.
pub(super) const fn has_quoted_variables(language: Language) -> bool {
    matches!(language, Language::Json | Language::Toml)
}

fn is_quoted(before: &str) -> bool {
    before.matches('"').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn variables_are_upper_case_names_behind_dollar_signs() {
        let found = |text| {
            let found = metavariables(text).into_iter();
            found.map(|one| format!("{}{}", one.dollars, one.name)).collect::<Vec<_>>()
        };
        assert_eq!(found("$A.f($$$ARGS, $_, $$B, $$$)"), ["1A", "3ARGS", "1_", "2B", "3"]);
        assert_eq!(found("$x $Foo ${A} $(a) $ $$ $1 $$$$A a$A_1"), ["1A_1"]);
        assert_eq!(found("$$$ $$$_ é$É"), ["3", "3_"]);
    }

    #[test]
    fn a_pattern_becomes_text_of_its_language() {
        for (language, text, expected) in [
            (Language::Rust, "$A.f($$$B)", "µA.f(µµµB)"),
            (Language::JavaScript, "`${x}` + $A", "`${x}` + µA"),
            (Language::Json, "{\"a\": $A, \"$B\": [$$$C]}", "{\"a\": \"µA\", \"µB\": [\"µµµC\"]}"),
            (Language::C, "if ($A) { $$$B }", "if (µA) { µµµB; }"),
            (Language::C, "f($$$A)", "f(µµµA)"),
            (Language::Java, "{\n$$$A\nreturn $B;\n}", "{\nµµµA;\nreturn µB;\n}"),
        ] {
            assert_eq!(readable(language, text), expected);
        }
    }
}
