//! The parser: from text to [`CommandLine`].
//!
//! The text goes through three stages. The grammar (tree-sitter's bash, which is C) makes a syntax tree;
//! [`translate`](crate::translate) turns the tree into commands and verifies it byte by byte against the
//! text; [`wrapper`] adds the commands that commands such as `env`, `xargs` or `sh -c` run.
//!
//! The parser is conservative. A construct whose meaning is not certain is an error, because a misread
//! construct could hide a command from a preset. The error carries the commands that were found
//! nevertheless, for presets that only look for known commands.
//!
//! The input is hostile, so everything is bounded before the grammar sees it: length, nesting, pipes and
//! here-documents, and then the time of the grammar, which is quadratic on some texts. Characters outside
//! ASCII are replaced for the grammar only, since its scanner indexes tables of one byte with them.
//!
//! ```text
//! cd src && env X=1 rm -rf "$DIR"/x   ->   cd src
//!                                          env X=1 rm -rf "$DIR"/x
//!                                          rm -rf "$DIR"/x          (wrapped; the last word is computed)
//! $CMD --help                         ->   error: the command `$CMD` is only known when it runs
//! ```

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

use crate::command_line::CommandLine;
use crate::parse_error::{ParseError, Reason};
use crate::translate::Translator;
use crate::wrapper;

/// The longest command line. Bounds the input of the grammar, which is C.
pub const MAX_TEXT_BYTES: usize = 32 * 1024;

/// The most commands of one text, wrapped ones included.
pub const MAX_COMMANDS: usize = 1000;

/// The deepest nesting of groups, substitutions, `&&` chains and wrappers. Bounds the stack.
pub const MAX_NESTING: usize = 160;

/// The most here-documents of one text. The grammar's scanner counts them in one byte.
const MAX_HERE_DOCUMENTS: usize = 100;

/// The longest time of the grammar, which grows with the square of the length on some texts. An ordinary
/// text of the greatest length takes a tenth of it.
const MAX_GRAMMAR_TIME: Duration = Duration::from_millis(500);

/// Finds every simple command of a command line.
///
/// Commands inside substitutions, groups, loops, conditionals, functions and unquoted here-documents are
/// found, and so are commands that a wrapper such as `env`, `xargs` or `sh -c` runs. A construct whose
/// meaning is not certain is an error for the whole text.
pub fn parse(text: &str) -> Result<CommandLine, ParseError> {
    parse_nested(text, 0)
}

/// Parses text that is nested in `depth` wrappers.
pub(crate) fn parse_nested(text: &str, depth: usize) -> Result<CommandLine, ParseError> {
    if text.len() > MAX_TEXT_BYTES {
        let reason = Reason::TooLong { limit: MAX_TEXT_BYTES };
        return Err(ParseError::new(MAX_TEXT_BYTES, reason));
    }
    if let Some(position) = text.find('\0') {
        return Err(ParseError::new(position, Reason::Nul));
    }
    bounded(text)?;
    let tree = grammar(text)?;
    let (mut line, mut problem) = Translator::run(text, tree.root_node());
    wrapper::look_through(&mut line, &mut problem, depth);
    match problem {
        None => Ok(line),
        Some(problem) => Err(ParseError { partial: Box::new(line), ..problem }),
    }
}

/// Rejects text that would exhaust the tables or the time of the grammar.
fn bounded(text: &str) -> Result<(), ParseError> {
    let mut depth: usize = 0;
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(ParseError::new(position, Reason::TooDeep { limit: MAX_NESTING }));
        }
    }
    // An unfinished pipeline costs the grammar the square of its length at once.
    if let Some((position, _)) = text.match_indices('|').nth(MAX_COMMANDS) {
        let reason = Reason::TooManyCommands { limit: MAX_COMMANDS };
        return Err(ParseError::new(position, reason));
    }
    let mut documents = text.match_indices("<<");
    documents
        .nth(MAX_HERE_DOCUMENTS)
        .map_or(Ok(()), |(position, _)| Err(ParseError::new(position, Reason::TooHard)))
}

/// Replaces every byte outside ASCII by `_`, which keeps all positions.
///
/// The grammar's scanner indexes tables of one byte and reads beyond them for other characters. To a shell
/// such a character is an ordinary part of a word, as `_` is. It cannot be part of a variable's name, which
/// is checked on the original text.
fn in_ascii(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| if byte.is_ascii() { byte } else { b'_' }).collect()
}

fn grammar(text: &str) -> Result<Tree, ParseError> {
    let too_hard = || ParseError::new(0, Reason::TooHard);
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).map_err(|_| too_hard())?;
    let start = Instant::now();
    let mut watch = |_: &ParseState| {
        let late = start.elapsed() > MAX_GRAMMAR_TIME;
        if late { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut watch);
    let bytes = in_ascii(text);
    let mut read = |offset: usize, _| bytes.get(offset..).unwrap_or_default();
    parser.parse_with_options(&mut read, None, Some(options)).ok_or_else(too_hard)
}
