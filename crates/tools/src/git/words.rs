//! Arguments given as one text, or as words.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::failure::Failure;

/// A longer text is no list of arguments.
const MAX_BYTES: usize = 128 * 1024;

/// Arguments of git: one text, which is split as a shell would but without expanding anything, or the
/// words themselves.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
pub(crate) enum Arguments {
    /// One text: `-m "fix the parser" -- src`.
    Line(String),
    /// The words: `["-m", "fix the parser", "--", "src"]`.
    Words(Vec<String>),
}

impl Arguments {
    /// Returns the words.
    pub(crate) fn words(self) -> Result<Vec<String>, Failure> {
        let words = match self {
            Self::Line(line) => split(&line)?,
            Self::Words(words) => words,
        };
        let refused = |what: &str| Err(Failure::argument("args", format!("args: {what}")));
        match () {
            () if words.iter().map(String::len).sum::<usize>() > MAX_BYTES => {
                refused("more than 128 KiB of arguments")
            }
            () if words.iter().any(|word| word.contains('\0')) => refused("a NUL byte"),
            () => Ok(words),
        }
    }
}

/// Splits a text at blanks. Quotes and backslashes keep text together as in a shell; `$`, `*`, `;`
/// and all else stand for themselves.
fn split(line: &str) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let quoted = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        None => return Err(unclosed(line, at)),
                        Some((_, '\'')) => break,
                        Some((_, character)) => quoted.push(character),
                    }
                }
            }
            '"' => {
                let quoted = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        None => return Err(unclosed(line, at)),
                        Some((_, '"')) => break,
                        Some((_, '\\')) => match characters.next() {
                            None => return Err(unclosed(line, at)),
                            Some((_, '\n')) => {}
                            Some((_, escaped @ ('"' | '\\' | '$' | '`'))) => quoted.push(escaped),
                            Some((_, other)) => quoted.extend(['\\', other]),
                        },
                        Some((_, character)) => quoted.push(character),
                    }
                }
            }
            '\\' => match characters.next() {
                None => {
                    let message = "args: a backslash at the end escapes nothing";
                    return Err(Failure::argument("args", message));
                }
                // A line that goes on.
                Some((_, '\n')) => {}
                Some((_, escaped)) => word.get_or_insert_default().push(escaped),
            },
            character => word.get_or_insert_default().push(character),
        }
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
    use crate::arguments::schema_of;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[derive(JsonSchema)]
    struct Holder {
        #[expect(dead_code, reason = "for its schema")]
        args: Option<Arguments>,
    }

    fn words(line: &str) -> Result<Vec<String>, String> {
        Arguments::Line(line.to_owned()).words().map_err(|failure| failure.message)
    }

    #[test]
    fn text_is_split_as_a_shell_would_and_nothing_is_expanded() {
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
    fn what_does_not_end_is_an_error() {
        assert_eq!(words("-m 'x").unwrap_err(), "args: the quote at byte 3 is not closed: 'x");
        assert_eq!(
            words("-m \"x\\").unwrap_err(),
            "args: the quote at byte 3 is not closed: \"x\\"
        );
        assert_eq!(words("a\\").unwrap_err(), "args: a backslash at the end escapes nothing");
        assert_eq!(words("a\0b").unwrap_err(), "args: a NUL byte");
    }

    #[test]
    fn words_can_be_given_as_they_are_and_the_schema_says_so() {
        let given = Arguments::Words(vec!["-m".into(), "a 'b".into()]);
        assert_eq!(given.words().unwrap(), ["-m", "a 'b"]);
        let schema = json!(schema_of::<Holder>()["properties"]["args"]).to_string();
        assert!(schema.contains("\"string\"") && schema.contains("\"array\""), "{schema}");
        let wrong = serde_json::from_value::<Arguments>(json!(7)).unwrap_err().to_string();
        assert_eq!(wrong, "expected a string or a list of strings");
    }
}
