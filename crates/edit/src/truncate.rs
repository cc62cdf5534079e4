//! Truncation of long lines, with a marker that counts the characters left out.

/// Appends at most `limit` characters of `text`, followed by a marker such as
/// `… [3 more characters]` if there are more. Returns true if the text was truncated.
pub(crate) fn push_truncated(shown: &mut String, text: &str, limit: usize) -> bool {
    // Text has at least as many bytes as characters, so most lines are never counted.
    let end = if text.len() <= limit { None } else { text.char_indices().nth(limit) };
    let Some((end, _)) = end else {
        shown.push_str(text);
        return false;
    };
    shown.push_str(&text[..end]);
    shown.push_str(&marker(text[end..].chars().count()));
    true
}

fn marker(left_out: usize) -> String {
    let noun = if left_out == 1 { "character" } else { "characters" };
    format!("… [{left_out} more {noun}]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn characters_are_counted_rather_than_bytes() {
        let cases = [
            ("", ""),
            ("äöü", "äöü"),
            ("äöüß", "äöü… [1 more character]"),
            ("abcdef", "abc… [3 more characters]"),
        ];
        for (text, want) in cases {
            let mut shown = String::new();
            assert_eq!((push_truncated(&mut shown, text, 3), shown.as_str()), (text != want, want));
        }
    }
}
