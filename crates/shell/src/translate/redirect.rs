//! Redirections of files, here-strings and here-documents.

use tree_sitter::Node;

use super::{Newlines, Step, Translator};
use crate::command_line::{Command, Operator, Redirection};

impl Translator<'_> {
    pub(super) fn redirect(&mut self, node: Node<'_>, command: &mut Command) -> Step {
        match node.kind() {
            "file_redirect" => self.file_redirect(node, command),
            "herestring_redirect" => self.here_string(node, command),
            "heredoc_redirect" => self.here_document(node, command),
            _ => self.unknown(node),
        }
    }

    fn file_redirect(&mut self, node: Node<'_>, command: &mut Command) -> Step {
        let mut operator = None;
        let mut words = Vec::new();
        for child in self.children(node, Newlines::Refused)? {
            match child.kind() {
                "file_descriptor" => {}
                "<" => operator = Some(Operator::Read),
                ">" | ">>" | ">|" | "&>" | "&>>" => operator = Some(Operator::Write),
                "<&" | ">&" => operator = Some(Operator::Duplicate),
                "<&-" | ">&-" => operator = Some(Operator::Close),
                _ => words.push(self.word(child)?),
            }
        }
        let Some(operator) = operator else { return self.unknown(node) };
        let mut words = words.into_iter();
        let target = if operator == Operator::Close { None } else { words.next() };
        command.redirections.push(Redirection { operator, target, position: node.start_byte() });
        // The grammar takes every word that follows; a shell gives all but one to the command.
        command.words.extend(words);
        Ok(())
    }

    fn here_string(&mut self, node: Node<'_>, command: &mut Command) -> Step {
        for child in self.children(node, Newlines::Refused)? {
            match child.kind() {
                "file_descriptor" | "<<<" => {}
                _ => {
                    let target = Some(self.word(child)?);
                    let operator = Operator::HereString;
                    let position = node.start_byte();
                    command.redirections.push(Redirection { operator, target, position });
                }
            }
        }
        Ok(())
    }
}
