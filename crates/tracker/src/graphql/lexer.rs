//! The words of a question in GraphQL.

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// One of `! $ ( ) : = @ [ ] { } | &`.
    Mark(char),
    /// `...`
    Spread,
    Name(String),
    /// As it is written.
    Number(String),
    Text(String),
}

/// Takes a question apart into words. Commas and comments mean nothing.
pub(super) fn words(text: &str) -> Result<Vec<Token>, String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            ' ' | '\t' | '\n' | '\r' | ',' => &rest[1..],
            '#' => rest.find(['\n', '\r']).map_or("", |end| &rest[end..]),
            '!' | '$' | '(' | ')' | ':' | '=' | '@' | '[' | ']' | '{' | '}' | '|' | '&' => {
                words.push(Token::Mark(first));
                &rest[1..]
            }
            '.' => {
                words.push(Token::Spread);
                rest.strip_prefix("...").ok_or("a `.` stands alone")?
            }
            '"' => {
                let (token, rest) = quoted(rest)?;
                words.push(token);
                rest
            }
            'A'..='Z' | 'a'..='z' | '_' => {
                let (word, rest) = split(rest, |c| c.is_ascii_alphanumeric() || c == '_');
                words.push(Token::Name(word.to_owned()));
                rest
            }
            '-' | '0'..='9' => {
                let (word, rest) = split(rest, |c| c.is_ascii_alphanumeric() || "+-._".contains(c));
                let number: serde_json::Number =
                    word.parse().map_err(|_| format!("{word:?} is no number"))?;
                words.push(Token::Number(number.to_string()));
                rest
            }
            other => return Err(format!("{other:?} means nothing here")),
        };
    }
    Ok(words)
}

fn split(text: &str, inside: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !inside(c)).unwrap_or(text.len()))
}

/// Reads a text on one line. It is written as in JSON.
fn quoted(text: &str) -> Result<(Token, &str), String> {
    if text.starts_with("\"\"\"") {
        return Err("texts in three quotes are not taken; use a variable, or \\n".to_owned());
    }
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            '\n' | '\r' => break,
            '"' if !escaped => {
                let (written, rest) = text.split_at(index + 1);
                let read = serde_json::from_str(written);
                return Ok((Token::Text(read.map_err(|_| format!("{written} is no text"))?), rest));
            }
            _ => escaped = c == '\\' && !escaped,
        }
    }
    Err("a text has no end".to_owned())
}
