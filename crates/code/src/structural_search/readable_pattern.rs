//! Patterns as text that a grammar can read.
//!
//! Grammars do not know `$NAME`. The dollar signs are therefore replaced by a letter that every grammar takes for the
//! start of a name and that sources hardly use. Where names cannot stand, the variable gets something around it that
//! makes it a node of the right kind: a semicolon where statements stand, quotes where values do in JSON, a dollar
//! sign where PHP has variables. What was put there is removed again when a node is compared with the variables.

use super::metavariable::{Metavariable, metavariables};
use crate::language::Language;

/// The letter in place of each dollar sign.
pub(super) const STAND_IN: char = 'µ';

/// Returns the text of a pattern as its grammar can read it.
pub(super) fn readable(language: Language, text: &str) -> String {
    let mut readable = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for variable in metavariables(text) {
        readable.push_str(&text[at..variable.range.start]);
        let (before, after) = Surroundings::of(text, &variable).decoration(language, &variable);
        readable.push_str(before);
        readable.extend(std::iter::repeat_n(STAND_IN, variable.dollars));
        readable.push_str(variable.name);
        readable.push_str(after);
        at = variable.range.end;
    }
    readable.push_str(&text[at..]);
    readable
}

/// Returns a node's text without what [`readable`] puts around a variable.
pub(super) fn undecorated(language: Language, text: &str) -> Option<&str> {
    let without =
        |suffix: &str| text.strip_suffix(suffix).filter(|rest| is_list(rest)).unwrap_or(text);
    Some(match language {
        Language::Json | Language::Toml => {
            let text = text.strip_prefix('"')?;
            let endings = ["\"", "\": 0", "\" = 0"];
            endings.into_iter().find_map(|ending| text.strip_suffix(ending))?
        }
        Language::Java | Language::CSharp => {
            let bare = |ending| text.strip_suffix(ending).filter(|rest| is_list(rest));
            [" µ", "();", ";"].into_iter().find_map(bare).unwrap_or(text)
        }
        Language::C | Language::Cpp => without(";"),
        Language::Kotlin | Language::Scala | Language::Swift => without(": µ"),
        Language::Css => text.trim_end_matches(';').strip_suffix(":µ").unwrap_or(text),
        Language::Lua => without("()"),
        Language::Php => {
            let text = text.strip_prefix('$').unwrap_or(text);
            text.strip_suffix(';').filter(|rest| is_list(rest)).unwrap_or(text)
        }
        Language::Ruby => {
            text.strip_prefix('Z').filter(|rest| rest.starts_with(STAND_IN)).unwrap_or(text)
        }
        Language::Rust => {
            let endings = [" => µ,", ": µ,", "! {}"];
            let bare = endings.into_iter().find_map(|ending| {
                // The comma is not part of a field.
                text.strip_suffix(ending)
                    .or_else(|| text.strip_suffix(ending.trim_end_matches(',')))
            });
            bare.filter(|rest| is_list(rest)).unwrap_or(text)
        }
        _ => text,
    })
}

fn is_list(name: &str) -> bool {
    let name = name.trim_start_matches('$');
    name.chars().take_while(|c| *c == STAND_IN).count() == 3
}

/// The text around a variable, without the blanks beside it.
struct Surroundings<'t> {
    before: &'t str,
    after: &'t str,
    /// Nothing else is on the rest of its line.
    ends_line: bool,
}

impl<'t> Surroundings<'t> {
    fn of(text: &'t str, variable: &Metavariable<'_>) -> Self {
        let rest = &text[variable.range.end..];
        let line = rest.trim_start_matches([' ', '\t', '\r']);
        Self {
            before: text[..variable.range.start].trim_end(),
            after: rest.trim_start(),
            ends_line: line.is_empty() || line.starts_with('\n'),
        }
    }

    /// Returns what a variable needs around it to be what its grammar allows at its place.
    fn decoration(
        &self,
        language: Language,
        variable: &Metavariable<'_>,
    ) -> (&'static str, &'static str) {
        let is_statement = variable.is_variadic() && self.is_statement(language);
        let has_strings = matches!(language, Language::Json | Language::Toml);
        if has_strings && self.is_quoted() {
            return ("", "");
        }
        match language {
            Language::Json if variable.is_variadic() && self.is_item_of_object() => ("\"", "\": 0"),
            Language::Toml if variable.is_variadic() && self.is_line_of_table() => ("\"", "\" = 0"),
            // Names cannot stand for values here, and strings do instead.
            Language::Json | Language::Toml => ("\"", "\""),
            Language::CSharp if is_statement => ("", "();"),
            Language::C | Language::Cpp | Language::Java | Language::Php if is_statement => {
                ("", ";")
            }
            Language::Java | Language::CSharp if variable.is_variadic() && self.is_parameter() => {
                ("", " µ")
            }
            Language::Kotlin | Language::Scala | Language::Swift
                if variable.is_variadic() && self.is_named_parameter() =>
            {
                ("", ": µ")
            }
            Language::Css if is_statement && self.after.starts_with(';') => ("", ":µ"),
            Language::Css if is_statement => ("", ":µ;"),
            Language::Lua if is_statement => ("", "()"),
            Language::Php if !self.is_php_name() => ("$", ""),
            Language::Rust if variable.is_variadic() => match self.head_of_block() {
                Some(head) if head.contains("fn ") => ("", ""),
                Some(head) if head.contains("match ") => ("", " => µ,"),
                Some(head) if ["impl", "trait ", "mod "].iter().any(|word| head.contains(word)) => {
                    ("", "! {}")
                }
                Some(head) if head.contains("struct ") => ("", ": µ,"),
                _ => ("", ""),
            },
            Language::Ruby if self.is_ruby_constant() => ("Z", ""),
            _ => ("", ""),
        }
    }

    /// Tells whether a variable stands where statements do.
    fn is_statement(&self, language: Language) -> bool {
        let follows_word = |words: &[&str]| {
            let last = self.before.rsplit(|c: char| !c.is_alphanumeric()).next();
            last.is_some_and(|last| words.contains(&last))
        };
        let precedes_word = |words: &[&str]| {
            let first = self.after.split(|c: char| !c.is_alphanumeric()).next();
            first.is_some_and(|first| words.contains(&first))
        };
        if language == Language::Lua {
            let begins = self.before.ends_with([')', ';'])
                || follows_word(&["then", "do", "else", "repeat", "end"]);
            begins && (self.ends_line || precedes_word(&["end", "else", "elseif", "until"]))
        } else {
            let ends = self.after.starts_with('}') || self.ends_line;
            let ends = ends || (language == Language::Css && self.after.starts_with(';'));
            self.before.ends_with(['{', '}', ';']) && ends
        }
    }

    /// Tells whether a variable stands where a method of Java has parameters, which are types with names.
    fn is_parameter(&self) -> bool {
        const STATEMENTS: [&str; 7] =
            ["if", "while", "for", "switch", "catch", "synchronized", "try"];
        let behind = self.after.strip_prefix(')').map(str::trim_start).unwrap_or_default();
        let has_body = behind.starts_with('{') || behind.starts_with("throws ");
        let name = self.before.strip_suffix('(').map(str::trim_end).unwrap_or_default();
        let name = name.rsplit(|c: char| c.is_whitespace()).next().unwrap_or_default();
        has_body && !name.is_empty() && !STATEMENTS.contains(&name)
    }

    /// Tells whether a variable stands where a function or a class has parameters, which are names with types.
    fn is_named_parameter(&self) -> bool {
        const WORDS: [&str; 7] = ["fun", "func", "def", "class", "init", "constructor", "enum"];
        let head = self.before.rsplit(['{', '}', ';', '=', '\n']).next().unwrap_or_default();
        let count = |bracket| head.matches(bracket).count();
        let is_inside = count('(') > count(')') && head.ends_with(['(', ',']);
        let mut words = head.split(|c: char| !c.is_alphanumeric());
        is_inside && self.after.starts_with([')', ',']) && words.any(|word| WORDS.contains(&word))
    }

    fn is_quoted(&self) -> bool {
        self.before.matches('"').count() % 2 == 1
    }

    /// Tells whether a variable stands where an object has pairs.
    fn is_item_of_object(&self) -> bool {
        self.head_of_block().is_some() && self.after.starts_with([',', '}'])
    }

    /// Returns what is before the brace around a variable, if it is the innermost bracket and the variable has a place
    /// of its own in it.
    fn head_of_block(&self) -> Option<&str> {
        let mut open = Vec::new();
        for (at, character) in self.before.char_indices() {
            match character {
                '{' | '[' | '(' => open.push((at, character)),
                '}' | ']' | ')' => drop(open.pop()),
                _ => {}
            }
        }
        let (at, _) = open.pop().filter(|(_, character)| *character == '{')?;
        let has_place = self.before.ends_with(['{', ',', '}', ';']);
        let head = self.before[..at].rsplit(['{', '}', ';']).next()?;
        has_place.then_some(head)
    }

    fn is_line_of_table(&self) -> bool {
        self.ends_line && !self.before.ends_with(['=', ',', '['])
    }

    /// Tells whether a variable stands where PHP has a name, and not a value or a parameter.
    fn is_php_name(&self) -> bool {
        const BEFORE: [&str; 12] = [
            "function",
            "class",
            "interface",
            "trait",
            "enum",
            "new",
            "extends",
            "implements",
            "instanceof",
            "use",
            "namespace",
            "const",
        ];
        let last = self.before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        BEFORE.contains(&last)
            || self.before.ends_with("->")
            || self.before.ends_with("::")
            || self.before.ends_with("):")
            || self.after.starts_with('(')
            || self.after.starts_with("::")
            || self.after.starts_with('$')
    }

    fn is_ruby_constant(&self) -> bool {
        let last = self.before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let line = self.before.lines().last().unwrap_or_default().trim_start();
        matches!(last, "class" | "module")
            || self.before.ends_with("::")
            || (line.starts_with("class ") && line.ends_with('<'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_pattern_becomes_text_of_its_language() {
        for (language, text, expected) in [
            (Language::Rust, "$A.f($$$B)", "µA.f(µµµB)"),
            (Language::JavaScript, "`${x}` + $A", "`${x}` + µA"),
            (Language::Json, "{\"a\": $A, \"$B\": [$$$C]}", "{\"a\": \"µA\", \"µB\": [\"µµµC\"]}"),
            (Language::C, "if ($A) { $$$B }", "if (µA) { µµµB; }"),
            (Language::C, "f($$$A)", "f(µµµA)"),
            (Language::Rust, "match $A { $$$B }", "match µA { µµµB => µ, }"),
            (Language::Rust, "struct $A { $$$B }", "struct µA { µµµB: µ, }"),
            (Language::Rust, "fn f() { $$$B }", "fn f() { µµµB }"),
            (Language::Rust, "impl $A for $B { $$$C }", "impl µA for µB { µµµC! {} }"),
            (Language::Css, "a { $$$B }", "a { µµµB:µ; }"),
            (Language::Lua, "if $A then $$$B end", "if µA then µµµB() end"),
            (Language::Lua, "f($$$A)", "f(µµµA)"),
            (Language::Php, "function $F($$$P) { $$$B }", "function µF($µµµP) { µµµB; }"),
            (Language::Php, "$A->$B($C)", "$µA->µB($µC)"),
            (Language::Ruby, "class $A < $B; $C; end", "class ZµA < ZµB; µC; end"),
            (Language::Json, "{\"a\": [$$$A], $$$B}", "{\"a\": [\"µµµA\"], \"µµµB\": 0}"),
            (Language::Toml, "[a]\n$$$A\nb = $B", "[a]\n\"µµµA\" = 0\nb = \"µB\""),
            (Language::Java, "void $F($$$P) { $$$B }", "void µF(µµµP µ) { µµµB; }"),
            (Language::Kotlin, "fun $F($$$P) = g($$$A)", "fun µF(µµµP: µ) = g(µµµA)"),
            (Language::Scala, "def f(a: Int, $$$P): $R", "def f(a: Int, µµµP: µ): µR"),
            (Language::Swift, "func f($$$P) { g($$$A) }", "func f(µµµP: µ) { g(µµµA) }"),
            (Language::Java, "{\n$$$A\nreturn $B;\n}", "{\nµµµA;\nreturn µB;\n}"),
        ] {
            assert_eq!(readable(language, text), expected);
        }
    }
}
