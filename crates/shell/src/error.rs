//! Why a command line was not understood.

use crate::script::CommandLine;

/// A place in a command line whose meaning is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not understood at byte {position}: {reason}")]
pub struct ParseError {
    /// The byte at which the place starts.
    pub position: usize,
    /// What stands in the way.
    pub reason: Reason,
    /// What was found all the same; there may be other commands.
    pub found: Box<CommandLine>,
}

/// What stands in the way of understanding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The text is longer than the limit.
    #[error("the text has more than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The text holds more commands than the limit.
    #[error("there are more than {limit} commands")]
    TooManyCommands {
        /// The limit.
        limit: usize,
    },
    /// The text is nested more deeply than the limit.
    #[error("it is nested more than {limit} levels deep")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The text takes too long to parse.
    #[error("it is too ambiguous to parse")]
    TooHard,
    /// A character that no command line holds.
    #[error("a NUL byte")]
    Nul,
    /// It is no valid shell, or the grammar does not know it.
    #[error("the syntax is not known here: `{near}`")]
    Syntax {
        /// The text at that place, shortened.
        near: String,
    },
    /// Text between words that shells and grammars read differently.
    #[error("unusual white space or a line continuation inside a word")]
    Spacing,
    /// Quotes that shells and grammars read differently.
    #[error("quoting that is not certain")]
    Quoting,
    /// The name of a command is computed.
    #[error("the command `{source_text}` is only known when it runs")]
    ComputedCommand {
        /// The word as written.
        source_text: String,
    },
    /// A command runs another one that is not written out.
    #[error("what `{wrapper}` runs is not written out")]
    ComputedWrapped {
        /// The command that runs the other.
        wrapper: String,
    },
    /// An option of a command that runs another one.
    #[error("`{wrapper}` has an option that is not known here: `{option}`")]
    WrapperOption {
        /// The command that runs the other.
        wrapper: String,
        /// The option as written.
        option: String,
    },
}

impl ParseError {
    pub(crate) fn new(position: usize, reason: Reason) -> Self {
        Self { position, reason, found: Box::default() }
    }
}

/// Bounds how much of a hostile text is repeated in a message.
const MAX_SHOWN: usize = 120;

/// Returns text on one line, shortened.
pub(crate) fn shortened(text: &str) -> String {
    let escape = |c: char| {
        if c.is_control() { c.escape_debug().collect() } else { c.to_string() }
    };
    let mut shown: String = text.chars().take(MAX_SHOWN).map(escape).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
