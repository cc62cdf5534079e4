//! Long lines, shown in part.

/// Appends text, and no more than `limit` characters of it.
///
/// What is left out is counted in a marker. Returns whether anything was.
pub(crate) fn push_cut(shown: &mut String, text: &str, limit: usize) -> bool {
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
            assert_eq!((push_cut(&mut shown, text, 3), shown.as_str()), (text != want, want));
        }
    }
}
