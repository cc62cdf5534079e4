//! Words: quote removal, and the constructs that make a word computed.

use tree_sitter::Node;

use super::{Newlines, Step, Translator};
use crate::command_line::{Cause, Meaning, Word};
use crate::parse_error::{ParseError, Reason};
use crate::quote;

#[derive(Default)]
pub(super) struct Builder {
    text: String,
    computed: Option<(Cause, String)>,
    splits: bool,
    /// The length of the text before an unquoted `{`.
    brace: Option<usize>,
}

impl Builder {
    fn compute(&mut self, cause: Cause, splits: bool) {
        self.computed.get_or_insert_with(|| (cause, self.text.clone()));
        self.splits |= splits;
    }

    fn bare(&mut self, c: char) {
        match (c, self.brace) {
            ('*' | '?' | '[', _) => self.compute(Cause::Glob, false),
            ('~', _) if self.text.is_empty() => self.compute(Cause::Tilde, false),
            ('{', None) => self.brace = Some(self.text.len()),
            (',', Some(start)) => self.brace_found(start),
            ('.', Some(start)) if self.text.ends_with('.') => self.brace_found(start),
            _ => {}
        }
        self.text.push(c);
    }

    fn brace_found(&mut self, start: usize) {
        let prefix = self.text.get(..start).unwrap_or_default().to_owned();
        // Without a common start, one of the words may be an option and another a path.
        self.splits |= prefix.is_empty();
        // A computed part inside the braces starts later than they do.
        match &self.computed {
            Some((_, earlier)) if earlier.len() < start => {}
            _ => self.computed = Some((Cause::Brace, prefix)),
        }
    }

    fn finish(self, source: &str, position: usize) -> Word {
        let meaning = match self.computed {
            None => Meaning::Literal(self.text),
            Some((cause, prefix)) => Meaning::Computed { cause, prefix, splits: self.splits },
        };
        Word { meaning, source: source.to_owned(), position }
    }
}

impl Translator<'_> {
    pub(super) fn word(&mut self, node: Node<'_>) -> Step<Word> {
        self.boundaries(node)?;
        let mut builder = Builder::default();
        self.deeper(node, |this| this.piece(node, &mut builder))?;
        Ok(builder.finish(self.source(node), node.start_byte()))
    }

    /// Verifies that a shell starts and ends the word where the grammar does.
    fn boundaries(&self, node: Node<'_>) -> Step {
        let before = self.text.get(..node.start_byte()).and_then(|text| text.chars().next_back());
        let after = self.text.get(node.end_byte()..).and_then(|text| text.chars().next());
        let ends = |c: Option<char>| c.is_none_or(|c| " \t\n;&|()<>`".contains(c));
        let continued =
            self.text.get(node.end_byte()..).is_some_and(|text| text.starts_with("\\\n"));
        if (ends(before) || before == Some('=')) && (ends(after) || continued) {
            return Ok(());
        }
        Err(ParseError::new(node.start_byte(), Reason::Spacing))
    }

    fn piece(&mut self, node: Node<'_>, builder: &mut Builder) -> Step {
        let uncertain = || ParseError::new(node.start_byte(), Reason::Quoting);
        match node.kind() {
            "concatenation" => self.concatenation(node, builder),
            "word" | "number" | "variable_name" | "test_operator" if node.child_count() == 0 => {
                self.bare(node, builder)
            }
            // The grammar builds these words from brackets and braces.
            "word" => self.bare(node, builder),
            "raw_string" => {
                builder.text.push_str(quote::single(self.source(node)).ok_or_else(uncertain)?);
                Ok(())
            }
            "ansi_c_string" => {
                builder.text.push_str(&quote::ansi_c(self.source(node)).ok_or_else(uncertain)?);
                Ok(())
            }
            "string" => self.string(node, builder),
            "translated_string" => match node.child(1) {
                Some(string) if string.kind() == "string" => self.string(string, builder),
                _ => self.unknown(node),
            },
            "$" => self.dollar(node, builder),
            "brace_expression" => {
                builder.compute(Cause::Brace, false);
                Ok(())
            }
            _ => self.expanded(node, builder, true),
        }
    }

    fn concatenation(&mut self, node: Node<'_>, builder: &mut Builder) -> Step {
        let mut end = node.start_byte();
        for child in self.children(node, Newlines::Refused)? {
            if child.start_byte() != end {
                return Err(ParseError::new(end, Reason::Spacing));
            }
            end = child.end_byte();
            self.deeper(child, |this| this.piece(child, builder))?;
        }
        Ok(())
    }

    fn dollar(&mut self, node: Node<'_>, builder: &mut Builder) -> Step {
        let next = self.text.get(node.end_byte()..).and_then(|text| text.chars().next());
        if quote::starts_expansion(next) || matches!(next, Some('"' | '\'' | '\\')) {
            return self.unknown(node);
        }
        builder.text.push('$');
        Ok(())
    }

    fn bare(&mut self, node: Node<'_>, builder: &mut Builder) -> Step {
        let mut rest = self.source(node).chars();
        while let Some(c) = rest.next() {
            match c {
                '\\' => match rest.next() {
                    Some(quoted) if quoted != '\n' => builder.text.push(quoted),
                    _ => return Err(ParseError::new(node.start_byte(), Reason::Quoting)),
                },
                '`' | '$' | '"' | '\'' | ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<'
                | '>' => {
                    return self.unknown(node);
                }
                other => builder.bare(other),
            }
        }
        Ok(())
    }

    /// Adds a double-quoted piece. The text between its expansions is taken from the source, not the tree.
    pub(super) fn string(&mut self, node: Node<'_>, builder: &mut Builder) -> Step {
        let uncertain = || ParseError::new(node.start_byte(), Reason::Quoting);
        let source = self.source(node);
        if source.len() < 2 || !source.starts_with('"') || !source.ends_with('"') {
            return Err(uncertain());
        }
        let mut position = node.start_byte() + 1;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "\"" | "string_content" | "$" => continue,
                _ if child.is_error() || child.is_missing() => return self.unknown(child),
                _ => {}
            }
            self.quoted_text(position, child.start_byte(), builder).ok_or_else(uncertain)?;
            position = child.end_byte();
            self.deeper(child, |this| this.expanded(child, builder, false))?;
        }
        self.quoted_text(position, node.end_byte() - 1, builder).ok_or_else(uncertain)
    }

    fn quoted_text(&self, start: usize, end: usize, builder: &mut Builder) -> Option<()> {
        let next = self.text.get(end..)?.chars().next();
        builder.text.push_str(&quote::double(self.text.get(start..end)?, next)?);
        Some(())
    }

    /// Adds an expansion, whose value may become several words if it is unquoted.
    fn expanded(&mut self, node: Node<'_>, builder: &mut Builder, bare: bool) -> Step {
        let (cause, splits) = match node.kind() {
            "simple_expansion" | "expansion" => {
                (Cause::Variable, bare || self.source(node).contains('@'))
            }
            "command_substitution" => (Cause::Substitution, bare),
            "process_substitution" if bare => (Cause::ProcessSubstitution, false),
            "arithmetic_expansion" => (Cause::Arithmetic, false),
            _ => return self.unknown(node),
        };
        builder.compute(cause, splits);
        self.quoted_expansions += usize::from(!bare);
        let result = self.expression(node, Newlines::Blank);
        self.quoted_expansions -= usize::from(!bare);
        result
    }
}
