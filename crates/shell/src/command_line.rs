//! The parsed command line: simple commands, their words and their redirections.
//!
//! A word is either literal, with its value after quote removal, or computed: then the cause, the literal
//! prefix and the possibility of word splitting are kept, which is all that rules may rely on.

use serde::Serialize;

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// Every simple command in the order of the text, followed by the commands that wrappers run.
    pub commands: Vec<Command>,
    /// Functions that are certainly defined when the text after them runs.
    pub functions: Vec<Function>,
    /// Byte offsets of backticks that start or end a substitution.
    pub backticks: Vec<usize>,
    /// Byte offsets of unquoted newlines that end a command, without those around the whole text.
    pub newlines: Vec<usize>,
}

/// A function that the text defines at its top level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name it is called by.
    pub name: String,
    /// The byte offset at which its definition ends.
    pub end: usize,
}

/// A simple command: one program, builtin or function with its words and redirections.
///
/// A compound command that is redirected as a whole, as in `{ ls; } > out`, adds a command that has
/// redirections only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The name and the arguments.
    pub words: Vec<Word>,
    /// Assignments before the name.
    pub assignments: Vec<Assignment>,
    /// The redirections of its descriptors.
    pub redirections: Vec<Redirection>,
    /// The byte offset at which it starts; for a wrapped command, that of its wrapper.
    pub position: usize,
    /// The origin of the command.
    pub origin: CommandOrigin,
}

/// The origin of a simple command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandOrigin {
    /// It is a command of the text itself.
    #[default]
    Written,
    /// It is an argument, or part of one, of a wrapper that runs it.
    Wrapped,
}

/// A word of a command: its value after quote removal, or the reason why that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The value that the shell passes to the command.
    pub meaning: Meaning,
    /// The word as written.
    pub source: String,
    /// The byte offset at which it starts.
    pub position: usize,
}

/// The value of a word, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Exactly this text.
    Literal(String),
    /// A value that is only known when the command runs.
    Computed {
        /// The first construct in the word that is computed.
        cause: Cause,
        /// The literal text before it.
        prefix: String,
        /// True if the value may become several words, the later of which may be anything.
        splits: bool,
    },
}

/// The construct that makes a word computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A parameter expansion, `$x` or `${x}`.
    Variable,
    /// A command substitution, `$(…)` or backticks. Its commands are listed themselves.
    Substitution,
    /// A process substitution, `<(…)` or `>(…)`, which stands for the path of a pipe.
    ProcessSubstitution,
    /// An arithmetic expansion, `$((…))`, which is always a number.
    Arithmetic,
    /// A pattern with `*`, `?` or `[…]`, which stands for the names that match it.
    Glob,
    /// A brace expansion, `{a,b}` or `{1..3}`, which stands for several words.
    Brace,
    /// A `~` at the start, which stands for a home directory.
    Tilde,
    /// A wrapper such as `xargs` or `find` inserts it.
    Input,
}

/// An assignment `NAME=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The name of the variable.
    pub name: String,
    /// The byte offset at which it starts.
    pub position: usize,
}

/// One redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// The operator.
    pub operator: Operator,
    /// The file or descriptor, or the text of a here-document or here-string.
    pub target: Option<Word>,
    /// The byte offset at which it starts.
    pub position: usize,
}

/// The operator of a redirection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `<`: opens a file for reading.
    Read,
    /// `>`, `>>`, `>|`, `&>`, `&>>`: opens a file for writing.
    Write,
    /// `<&`, `>&`: a copy of a descriptor, or for `>&` a file.
    Duplicate,
    /// `<&-`, `>&-`: closes a descriptor and has no target.
    Close,
    /// `<<`, `<<-`: the target is the text of the document, literal if its delimiter is quoted.
    HereDocument,
    /// `<<<`: the target is the word that becomes the input.
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

    /// Returns the text with which the value certainly starts; `None` if it may start with anything or
    /// become several words.
    ///
    /// `"src/$NAME"` starts with `src/`; `$NAME` and `src/$(ls)` without quotes have no known start. A rule
    /// that needs to know whether a word is an option or an absolute path asks for this.
    pub fn known_start(&self) -> Option<&str> {
        match &self.meaning {
            Meaning::Literal(text) => Some(text),
            Meaning::Computed { splits: true, .. } => None,
            // A pattern matches names below the directory in its prefix.
            Meaning::Computed { cause: Cause::Glob, prefix, .. } => Some(prefix),
            Meaning::Computed { prefix, .. } => (!prefix.is_empty()).then_some(prefix),
        }
    }

    /// Returns the text before the first computed construct, which is the whole of a literal word.
    pub(crate) fn prefix(&self) -> &str {
        match &self.meaning {
            Meaning::Literal(text) => text,
            Meaning::Computed { prefix, .. } => prefix,
        }
    }

    /// Returns whether the value may become several words.
    pub fn splits(&self) -> bool {
        matches!(self.meaning, Meaning::Computed { splits: true, .. })
    }

    /// Returns whether the word is unquoted, so that a shell would treat it as a keyword.
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
    /// Returns the name, if it is literal.
    pub fn name(&self) -> Option<&str> {
        self.words.first()?.literal()
    }

    /// Returns the words after the name.
    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Returns the words as written, shortened for a message.
    pub fn shown(&self) -> String {
        let sources: Vec<&str> = self.words.iter().map(|word| word.source.as_str()).collect();
        crate::parse_error::shortened(&sources.join(" "))
    }
}
