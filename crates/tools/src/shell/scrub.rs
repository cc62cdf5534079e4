//! Takes terminal control out of what commands print.
//!
//! Colours, titles and cursor movements tell an agent nothing and cost it much. The text of a bare
//! carriage return is kept on a line of its own, as progress bars are still news.

/// Where in an escape sequence the text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// In a control sequence, up to its final byte.
    Control,
    /// In a string, up to BEL or ESC `\`.
    String,
    /// In a string, after an ESC.
    StringEscape,
    /// After the first byte of a character set.
    Charset,
}

/// Takes control sequences out of text that arrives in pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scrubber {
    inside: Inside,
    after_return: bool,
}

/// Takes control sequences out of a whole text.
pub(crate) fn scrubbed(text: &str) -> String {
    let mut scrubber = Scrubber::default();
    let mut clean = scrubber.push(text);
    clean.push_str(scrubber.finish());
    clean
}

impl Scrubber {
    /// Takes the next piece.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        for character in text.chars() {
            self.take(character, &mut clean);
        }
        clean
    }

    /// Ends the text. What was begun and not finished is left out.
    pub(crate) fn finish(&mut self) -> &'static str {
        self.inside = Inside::Text;
        if std::mem::take(&mut self.after_return) { "\n" } else { "" }
    }

    fn take(&mut self, character: char, clean: &mut String) {
        match self.inside {
            Inside::Text => self.text(character, clean),
            Inside::Escape => self.inside = after_escape(character),
            Inside::Charset => self.inside = Inside::Text,
            Inside::Control => match character {
                '\u{40}'..='\u{7e}' => self.inside = Inside::Text,
                '\u{20}'..='\u{3f}' => {}
                // Not a sequence after all; what broke it off is text.
                other => {
                    self.inside = Inside::Text;
                    self.text(other, clean);
                }
            },
            Inside::String => match character {
                '\u{07}' | '\u{9c}' => self.inside = Inside::Text,
                '\u{1b}' => self.inside = Inside::StringEscape,
                _ => {}
            },
            Inside::StringEscape => {
                self.inside = match character {
                    '\\' => Inside::Text,
                    '\u{1b}' => Inside::StringEscape,
                    _ => Inside::String,
                }
            }
        }
    }

    fn text(&mut self, character: char, clean: &mut String) {
        if std::mem::take(&mut self.after_return) {
            clean.push('\n');
            if character == '\n' {
                return;
            }
        }
        match character {
            '\n' | '\t' => clean.push(character),
            '\r' => self.after_return = true,
            '\u{1b}' => self.inside = Inside::Escape,
            '\u{9b}' => self.inside = Inside::Control,
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.inside = Inside::String,
            other if other.is_control() => {}
            other => clean.push(other),
        }
    }
}

fn after_escape(character: char) -> Inside {
    match character {
        '[' => Inside::Control,
        ']' | 'P' | 'X' | '^' | '_' => Inside::String,
        '(' | ')' | '*' | '+' | '-' | '.' | '/' | '#' | '%' | ' ' => Inside::Charset,
        '\u{1b}' => Inside::Escape,
        _ => Inside::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn control_is_taken_out_and_text_is_kept() {
        let cases = [
            ("\u{1b}[2J\u{1b}[3J\u{1b}[Hdone", "done"),
            ("\u{1b}[32m✓\u{1b}[0m ok", "✓ ok"),
            ("a\u{1b}]52;c;aGk=\u{07}b", "ab"),
            ("a\u{1b}]0;title\u{1b}\\b", "ab"),
            ("a\0b\u{07}\tc\n", "ab\tc\n"),
            ("10%\r20%\r30%", "10%\n20%\n30%"),
            ("a\r\nb", "a\nb"),
            ("\u{1b}[1\nkept", "\nkept"),
            ("\u{1b}(Bx", "x"),
            ("é 入 ü", "é 入 ü"),
            ("end\r", "end\n"),
            ("cut \u{1b}[3", "cut "),
        ];
        for (text, clean) in cases {
            assert_eq!(scrubbed(text), clean, "{text:?}");
            // The same, however it is cut.
            let mut scrubber = Scrubber::default();
            let mut pieces: String =
                text.chars().map(|one| scrubber.push(&one.to_string())).collect();
            pieces.push_str(scrubber.finish());
            assert_eq!(pieces, clean, "{text:?} in pieces");
        }
    }
}
