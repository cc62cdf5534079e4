//! Text editing for agents: windows of numbered lines, replacements, patches and diffs.
//!
//! The crate is pure: it takes bytes and text and returns text, and never opens a file.
//! [`Document`] decodes the bytes of a file and encodes them again without loss; [`Window`] shows
//! some of its lines; [`replace`] changes text that is named by its content or its line numbers;
//! [`patch`] parses and applies a patch of several files; [`diff`] describes a change as a unified
//! diff.
//!
//! Two rules hold in all of them. An agent names text as it was shown to it, without carriage
//! returns or a byte order mark, and sometimes with the line numbers of a window; such a name still
//! finds its text. Every byte that an edit does not name keeps its value, including line endings,
//! stray bytes and a missing final newline.
#![forbid(unsafe_code)]

mod content;
pub mod diff;
mod document;
mod encoding;
mod line_endings;
mod lines;
pub mod patch;
pub mod replace;
mod truncate;
mod window;

pub use content::{Content, ImageFormat, SNIFFED_BYTES};
pub use document::{Document, Unencodable};
pub use encoding::Encoding;
pub use lines::{EndingStyle, Line, LineEnding, LineFacts, line, line_count, line_start, lines};
pub use window::{
    DEFAULT_CONTEXT, DEFAULT_LINES, MAX_LINE_CHARACTERS, MAX_WINDOW_BYTES, Selection, Window,
    WindowBudget, WindowError,
};
