//! Errors of the parser.

use crate::command_line::CommandLine;

/// A construct of a command line whose meaning is not certain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not understood at byte {position}: {reason}")]
pub struct ParseError {
    /// The byte offset of the construct.
    pub position: usize,
    /// The reason.
    pub reason: Reason,
    /// The commands that were found nevertheless; there may be others.
    pub partial: Box<CommandLine>,
}

/// The reason why a construct is not understood. The message of a refusal repeats it.
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
    /// The grammar ran out of time or has too many here-documents. Ordinary text is far below both bounds.
    #[error("it is too ambiguous to parse")]
    TooHard,
    /// A NUL byte, which no argument can contain.
    #[error("a NUL byte")]
    Nul,
    /// Invalid shell syntax, or a construct that the translation does not list. Constructs are listed one by
    /// one, because the grammar accepts more than a shell and groups some texts differently.
    #[error("the syntax is not known here: `{near}`")]
    Syntax {
        /// The text of the construct, shortened.
        near: String,
    },
    /// White space that a shell and the grammar may read differently, such as a line continuation inside a
    /// word or a form feed between two.
    #[error("unusual white space or a line continuation inside a word")]
    Spacing,
    /// Quoting that a shell and the grammar may read differently, such as a quote that ends earlier for a
    /// shell, or backslashes inside backticks.
    #[error("quoting that is not certain")]
    Quoting,
    /// The name of a command is computed, as in `$CMD x`, so no rule about names can be applied.
    #[error("the command `{source_text}` is only known when it runs")]
    ComputedCommand {
        /// The word as written.
        source_text: String,
    },
    /// A wrapper runs a command that is computed or read from its input, as in `sh -c "$X"` or `curl x | sh`.
    #[error("what `{wrapper}` runs is not written out")]
    ComputedWrapped {
        /// The wrapper.
        wrapper: String,
    },
    /// A wrapper has an option that is not listed, so its command cannot be found.
    #[error("`{wrapper}` has an option that is not known here: `{option}`")]
    WrapperOption {
        /// The wrapper.
        wrapper: String,
        /// The option as written.
        option: String,
    },
}

impl ParseError {
    pub(crate) fn new(position: usize, reason: Reason) -> Self {
        Self { position, reason, partial: Box::default() }
    }
}

/// The most characters of a hostile text that a message repeats.
const MAX_SHOWN: usize = 120;

/// Returns text on one line, with control characters escaped, shortened.
pub(crate) fn shortened(text: &str) -> String {
    carrel_domain::excerpt::one_line(text, MAX_SHOWN)
}
