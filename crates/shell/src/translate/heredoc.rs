//! Here-documents: their delimiters are verified on the source, and the substitutions of unquoted ones are
//! translated.

use tree_sitter::Node;

use super::{Newlines, Step, Translator, lists};
use crate::command_line::{Cause, Command, Meaning, Operator, Redirection, Word};
use crate::parse_error::{ParseError, Reason};

impl Translator<'_> {
    pub(super) fn here_document(&mut self, node: Node<'_>, command: &mut Command) -> Step {
        let mut start = None;
        let mut body = None;
        for child in self.children(node, Newlines::Separate)? {
            match child.kind() {
                "<<" | "<<-" | "file_descriptor" | "heredoc_end" | "&&" | "||" | "\n" => {}
                "heredoc_start" => start = Some(child),
                "heredoc_body" => body = Some(child),
                "file_redirect" | "herestring_redirect" => self.redirect(child, command)?,
                kind if lists(STATEMENTS, kind) => self.statement(child)?,
                _ => command.words.push(self.word(child)?),
            }
        }
        let (Some(start), Some(body)) = (start, body) else { return self.unknown(node) };
        let quoted = self.delimiter(node, start, body)?;
        let text = self.source(body);
        let meaning = if quoted || !self.body_expands(body)? {
            Meaning::Literal(text.to_owned())
        } else {
            Meaning::Computed { cause: Cause::Variable, prefix: String::new(), splits: false }
        };
        let target = Word { meaning, source: String::new(), position: body.start_byte() };
        let operator = Operator::HereDocument;
        let position = node.start_byte();
        command.redirections.push(Redirection { operator, target: Some(target), position });
        Ok(())
    }

    /// Verifies that a shell starts and ends the body where the grammar does. Returns whether the delimiter is
    /// quoted, which makes the body literal.
    fn delimiter(&self, node: Node<'_>, start: Node<'_>, body: Node<'_>) -> Step<bool> {
        let source = self.source(start);
        let inner = ['\'', '"']
            .iter()
            .find_map(|quote| source.strip_prefix(*quote)?.strip_suffix(*quote))
            .or_else(|| source.strip_prefix('\\'));
        let delimiter = inner.unwrap_or(source);
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        let line = self.text.get(start.end_byte()..).unwrap_or_default();
        let line = line.split('\n').next().unwrap_or_default();
        let single = !line.contains("<<");
        let first = start.end_byte() + line.len() + 1;
        // The grammar leaves out the tabs that `<<-` removes.
        let indent = self.text.get(first..body.start_byte());
        let starts_here = indent.is_some_and(|indent| indent.bytes().all(|b| b == b'\t'));
        let ends_here = self.ends_at_delimiter(node, body, delimiter);
        let certain = !delimiter.is_empty() && delimiter.bytes().all(plain);
        if certain && single && starts_here && ends_here {
            Ok(inner.is_some())
        } else {
            self.unknown(start)
        }
    }

    fn ends_at_delimiter(&self, node: Node<'_>, body: Node<'_>, delimiter: &str) -> bool {
        let strips = self.source(node).trim_start_matches(|c: char| c.is_ascii_digit());
        let strips = strips.starts_with("<<-");
        let line_of =
            |line: &str| if strips { line.trim_start_matches('\t') } else { line } == delimiter;
        let after = self.text.get(body.start_byte()..).unwrap_or_default();
        let mut position = body.start_byte();
        for line in after.split('\n') {
            if line_of(line) {
                // The node ends with the delimiter, and the body before its line.
                return position + line.len() == node.end_byte()
                    && body.end_byte() <= position + line.len();
            }
            position += line.len() + 1;
        }
        false
    }

    /// Translates the substitutions of an unquoted body. Returns whether there are any expansions.
    fn body_expands(&mut self, body: Node<'_>) -> Step<bool> {
        let mut expands = false;
        let mut position = body.start_byte();
        let mut cursor = body.walk();
        for child in body.children(&mut cursor) {
            if child.kind() == "heredoc_content" {
                continue;
            }
            expands = true;
            self.inert(position, child.start_byte())?;
            position = child.end_byte();
            self.expression(child, Newlines::Blank)?;
        }
        self.inert(position, body.end_byte())?;
        Ok(expands)
    }

    /// Verifies that the text between two expansions of a body contains no expansion.
    fn inert(&mut self, start: usize, end: usize) -> Step {
        let text = self.text.get(start..end.max(start)).unwrap_or_default();
        let mut escaped = false;
        for (offset, c) in text.char_indices() {
            let rest = text.get(offset + 1..).unwrap_or_default();
            // A shell joins continued lines before it searches for expansions and the delimiter.
            if c == '\n' && escaped {
                return Err(ParseError::new(start + offset, Reason::Spacing));
            }
            let active = c == '`' || c == '$' && rest.starts_with(['(', '{', '[']);
            if active && !escaped {
                if c == '`' {
                    self.line.backticks.push(start + offset);
                }
                return Err(ParseError::new(start + offset, Reason::Quoting));
            }
            escaped = c == '\\' && !escaped;
        }
        Ok(())
    }
}

const STATEMENTS: &str = "command pipeline list redirected_statement subshell \
                          compound_statement if_statement while_statement for_statement \
                          case_statement negated_command test_command variable_assignment \
                          declaration_command";
