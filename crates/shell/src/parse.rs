//! From text to [`CommandLine`].

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

use crate::error::{ParseError, Reason};
use crate::script::CommandLine;
use crate::translate::Translator;
use crate::wrapper;

/// Bounds the text that the grammar, which is C, is ever given.
pub const MAX_TEXT_BYTES: usize = 32 * 1024;

/// Bounds the commands of one text, those of its wrapped scripts included.
pub const MAX_COMMANDS: usize = 1000;

/// Bounds nesting, and with it the stack: groups, substitutions, `&&` chains and wrappers.
pub const MAX_NESTING: usize = 160;

/// Bounds the here-documents, of which the grammar's scanner counts no more than 255.
const MAX_HERE_DOCUMENTS: usize = 100;

/// Bounds the time of the grammar, which grows with the square of the length on some texts.
///
/// A text of the greatest length that is not built to be slow takes a tenth of it.
const MAX_GRAMMAR_TIME: Duration = Duration::from_millis(500);

/// Finds every simple command of a command line.
///
/// Commands inside substitutions, groups, loops, conditionals, functions and unquoted
/// here-documents are found, and so are those that a wrapper such as `env`, `xargs` or `sh -c`
/// runs. Whatever is not certain makes the whole text not understood.
pub fn parse(text: &str) -> Result<CommandLine, ParseError> {
    parse_nested(text, 0)
}

/// Parses text that stands `depth` wrappers below the text that was given.
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
    let (mut script, mut problem) = Translator::run(text, tree.root_node());
    wrapper::look_through(&mut script, &mut problem, depth);
    match problem {
        None => Ok(script),
        Some(problem) => Err(ParseError { found: Box::new(script), ..problem }),
    }
}

/// Refuses text on which the grammar's own tables or its time would run out.
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

/// Returns the text as the grammar is shown it: byte for byte as long, and in ASCII.
///
/// The grammar's scanner looks characters up in tables of one byte, and reads beyond them for any
/// other character. To a shell such a character is an ordinary part of a word, and so is `_`;
/// that it cannot be part of a variable's name is checked on the text itself.
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
