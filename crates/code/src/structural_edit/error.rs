//! Errors of structural edits. The text is unchanged after each of them.

use super::MAX_FRAGMENT_BYTES;
use super::target::TargetError;
use super::validation::Escape;
use crate::language::Language;
use crate::symbol::SymbolKind;
use crate::syntax::SyntaxError;

/// The reason for the refusal of an edit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The symbol is not there, or not the only one of its name.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The result has no syntax tree.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The operation is for functions.
    #[error("{path} is a {kind}, not a function or method; replace the whole symbol instead")]
    NotCallable {
        /// The symbol.
        path: String,
        /// Its kind.
        kind: SymbolKind,
    },
    /// A declaration, such as a prototype, an abstract method or a function that is implemented in assembly.
    #[error(
        "{path} at line {line} is a declaration without a body; replace the whole symbol to give it one"
    )]
    NoBody {
        /// The symbol.
        path: String,
        /// Its line.
        line: usize,
    },
    /// The language has no functions.
    #[error("{language} has no functions; replace, insert or delete whole symbols instead")]
    NoFunctions {
        /// The language.
        language: Language,
    },
    /// The head of the function was not understood, so that its place is a guess.
    #[error(
        "parse error: the file has a syntax error at line {line}, inside {path}; correct it by a text edit first"
    )]
    Broken {
        /// The symbol.
        path: String,
        /// The line of the error.
        line: usize,
    },
    /// A part of a conditional of the preprocessor is in the range, and its other part is not.
    #[error(
        "line {line} and below have one end of an `#if` and not the other; change them by a text edit"
    )]
    Conditional {
        /// The first line of the range.
        line: usize,
    },
    /// The new text is blank.
    #[error("the new text is empty; delete the symbol instead")]
    EmptyFragment,
    /// The new text is too long.
    #[error("the new text has {bytes} bytes; at most {MAX_FRAGMENT_BYTES} are inserted at once")]
    FragmentTooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The inserted text defines no method of the type.
    #[error("the new text defines no method of {receiver}; insert it beside a symbol instead")]
    NotAMethod {
        /// The type.
        receiver: String,
    },
    /// The result has more syntax errors than the text had.
    #[error("replacement did not parse: {0}")]
    DidNotParse(ParseFailure),
    /// The new text changed the meaning of what is around it.
    #[error("replacement does not stay in its place: {0}")]
    Escapes(Escape),
    /// The new text is the old one.
    #[error("nothing would change: the new text is the same as the old")]
    NoChange,
}

/// The first place in a result that was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the result: `{excerpt}`")]
pub struct ParseFailure {
    /// The line in the result, counted from 1.
    pub line: usize,
    /// That line without its indentation, shortened.
    pub excerpt: String,
}
