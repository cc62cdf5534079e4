//! Removal of terminal control sequences from output.
//!
//! Colours, titles and cursor movements cost an agent tokens and tell it nothing. The text before a bare
//! carriage return is kept as a line of its own, because a progress bar still shows progress.

/// The state of the parser, as ECMA-48 defines sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SequenceState {
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

#[derive(Debug, Default)]
struct ControlStripper {
    state: SequenceState,
    after_return: bool,
    clean: String,
}

/// Removes control sequences from a text. An unfinished sequence at its end is dropped.
pub(crate) fn strip_control(text: &str) -> String {
    let mut stripper = ControlStripper::default();
    text.chars().for_each(|character| stripper.take(character));
    if stripper.after_return {
        stripper.clean.push('\n');
    }
    stripper.clean
}

impl ControlStripper {
    fn take(&mut self, character: char) {
        match self.state {
            SequenceState::Text => self.text(character),
            SequenceState::Escape => self.state = after_escape(character),
            SequenceState::Charset => self.state = SequenceState::Text,
            SequenceState::Control => match character {
                '\u{40}'..='\u{7e}' => self.state = SequenceState::Text,
                '\u{20}'..='\u{3f}' => {}
                // A byte that no sequence contains ends it, and is text.
                other => {
                    self.state = SequenceState::Text;
                    self.text(other);
                }
            },
            SequenceState::String => match character {
                '\u{07}' | '\u{9c}' => self.state = SequenceState::Text,
                '\u{1b}' => self.state = SequenceState::StringEscape,
                _ => {}
            },
            SequenceState::StringEscape => {
                self.state = match character {
                    '\\' => SequenceState::Text,
                    '\u{1b}' => SequenceState::StringEscape,
                    _ => SequenceState::String,
                }
            }
        }
    }

    fn text(&mut self, character: char) {
        if std::mem::take(&mut self.after_return) {
            self.clean.push('\n');
            if character == '\n' {
                return;
            }
        }
        match character {
            '\n' | '\t' => self.clean.push(character),
            '\r' => self.after_return = true,
            '\u{1b}' => self.state = SequenceState::Escape,
            '\u{9b}' => self.state = SequenceState::Control,
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.state = SequenceState::String,
            other if other.is_control() => {}
            other => self.clean.push(other),
        }
    }
}

fn after_escape(character: char) -> SequenceState {
    match character {
        '[' => SequenceState::Control,
        ']' | 'P' | 'X' | '^' | '_' => SequenceState::String,
        '(' | ')' | '*' | '+' | '-' | '.' | '/' | '#' | '%' | ' ' => SequenceState::Charset,
        '\u{1b}' => SequenceState::Escape,
        _ => SequenceState::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn control_sequences_are_removed_and_text_is_kept() {
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
            assert_eq!(strip_control(text), clean, "{text:?}");
        }
    }
}
