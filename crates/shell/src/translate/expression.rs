//! Expressions in which words are not arguments: expansions, arithmetic, tests and patterns. Their values do
//! not matter, but the commands inside their substitutions do.

use tree_sitter::Node;

use super::word::Builder;
use super::{Newlines, Step, Translator, lists};
use crate::command_line::Command;
use crate::parse_error::{ParseError, Reason};
use crate::quote;

/// Kinds of nodes whose children are expressions themselves.
const TRANSPARENT: &str = "simple_expansion arithmetic_expansion translated_string subscript \
                           concatenation unary_expression binary_expression ternary_expression \
                           postfix_expression parenthesized_expression brace_expression \
                           variable_assignment array";

impl Translator<'_> {
    pub(super) fn expression(&mut self, node: Node<'_>, newlines: Newlines) -> Step {
        self.deeper(node, |this| this.expression_inside(node, newlines))
    }

    pub(super) fn expression_children(&mut self, node: Node<'_>, newlines: Newlines) -> Step {
        for child in self.children(node, newlines)? {
            self.expression(child, newlines)?;
        }
        Ok(())
    }

    fn expression_inside(&mut self, node: Node<'_>, newlines: Newlines) -> Step {
        match node.kind() {
            "command_substitution" => self.substitution(node),
            "process_substitution" => self.outside_quotes(|this| this.block(node)),
            "string" => self.string(node, &mut Builder::default()),
            "expansion" => {
                self.expansions += 1;
                let result = self.expression_children(node, newlines);
                self.expansions -= 1;
                result
            }
            kind if lists(TRANSPARENT, kind) => self.expression_children(node, newlines),
            _ if node.child_count() == 0 => self.leaf(node),
            "word" => self.leaf(node),
            _ => self.unknown(node),
        }
    }

    fn substitution(&mut self, node: Node<'_>) -> Step {
        let source = self.source(node);
        if source.starts_with("$(") {
            return self.outside_quotes(|this| this.substituted(node));
        }
        self.line.backticks.extend([node.start_byte(), node.end_byte() - 1]);
        // A shell removes one level of backslashes first, and so parses another text.
        if source.contains('\\') || self.quoted_expansions > 0 {
            return Err(ParseError::new(node.start_byte(), Reason::Quoting));
        }
        self.outside_quotes(|this| this.substituted(node))
    }

    fn substituted(&mut self, node: Node<'_>) -> Step {
        for child in self.children(node, Newlines::Separate)? {
            match child.kind() {
                "`" => {}
                "file_redirect" => {
                    let position = child.start_byte();
                    let mut command = Command { position, ..Command::default() };
                    self.redirect(child, &mut command)?;
                    self.finish(command)?;
                }
                _ => self.statement(child)?,
            }
        }
        Ok(())
    }

    /// Runs a step on the commands of a substitution, whose quoting is independent of the outer one.
    fn outside_quotes(&mut self, step: impl FnOnce(&mut Self) -> Step) -> Step {
        let outer = (self.expansions, self.quoted_expansions);
        (self.expansions, self.quoted_expansions) = (0, 0);
        let result = step(self);
        (self.expansions, self.quoted_expansions) = outer;
        result
    }

    /// Verifies that a leaf is literal text to a shell.
    fn leaf(&self, node: Node<'_>) -> Step {
        let source = self.source(node);
        let plain = match node.kind() {
            // Inside `"${…}"` single quotes do not quote.
            "raw_string" | "ansi_c_string" if self.quoted_expansions > 0 => false,
            "raw_string" => {
                let inner = quote::single(source);
                inner.is_some_and(|text| {
                    self.expansions == 0 || !text.contains(['}', '{', '$', '`'])
                })
            }
            "ansi_c_string" => self.expansions == 0 && quote::ansi_c(source).is_some(),
            _ if !node.is_named() => true,
            _ if self.expansions > 0 => {
                !source.contains(['\'', '"', '\\', '`', '$', '(', ')', '{', '}', '<', '>'])
            }
            _ => {
                let starts = ["$(", "${", "<(", ">(", "`"];
                !starts.iter().any(|start| source.contains(start))
                    && !source.contains([' ', '\t', '\n', ';', '&', '\'', '"'])
            }
        };
        if plain { Ok(()) } else { Err(ParseError::new(node.start_byte(), Reason::Quoting)) }
    }
}
