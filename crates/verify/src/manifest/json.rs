//! JSON, and JSON with comments and trailing commas.

use serde_json::Value;

use crate::profile::ProfileProblem;

pub(crate) fn parse_json(file: &str, text: &str) -> Result<Value, ProfileProblem> {
    serde_json::from_str(text).map_err(|error| ProfileProblem {
        file: file.to_owned(),
        line: Some(error.line().max(1)),
        message: format!("invalid JSON: {}", without_position(&error)),
    })
}

/// Parses JSON with comments and trailing commas, as in `tsconfig.json` and `deno.jsonc`.
pub(crate) fn parse_jsonc(file: &str, text: &str) -> Result<Value, ProfileProblem> {
    parse_json(file, &blank(text))
}

/// Removes the position that the parser appends, because the problem has its own.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// Replaces comments and trailing commas by spaces. Strings and line feeds are kept, so that line
/// numbers of the result are those of the file.
fn blank(text: &str) -> String {
    let mut out: Vec<char> = Vec::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    // Offset of a comma that only white space has followed so far.
    let mut comma: Option<usize> = None;
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('"', _) => {
                comma = None;
                out.push(c);
                copy_string(&mut rest, &mut out);
            }
            ('/', Some('/')) => {
                out.push(' ');
                while rest.peek().is_some_and(|next| *next != '\n') {
                    rest.next();
                    out.push(' ');
                }
            }
            ('/', Some('*')) => blank_block(&mut rest, &mut out),
            (']' | '}', _) => {
                if let Some(at) = comma.take() {
                    out[at] = ' ';
                }
                out.push(c);
            }
            (',', _) => {
                comma = Some(out.len());
                out.push(c);
            }
            _ => {
                if !c.is_whitespace() {
                    comma = None;
                }
                out.push(c);
            }
        }
    }
    out.into_iter().collect()
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn copy_string(rest: &mut Chars<'_>, out: &mut Vec<char>) {
    while let Some(c) = rest.next() {
        out.push(c);
        match c {
            '\\' => out.extend(rest.next()),
            '"' => return,
            _ => {}
        }
    }
}

fn blank_block(rest: &mut Chars<'_>, out: &mut Vec<char>) {
    out.push(' ');
    rest.next();
    out.push(' ');
    let mut before = ' ';
    for c in rest.by_ref() {
        out.push(if c == '\n' { '\n' } else { ' ' });
        if before == '*' && c == '/' {
            return;
        }
        before = c;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_allowed_and_strings_are_kept() {
        let text = r#"{
            // A comment, with "quotes".
            "$schema": "https://example.org/a.json", /* one
            and more */
            "list": [1, 2, /* last */ ],
            "escaped": "a\"// no comment, ]",
        }"#;
        let expected = json!({
            "$schema": "https://example.org/a.json",
            "list": [1, 2],
            "escaped": "a\"// no comment, ]",
        });
        assert_eq!(parse_jsonc("a", text), Ok(expected));
    }

    #[test]
    fn a_problem_names_the_line_in_the_file() {
        let problem = parse_jsonc("a.jsonc", "{\n// x\n\"a\": oops\n}").unwrap_err();
        assert_eq!((problem.file.as_str(), problem.line), ("a.jsonc", Some(3)));
        assert!(!problem.message.contains("line"), "{}", problem.message);
    }

    #[test]
    fn a_comma_without_anything_before_it_is_no_trailing_comma() {
        assert!(parse_jsonc("a", "[,1]").is_err());
        assert!(parse_jsonc("a", "[1,,]").is_err());
    }
}
