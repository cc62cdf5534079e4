//! The translation of the grammar's syntax tree into a [`CommandLine`].
//!
//! The grammar is not bash: it recovers from errors and accepts texts that a shell reads differently, and
//! such a difference could hide a command. So the tree is not trusted. Its node kinds are listed, and any
//! other kind is an error. Every byte of the text has to be accounted for: between two nodes there may be
//! blanks, and newlines where a shell ends a command with them, and nothing else. The boundaries of words,
//! quotes, comments and here-documents are verified on the source text by the rules of a shell.
//!
//! A statement that is not understood does not stop the translation: the first problem is noted and the
//! rest is still searched for commands.

mod expression;
mod heredoc;
mod redirect;
mod simple;
mod statement;
mod word;

use tree_sitter::Node;

use crate::command_line::{Command, CommandLine};
use crate::parse::{MAX_COMMANDS, MAX_NESTING};
use crate::parse_error::{ParseError, Reason, shortened};

/// The result of a translation step, which ends at the first construct that is not certain.
type Step<T = ()> = Result<T, ParseError>;

/// The meaning of a newline between two nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Newlines {
    /// They end or separate commands.
    Separate,
    /// They are white space.
    Blank,
    /// They would end the command in its middle.
    Refused,
}

pub(crate) struct Translator<'text> {
    text: &'text str,
    line: CommandLine,
    problem: Option<ParseError>,
    depth: usize,
    /// Open `${…}` expansions, and those of them inside double quotes.
    expansions: usize,
    quoted_expansions: usize,
}

/// Returns whether a kind of node is a word of a list.
fn lists(kinds: &str, kind: &str) -> bool {
    kinds.split(' ').any(|listed| listed == kind)
}

impl<'text> Translator<'text> {
    /// Translates a whole text. Returns the commands even if there is a problem.
    pub(crate) fn run(text: &'text str, root: Node<'_>) -> (CommandLine, Option<ParseError>) {
        let mut translator = Self {
            text,
            line: CommandLine::default(),
            problem: None,
            depth: 0,
            expansions: 0,
            quoted_expansions: 0,
        };
        if let Err(problem) = translator.program(root) {
            translator.note(problem);
        }
        let Self { mut line, problem, .. } = translator;
        line.commands.sort_by_key(|command| command.position);
        line.newlines.sort_unstable();
        line.backticks.sort_unstable();
        (line, problem)
    }

    fn note(&mut self, problem: ParseError) {
        if self.problem.as_ref().is_none_or(|first| problem.position < first.position) {
            self.problem = Some(problem);
        }
    }

    fn source(&self, node: Node<'_>) -> &'text str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn unknown<T>(&self, node: Node<'_>) -> Step<T> {
        let near = shortened(self.source(node));
        Err(ParseError::new(node.start_byte(), Reason::Syntax { near }))
    }

    fn push(&mut self, command: Command) -> Step {
        if self.line.commands.len() >= MAX_COMMANDS {
            let reason = Reason::TooManyCommands { limit: MAX_COMMANDS };
            return Err(ParseError::new(command.position, reason));
        }
        self.line.commands.push(command);
        Ok(())
    }

    fn deeper<T>(&mut self, node: Node<'_>, step: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        if self.depth >= MAX_NESTING {
            let reason = Reason::TooDeep { limit: MAX_NESTING };
            return Err(ParseError::new(node.start_byte(), reason));
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// Returns the children of a node without comments, after checking the gaps between them.
    fn children<'tree>(&mut self, node: Node<'tree>, newlines: Newlines) -> Step<Vec<Node<'tree>>> {
        let mut children = Vec::new();
        let mut cursor = node.walk();
        let mut end = node.start_byte();
        for child in node.children(&mut cursor) {
            if child.is_error() || child.is_missing() {
                return self.unknown(child);
            }
            self.gap(end, child.start_byte(), newlines)?;
            end = child.end_byte().max(end);
            match child.kind() {
                "comment" => self.comment(child)?,
                _ => children.push(child),
            }
        }
        self.gap(end, node.end_byte(), newlines)?;
        Ok(children)
    }

    fn gap(&mut self, start: usize, end: usize, newlines: Newlines) -> Step {
        let spacing = || ParseError::new(start, Reason::Spacing);
        let gap = if start < end { self.text.get(start..end).ok_or_else(spacing)? } else { "" };
        // A line continuation between two texts joins them, which the grammar does not do.
        let rest = gap.replace("\\\n", "");
        let joined = rest.len() < gap.len() && rest.is_empty();
        let newline = gap.replace("\\\n", "  ").find('\n');
        let refused = newline.is_some() && newlines == Newlines::Refused;
        if joined || refused || !rest.chars().all(|c| matches!(c, ' ' | '\t' | '\n')) {
            return Err(spacing());
        }
        if let (Some(at), Newlines::Separate) = (newline, newlines) {
            self.newline(start + at);
        }
        Ok(())
    }

    fn newline(&mut self, position: usize) {
        let blank = |side: &str| side.chars().all(|c| matches!(c, ' ' | '\t' | '\n'));
        let (before, after) = self.text.split_at(position);
        if !blank(before) && !blank(after) {
            self.line.newlines.push(position);
        }
    }

    /// Verifies that a shell starts a comment where the grammar does.
    fn comment(&self, node: Node<'_>) -> Step {
        let before = self.text.get(..node.start_byte()).and_then(|text| text.chars().next_back());
        match before {
            None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | '(') => Ok(()),
            Some(_) => self.unknown(node),
        }
    }
}
