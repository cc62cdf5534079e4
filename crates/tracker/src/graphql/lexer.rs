//! The tokens of a GraphQL request.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// One of `! $ ( ) : = @ [ ] { } | &`.
    Mark(char),
    /// `...`
    Spread,
    Name(String),
    Number(String),
    Text(String),
}

/// Splits a request into tokens. Commas and comments are ignored. Block strings are refused, since their
/// indentation rules would have to be implemented to know their value.
pub(super) fn tokenize(text: &str) -> Result<Vec<Token>, String> {
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
                rest.strip_prefix("...").ok_or("a `.` that is not part of `...`")?
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
                    word.parse().map_err(|_| format!("{word:?} is not a number"))?;
                words.push(Token::Number(number.to_string()));
                rest
            }
            other => return Err(format!("unexpected character {other:?}")),
        };
    }
    Ok(words)
}

fn split(text: &str, inside: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !inside(c)).unwrap_or(text.len()))
}

/// Reads a string on one line. Its syntax is that of JSON.
fn quoted(text: &str) -> Result<(Token, &str), String> {
    if text.starts_with("\"\"\"") {
        return Err("block strings are not supported; use a variable, or \\n".to_owned());
    }
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            '\n' | '\r' => break,
            '"' if !escaped => {
                let (written, rest) = text.split_at(index + 1);
                let read = serde_json::from_str(written);
                let read = read.map_err(|_| format!("{written} is not a valid string"))?;
                return Ok((Token::Text(read), rest));
            }
            _ => escaped = c == '\\' && !escaped,
        }
    }
    Err("a string is not terminated".to_owned())
}
