//! Lists, pipelines and compound commands.

use tree_sitter::Node;

use super::{Newlines, Step, Translator, lists};
use crate::command_line::{Command, Function};

impl Translator<'_> {
    /// Translates the root, and records the functions that are certainly defined.
    pub(super) fn program(&mut self, root: Node<'_>) -> Step {
        if root.kind() != "program" {
            return self.unknown(root);
        }
        // The root starts at its first node; the text before and after it must be white space.
        self.gap(0, root.start_byte(), Newlines::Separate)?;
        self.gap(root.end_byte(), self.text.len(), Newlines::Separate)?;
        let children = self.children(root, Newlines::Separate)?;
        for (index, child) in children.iter().enumerate() {
            let sent_away = children.get(index + 1).is_some_and(|next| next.kind() == "&");
            self.part(*child);
            if child.kind() == "function_definition" && !sent_away {
                self.define(*child);
            }
        }
        Ok(())
    }

    fn define(&mut self, node: Node<'_>) {
        if let Some(name) = node.child_by_field_name("name") {
            let name = self.source(name).to_owned();
            self.line.functions.push(Function { name, end: node.end_byte() });
        }
    }

    /// Translates one part of a list; a problem is noted and does not stop the translation of the next.
    fn part(&mut self, node: Node<'_>) {
        if let Err(problem) = self.statement(node) {
            self.note(problem);
        }
    }

    pub(super) fn block(&mut self, node: Node<'_>) -> Step {
        for child in self.children(node, Newlines::Separate)? {
            self.part(child);
        }
        Ok(())
    }

    pub(super) fn statement(&mut self, node: Node<'_>) -> Step {
        self.deeper(node, |this| this.statement_inside(node))
    }

    fn statement_inside(&mut self, node: Node<'_>) -> Step {
        match node.kind() {
            kind if lists(SIMPLE, kind) => {
                let command = self.simple(node)?;
                self.push(command)
            }
            "redirected_statement" => self.redirected(node),
            "list" | "pipeline" | "negated_command" | "subshell" | "do_group" | "if_statement"
            | "elif_clause" | "else_clause" | "while_statement" => self.block(node),
            "compound_statement" => self.compound(node),
            "for_statement" => self.for_words(node),
            "c_style_for_statement" => self.for_arithmetic(node),
            "case_statement" => self.case(node),
            "function_definition" => self.function(node),
            "&&" | "||" | "|" | "|&" | "!" | "(" | ")" | "{" | "}" | ";" | "&" | "do" | "done"
            | "if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "$(" | "<(" | ">(" => {
                Ok(())
            }
            "\n" => {
                self.newline(node.start_byte());
                Ok(())
            }
            _ => self.unknown(node),
        }
    }

    fn compound(&mut self, node: Node<'_>) -> Step {
        match node.child(0).map(|child| child.kind()) {
            Some("{") => self.block(node),
            Some("((") => self.expression_children(node, Newlines::Blank),
            _ => self.unknown(node),
        }
    }

    fn for_words(&mut self, node: Node<'_>) -> Step {
        for child in self.children(node, Newlines::Separate)? {
            match child.kind() {
                "for" | "select" | "in" | ";" | "variable_name" => {}
                "do_group" => self.statement(child)?,
                _ => drop(self.word(child)?),
            }
        }
        Ok(())
    }

    fn for_arithmetic(&mut self, node: Node<'_>) -> Step {
        for child in self.children(node, Newlines::Separate)? {
            match child.kind() {
                "for" | "((" | "))" | ";" => {}
                "do_group" | "compound_statement" => self.statement(child)?,
                _ => self.expression(child, Newlines::Blank)?,
            }
        }
        Ok(())
    }

    fn case(&mut self, node: Node<'_>) -> Step {
        for child in self.children(node, Newlines::Separate)? {
            match child.kind() {
                "case" | "in" | "esac" => {}
                "case_item" => self.case_item(child)?,
                _ => drop(self.word(child)?),
            }
        }
        Ok(())
    }

    fn case_item(&mut self, node: Node<'_>) -> Step {
        let mut pattern = true;
        for child in self.children(node, Newlines::Separate)? {
            match child.kind() {
                ")" if pattern => pattern = false,
                "(" | "|" if pattern => {}
                _ if pattern => self.expression(child, Newlines::Refused)?,
                ";;" | ";&" | ";;&" => {}
                _ => self.part(child),
            }
        }
        Ok(())
    }

    fn function(&mut self, node: Node<'_>) -> Step {
        let mut redirections = Command { position: node.start_byte(), ..Command::default() };
        for child in self.children(node, Newlines::Separate)? {
            match child.kind() {
                "function" | "(" | ")" => {}
                "word" => drop(self.word(child)?),
                "file_redirect" | "herestring_redirect" => {
                    self.redirect(child, &mut redirections)?;
                }
                _ => self.statement(child)?,
            }
        }
        self.finish_group(redirections, node)
    }

    fn redirected(&mut self, node: Node<'_>) -> Step {
        let mut command = Command { position: node.start_byte(), ..Command::default() };
        let mut group = false;
        for child in self.children(node, Newlines::Refused)? {
            match child.kind() {
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                    self.redirect(child, &mut command)?;
                }
                kind if lists(SIMPLE, kind) => command = self.simple(child)?,
                _ => {
                    group = true;
                    self.statement(child)?;
                }
            }
        }
        if group { self.finish_group(command, node) } else { self.finish(command) }
    }

    /// Adds the redirections of a compound command, which has no words of its own.
    fn finish_group(&mut self, command: Command, node: Node<'_>) -> Step {
        match (command.words.is_empty(), command.redirections.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => self.push(command),
            (false, _) => self.unknown(node),
        }
    }
}

const SIMPLE: &str = "command variable_assignment variable_assignments declaration_command \
                      unset_command test_command";
