//! What a command line means, and whether a preset allows it.
//!
//! [`parse`] finds every simple command of a command line with a real shell grammar, also inside
//! substitutions, groups, here-documents and the wrappers that run other commands. [`judge`] holds
//! a preset against what was found, and says which command, which rule and what would pass.
//! [`arguments::check`] looks at the path-like arguments of a program that is started without a
//! shell.
//!
//! None of this is the boundary: the kernel is. It tells an honest caller early and in words what
//! will not work, and it keeps no program from doing anything. It does no input or output.
#![forbid(unsafe_code)]

pub mod arguments;
mod error;
mod judge;
mod parse;
mod path;
mod policy;
mod quote;
mod script;
mod translate;
mod verdict;
mod wrapper;

pub use error::{ParseError, Reason};
pub use judge::{Context, Preset, UnknownPreset, judge};
pub use parse::{MAX_COMMANDS, MAX_NESTING, MAX_TEXT_BYTES, parse};
pub use policy::allowed_names;
pub use script::{
    Assignment, Cause, Command, CommandLine, CommandOrigin, Function, Meaning, Operator,
    Redirection, Word,
};
pub use verdict::{CommandSummary, Decision, Refusal, Verdict};
