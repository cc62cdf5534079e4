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
    let mut bytes = text.as_bytes().to_vec();
    // Offset of a comma that only white space and comments have followed so far.
    let mut comma: Option<usize> = None;
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'/')) => at = blank_comment(&mut bytes, at, b"\n"),
            (b'/', Some(b'*')) => at = blank_comment(&mut bytes, at, b"*/"),
            (b'"', _) => {
                comma = None;
                at = string_end(&bytes, at);
            }
            (byte, _) => {
                match byte {
                    b',' => comma = Some(at),
                    b']' | b'}' => {
                        if let Some(comma) = comma.take() {
                            bytes[comma] = b' ';
                        }
                    }
                    _ if byte.is_ascii_whitespace() => {}
                    _ => comma = None,
                }
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the offset after the string that starts at an offset.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Replaces the comment that starts at an offset by spaces, and returns the offset after it.
fn blank_comment(bytes: &mut [u8], start: usize, end: &[u8]) -> usize {
    let inner = start + 2;
    let length = bytes[inner..].windows(end.len()).position(|window| window == end);
    let after = length.map_or(bytes.len(), |length| inner + length + end.len());
    for byte in bytes[start..after].iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
    after
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
