//! Translates the grammar's tree at once into a [`CommandLine`].
//!
//! The tree is not trusted. Its node kinds are listed, and any other is not understood; and every
//! byte of the text has to be accounted for: between two nodes there may be blanks, and newlines
//! where a shell ends a command with them, and nothing else.

mod expression;
mod heredoc;
mod redirect;
mod simple;
mod statement;
mod word;

use tree_sitter::Node;

use crate::error::{ParseError, Reason, shortened};
use crate::parse::{MAX_COMMANDS, MAX_NESTING};
use crate::script::{Command, CommandLine};

/// A step of the translation, which ends at the first place that is not certain.
type Step<T = ()> = Result<T, ParseError>;

/// Whether a shell reads on after a newline at a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Newlines {
    /// They end or separate commands.
    Separate,
    /// They are white space.
    Blank,
    /// They would end the command in its middle.
    Refused,
}

/// The state of one translation.
pub(crate) struct Translator<'text> {
    text: &'text str,
    script: CommandLine,
    problem: Option<ParseError>,
    depth: usize,
    /// How many `${…}` are open, and how many of them stand in double quotes.
    expansions: usize,
    quoted_expansions: usize,
}

impl<'text> Translator<'text> {
    /// Translates a whole text; the first problem does not stop the search for commands.
    pub(crate) fn run(text: &'text str, root: Node<'_>) -> (CommandLine, Option<ParseError>) {
        let mut translator = Self {
            text,
            script: CommandLine::default(),
            problem: None,
            depth: 0,
            expansions: 0,
            quoted_expansions: 0,
        };
        if let Err(problem) = translator.program(root) {
            translator.note(problem);
        }
        let Self { mut script, problem, .. } = translator;
        script.commands.sort_by_key(|command| command.position);
        script.newlines.sort_unstable();
        script.backticks.sort_unstable();
        (script, problem)
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
        if self.script.commands.len() >= MAX_COMMANDS {
            let reason = Reason::TooManyCommands { limit: MAX_COMMANDS };
            return Err(ParseError::new(command.position, reason));
        }
        self.script.commands.push(command);
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

    /// Returns the children of a node without comments, after looking at what lies between them.
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
        // A continuation that touches text on both sides joins it, which the grammar does not see.
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
            self.script.newlines.push(position);
        }
    }

    /// Makes sure that a shell sees a comment where the grammar does.
    fn comment(&self, node: Node<'_>) -> Step {
        let before = self.text.get(..node.start_byte()).and_then(|text| text.chars().next_back());
        match before {
            None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | '(') => Ok(()),
            Some(_) => self.unknown(node),
        }
    }
}
