//! One-line summaries of agents' texts.

/// The length of a summary in characters.
const MAX_CHARS: usize = 140;

/// Returns a text as one line of at most [`MAX_CHARS`] characters, without control characters and escape
/// sequences.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    let mut left = MAX_CHARS;
    for word in plain(text).split_whitespace() {
        let length = word.chars().count() + usize::from(!line.is_empty());
        if length > left {
            let fits = left.saturating_sub(usize::from(!line.is_empty()) + 1);
            if fits > 0 && !line.is_empty() {
                line.push(' ');
            }
            line.extend(word.chars().take(fits));
            line.push('…');
            return line;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        left -= length;
    }
    line
}

/// Removes control characters and escape sequences. Reads only as much as a summary can show.
fn plain(text: &str) -> String {
    let mut characters = text.chars().take(MAX_CHARS * 8).peekable();
    let mut plain = String::new();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' if characters.next_if_eq(&'[').is_some() => {
                // A CSI sequence ends with a byte from `@` to `~`.
                while characters.next_if(|next| !('@'..='~').contains(next)).is_some() {}
                characters.next();
            }
            '\n' | '\t' | '\r' => plain.push(' '),
            _ if character.is_control() => {}
            _ => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_text_becomes_one_plain_line() {
        assert_eq!(one_line("\u{1b}[1;31mred\u{1b}[0m\n\n and\tplain\u{7}\u{0}"), "red and plain");
        assert_eq!(one_line(""), "");
    }

    #[test]
    fn a_long_text_is_cut_where_a_character_ends() {
        for text in ["ä".repeat(500), "wort ".repeat(100), "ab ".repeat(45) + &"ö".repeat(100)] {
            let line = one_line(&text);
            assert!(line.chars().count() <= MAX_CHARS, "{line}");
            assert!(line.ends_with('…'), "{line}");
        }
        let fits = "x".repeat(MAX_CHARS);
        assert_eq!(one_line(&fits), fits);
    }
}
