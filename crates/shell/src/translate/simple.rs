//! Simple commands: names, arguments, assignments, declarations and tests.

use tree_sitter::Node;

use super::{Newlines, Step, Translator, lists};
use crate::command_line::{Assignment, Command, Word};
use crate::parse_error::{ParseError, Reason, shortened};

/// Keywords of a shell. One in the position of a command name means that the grammar read the text
/// differently than a shell does.
const RESERVED: [&str; 19] = [
    "!", "{", "}", "]]", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function",
    "if", "in", "select", "then", "until", "while",
];

/// Kinds of nodes that are arguments of `[`.
const OPERANDS: &str = "word number string raw_string ansi_c_string concatenation simple_expansion \
                        expansion command_substitution arithmetic_expansion";

impl Translator<'_> {
    /// Translates a simple command, without the redirections that follow it.
    pub(super) fn simple(&mut self, node: Node<'_>) -> Step<Command> {
        let mut command = Command { position: node.start_byte(), ..Command::default() };
        match node.kind() {
            "command" => self.plain(node, &mut command)?,
            "variable_assignment" => command.assignments.push(self.assignment(node)?),
            "variable_assignments" => {
                for child in self.children(node, Newlines::Refused)? {
                    command.assignments.push(self.assignment(child)?);
                }
            }
            "declaration_command" | "unset_command" => self.declaration(node, &mut command)?,
            "test_command" => self.test(node, &mut command)?,
            _ => return self.unknown(node),
        }
        check(&command)?;
        Ok(command)
    }

    /// Adds a command after its last redirection, which may have added words.
    pub(super) fn finish(&mut self, mut command: Command) -> Step {
        command.words.sort_by_key(|word| word.position);
        check(&command)?;
        self.push(command)
    }

    fn plain(&mut self, node: Node<'_>, command: &mut Command) -> Step {
        for child in self.children(node, Newlines::Refused)? {
            match child.kind() {
                "variable_assignment" if command.words.is_empty() => {
                    command.assignments.push(self.assignment(child)?);
                }
                "file_redirect" | "herestring_redirect" => self.redirect(child, command)?,
                // The grammar has a node of its own for `[[ … ]]`.
                "command_name" if self.source(child) == "[[" => return self.unknown(child),
                "command_name" => {
                    for part in self.children(child, Newlines::Refused)? {
                        command.words.push(self.word(part)?);
                    }
                }
                // `time` is a keyword, and may stand before a group.
                "subshell" if command.name() == Some("time") => self.statement(child)?,
                "=~" | "==" => command.words.push(self.token(child)),
                _ => command.words.push(self.word(child)?),
            }
        }
        command.words.sort_by_key(|word| word.position);
        Ok(())
    }

    fn token(&self, node: Node<'_>) -> Word {
        Word::new_literal(self.source(node), node.start_byte())
    }

    fn declaration(&mut self, node: Node<'_>, command: &mut Command) -> Step {
        for child in self.children(node, Newlines::Refused)? {
            match child.kind() {
                "declare" | "typeset" | "export" | "readonly" | "local" | "unset" | "unsetenv" => {
                    command.words.push(self.token(child));
                }
                "variable_assignment" => {
                    command.assignments.push(self.assignment(child)?);
                    command.words.push(self.token(child));
                }
                _ => command.words.push(self.word(child)?),
            }
        }
        Ok(())
    }

    fn assignment(&mut self, node: Node<'_>) -> Step<Assignment> {
        let mut name = String::new();
        for child in self.children(node, Newlines::Refused)? {
            match child.kind() {
                "variable_name" if name.is_empty() => self.source(child).clone_into(&mut name),
                "subscript" if name.is_empty() => {
                    let source = self.source(child);
                    source.split('[').next().unwrap_or_default().clone_into(&mut name);
                    self.expression(child, Newlines::Refused)?;
                }
                "=" | "+=" => {}
                "array" => self.array(child)?,
                _ => drop(self.word(child)?),
            }
        }
        if !is_name(&name) {
            return self.unknown(node);
        }
        Ok(Assignment { name, position: node.start_byte() })
    }

    fn array(&mut self, node: Node<'_>) -> Step {
        for child in self.children(node, Newlines::Blank)? {
            match child.kind() {
                "(" | ")" => {}
                _ => drop(self.word(child)?),
            }
        }
        Ok(())
    }

    fn test(&mut self, node: Node<'_>, command: &mut Command) -> Step {
        let children = self.children(node, Newlines::Refused)?;
        let Some((open, rest)) = children.split_first() else { return self.unknown(node) };
        command.words.push(self.token(*open));
        for child in rest {
            match (open.kind(), child.kind()) {
                ("[", "]") | ("[[", "]]") => {}
                // A shell reads `[ … ]` as a command with arguments, where an operator ends it.
                ("[", _) => self.bracket(*child)?,
                _ => self.expression(*child, Newlines::Refused)?,
            }
        }
        Ok(())
    }

    fn bracket(&mut self, node: Node<'_>) -> Step {
        match node.kind() {
            "unary_expression" | "binary_expression" => self.deeper(node, |this| {
                for child in this.children(node, Newlines::Refused)? {
                    this.bracket(child)?;
                }
                Ok(())
            }),
            "=" | "==" | "!=" | "!" | "test_operator" => Ok(()),
            kind if lists(OPERANDS, kind) => self.word(node).map(drop),
            _ => self.unknown(node),
        }
    }
}

/// Verifies that a shell takes the first word for the name of a command.
fn check(command: &Command) -> Step {
    let Some(first) = command.words.first() else { return Ok(()) };
    let reserved = first.is_bare() && RESERVED.contains(&first.source.as_str());
    if reserved || looks_like_assignment(&first.source) {
        let near = shortened(&first.source);
        return Err(ParseError::new(first.position, Reason::Syntax { near }));
    }
    Ok(())
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn looks_like_assignment(source: &str) -> bool {
    source.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        is_name(name.split('[').next().unwrap_or_default())
    })
}
