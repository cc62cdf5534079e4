//! Parsing of shell command lines, and presets that allow or refuse them.
//!
//! [`parse`] finds every simple command of a command line with a real shell grammar, also inside
//! substitutions, groups, here-documents and wrappers that run other commands. [`judge`] applies a
//! [`Preset`] to the commands and returns a [`Verdict`]: the refused command, the rule, and what would pass
//! instead. [`arguments::check`] checks the path-like arguments of a program that is started without a
//! shell.
//!
//! This is not a security boundary; the sandbox is. A preset tells an honest caller early and in words what
//! will not work, and turns mistakes such as `rm -rf /` into an explanation. A program that was allowed can
//! still do anything that the sandbox permits. The crate does no input or output.
#![forbid(unsafe_code)]

pub mod arguments;
mod command_line;
mod judge;
mod parse;
mod parse_error;
mod path;
mod policy;
mod quote;
mod translate;
mod verdict;
mod wrapper;

pub use command_line::{
    Assignment, Cause, Command, CommandLine, CommandOrigin, Function, Meaning, Operator,
    Redirection, Word,
};
pub use judge::{Context, Preset, UnknownPreset, judge};
pub use parse::{MAX_COMMANDS, MAX_NESTING, MAX_TEXT_BYTES, parse};
pub use parse_error::{ParseError, Reason};
pub use verdict::{CommandSummary, Refusal, Verdict};
