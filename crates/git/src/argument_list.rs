//! Arguments as a caller gives them: one string or a list.
//!
//! A string is split at blanks. Quotes and backslashes work as in a POSIX shell; nothing is expanded, so
//! `$HOME`, `*.rs`, `;` and `$(id)` stay as they are. Models write `-m "fix the parser"` more reliably
//! than a JSON list, and no shell ever sees it.

use carrel_domain::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bounds the arguments of one call. Linux refuses a single argument of this size (`MAX_ARG_STRLEN`).
const MAX_BYTES: usize = 128 * 1024;

/// Arguments of git: one string, split like a shell command line without expansion, or a list of
/// strings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
pub enum ArgumentList {
    /// One string: `-m "fix the parser" -- src`.
    Line(String),
    /// The arguments: `["-m", "fix the parser", "--", "src"]`.
    Words(Vec<String>),
}

impl ArgumentList {
    /// Returns the arguments. A quote that is not closed, a NUL byte and more than 128 KiB are refused.
    pub fn into_words(self) -> Result<Vec<String>, Failure> {
        let words = match self {
            Self::Line(line) => split(&line)?,
            Self::Words(words) => words,
        };
        let refused = |what: &str| Err(Failure::argument("args", format!("args: {what}")));
        if words.iter().map(String::len).sum::<usize>() > MAX_BYTES {
            refused("more than 128 KiB of arguments")
        } else if words.iter().any(|word| word.contains('\0')) {
            refused("a NUL byte")
        } else {
            Ok(words)
        }
    }
}

fn split(line: &str) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = line.char_indices();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            (None, ' ' | '\t' | '\n' | '\r') => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some((at, character));
                word.get_or_insert_default();
            }
            (Some((_, open)), close) if open == close => quote = None,
            (Some((at, '"')), '\\') => match characters.next() {
                None => return Err(unclosed(line, at)),
                Some((_, '\n')) => {}
                Some((_, escaped @ ('"' | '\\' | '$' | '`'))) => {
                    word.get_or_insert_default().push(escaped);
                }
                Some((_, other)) => word.get_or_insert_default().extend(['\\', other]),
            },
            (None, '\\') => match characters.next() {
                None => {
                    let message = "args: a backslash at the end escapes nothing";
                    return Err(Failure::argument("args", message));
                }
                // A line continuation.
                Some((_, '\n')) => {}
                Some((_, escaped)) => word.get_or_insert_default().push(escaped),
            },
            (_, character) => word.get_or_insert_default().push(character),
        }
    }
    if let Some((at, _)) = quote {
        return Err(unclosed(line, at));
    }
    words.extend(word);
    Ok(words)
}

fn unclosed(line: &str, at: usize) -> Failure {
    let begin: String = line[at..].chars().take(20).collect();
    let message = format!("args: the quote at byte {at} is not closed: {begin}");
    Failure::argument("args", message).with("position", at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[derive(JsonSchema)]
    struct Holder {
        #[expect(dead_code, reason = "for its schema")]
        args: Option<ArgumentList>,
    }

    fn words(line: &str) -> Result<Vec<String>, String> {
        ArgumentList::Line(line.to_owned()).into_words().map_err(|failure| failure.message)
    }

    #[test]
    fn a_string_is_split_like_a_shell_command_and_not_expanded() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("  -A \t\n --  src  ", &["-A", "--", "src"]),
            ("-m 'fix; mount'", &["-m", "fix; mount"]),
            ("-m \"two\nlines\"", &["-m", "two\nlines"]),
            ("--format='%H|%s' -5", &["--format=%H|%s", "-5"]),
            (r#""a \"b\" \$c \d""#, &[r#"a "b" $c \d"#]),
            (r"a\ b \'c", &["a b", "'c"]),
            ("a\\\nb", &["ab"]),
            ("'' \"\"", &["", ""]),
            (
                "$HOME *.rs ~ $(id) `id` ; & | #x",
                &["$HOME", "*.rs", "~", "$(id)", "`id`", ";", "&", "|", "#x"],
            ),
            ("a'b'\"c\"", &["abc"]),
        ];
        for (line, expected) in cases {
            assert_eq!(words(line).unwrap(), *expected, "{line}");
        }
    }

    #[test]
    fn an_open_quote_is_an_error() {
        assert_eq!(words("-m 'x").unwrap_err(), "args: the quote at byte 3 is not closed: 'x");
        assert_eq!(
            words("-m \"x\\").unwrap_err(),
            "args: the quote at byte 3 is not closed: \"x\\"
        );
        assert_eq!(words("a\\").unwrap_err(), "args: a backslash at the end escapes nothing");
        assert_eq!(words("a\0b").unwrap_err(), "args: a NUL byte");
    }

    #[test]
    fn a_list_is_taken_as_it_is_and_the_schema_allows_both() {
        let given = ArgumentList::Words(vec!["-m".into(), "a 'b".into()]);
        assert_eq!(given.into_words().unwrap(), ["-m", "a 'b"]);
        let schema = json!(schemars::schema_for!(Holder)).to_string();
        assert!(schema.contains("\"string\"") && schema.contains("\"array\""), "{schema}");
        let wrong = serde_json::from_value::<ArgumentList>(json!(7)).unwrap_err().to_string();
        assert_eq!(wrong, "expected a string or a list of strings");
    }
}
