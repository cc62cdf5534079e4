//! A command line in the shape that policy works on.

use serde::Serialize;

/// A command line that was understood as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// Every simple command, in the order of the text; those found by looking through a wrapper follow at the end.
    pub commands: Vec<Command>,
    /// Functions that are certainly defined once the text after them runs.
    pub functions: Vec<Function>,
    /// Where backticks start or end a substitution.
    pub backticks: Vec<usize>,
    /// Where a newline that is not quoted ends a command; those around the whole text do not count.
    pub newlines: Vec<usize>,
}

/// A function that the text defines at its top level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name it is called by.
    pub name: String,
    /// Where its definition ends.
    pub end: usize,
}

/// One simple command: what a shell starts as one program, builtin or function.
///
/// A compound command that is redirected as a whole, as in `{ ls; } > out`, adds a
/// command that has redirections only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The name and the arguments.
    pub words: Vec<Word>,
    /// Assignments before the name.
    pub assignments: Vec<Assignment>,
    /// Where its descriptors go.
    pub redirections: Vec<Redirection>,
    /// The byte at which it starts; for a wrapped command, at which its wrapper shows it.
    pub position: usize,
    /// How it was found.
    pub origin: CommandOrigin,
}

/// How a simple command was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandOrigin {
    /// It stands in the text.
    #[default]
    Written,
    /// It is an argument, or part of one, of another command that runs it.
    Wrapped,
}

/// A word of a command after quote removal, or why its value is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// What the shell passes on.
    pub meaning: Meaning,
    /// The word as it was written.
    pub source: String,
    /// The byte at which it starts.
    pub position: usize,
}

/// What a word stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Exactly this text.
    Literal(String),
    /// A value that only running the command would tell.
    Computed {
        /// What makes it so; the first cause in the word.
        cause: Cause,
        /// The literal text before that.
        prefix: String,
        /// Whether the value may become several words, of which the later ones may be anything.
        splits: bool,
    },
}

/// Why a word is not literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// `$x`, `${x}`.
    Variable,
    /// `$(…)` or backticks.
    Substitution,
    /// `<(…)`, `>(…)`.
    ProcessSubstitution,
    /// `$((…))`.
    Arithmetic,
    /// `*`, `?`, `[…]`.
    Glob,
    /// `{a,b}`, `{1..3}`.
    Brace,
    /// `~` at the start.
    Tilde,
    /// Another program fills it in, as `xargs` and `find` do.
    Input,
}

/// An assignment `NAME=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// The byte at which it starts.
    pub position: usize,
}

/// One redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// What kind.
    pub operator: Operator,
    /// The file or descriptor, or the text of a here-document or here-string.
    pub target: Option<Word>,
    /// The byte at which it starts.
    pub position: usize,
}

/// The kinds of redirection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `<`.
    Read,
    /// `>`, `>>`, `>|`, `&>`, `&>>`.
    Write,
    /// `<&`, `>&`: a copy of a descriptor, or for `>&` a file.
    Duplicate,
    /// `<&-`, `>&-`.
    Close,
    /// `<<`, `<<-`.
    HereDocument,
    /// `<<<`.
    HereString,
}

impl Word {
    /// Returns the text of a literal word.
    pub fn literal(&self) -> Option<&str> {
        match &self.meaning {
            Meaning::Literal(text) => Some(text),
            Meaning::Computed { .. } => None,
        }
    }

    /// Returns text that the value certainly starts with and that tells what it is: `None` when
    /// the value may start with anything, or may become further words.
    pub fn known_start(&self) -> Option<&str> {
        match &self.meaning {
            Meaning::Literal(text) => Some(text),
            Meaning::Computed { splits: true, .. } => None,
            // A pattern matches names below the directory it starts in.
            Meaning::Computed { cause: Cause::Glob, prefix, .. } => Some(prefix),
            Meaning::Computed { prefix, .. } => (!prefix.is_empty()).then_some(prefix),
        }
    }

    /// Tells whether the value may become several words.
    pub fn splits(&self) -> bool {
        matches!(self.meaning, Meaning::Computed { splits: true, .. })
    }

    /// Tells whether a shell would still see the word as one of its own keywords.
    pub(crate) fn is_bare(&self) -> bool {
        self.literal() == Some(&self.source)
    }

    pub(crate) fn new_literal(text: &str, position: usize) -> Self {
        Self { meaning: Meaning::Literal(text.to_owned()), source: text.to_owned(), position }
    }

    pub(crate) fn input(prefix: &str, splits: bool, source: &str, position: usize) -> Self {
        let meaning = Meaning::Computed { cause: Cause::Input, prefix: prefix.to_owned(), splits };
        Self { meaning, source: source.to_owned(), position }
    }
}

impl Command {
    /// Returns the name, when it is literal.
    pub fn name(&self) -> Option<&str> {
        self.words.first()?.literal()
    }

    /// Returns the words after the name.
    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Returns the words as they were written, cut to a length that fits into a message.
    pub fn shown(&self) -> String {
        let sources: Vec<&str> = self.words.iter().map(|word| word.source.as_str()).collect();
        crate::error::shortened(&sources.join(" "))
    }
}
