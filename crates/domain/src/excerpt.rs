//! Excerpts of foreign text for messages, logs and tables.
//!
//! A value from a file, a command line or a client may be megabytes long and may hold control characters. A
//! message repeats a bounded part of it, counted in characters, and marks with `…` that the rest is missing.

/// Returns the first `max_chars` characters, with `…` if there are more.
pub fn shortened(text: &str, max_chars: usize) -> String {
    let (head, mark) = split(text, max_chars);
    format!("{head}{mark}")
}

/// Does as [`shortened`] in quotes, with quotes and control characters escaped. The mark follows the quotes, so
/// that it is not taken for a part of the text.
pub fn quoted(text: &str, max_chars: usize) -> String {
    let (head, mark) = split(text, max_chars);
    format!("{head:?}{mark}")
}

/// Does as [`shortened`] on one line: control characters are escaped, and nothing else is.
pub fn one_line(text: &str, max_chars: usize) -> String {
    let (head, mark) = split(text, max_chars);
    let mut shown = String::with_capacity(head.len() + mark.len());
    for c in head.chars() {
        if c.is_control() {
            shown.extend(c.escape_debug());
        } else {
            shown.push(c);
        }
    }
    shown + mark
}

fn split(text: &str, max_chars: usize) -> (&str, &'static str) {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => (&text[..end], "…"),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters_and_marked() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äöü…");
        assert_eq!(shortened("", 0), "");
        assert_eq!(shortened("a", 0), "…");
    }

    #[test]
    fn quotes_and_control_characters_are_escaped() {
        assert_eq!(quoted("a\"b\n", 3), "\"a\\\"b\"…");
        assert_eq!(quoted("ab", 3), "\"ab\"");
        assert_eq!(one_line("a\"\n\u{1b}[0m", 4), "a\"\\n\\u{1b}…");
    }
}
