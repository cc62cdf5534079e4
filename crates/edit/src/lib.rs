//! Text as it is in files: reading windows of lines, replacing, patches and diffs. Pure.
//!
//! [`Document`] turns the bytes of a file into text and back without losing any: encodings, byte
//! order marks, line endings and stray bytes survive. [`Window`] shows some of its lines.
//! [`replace`] changes places that are named by their text or by their lines, [`patch`] applies a
//! patch of several files, and [`diff`] says what changed.
//!
//! What an agent was shown is what it can name: the places it asks for are found even though it
//! never saw a carriage return or a byte order mark, and all that it did not ask for stays byte
//! for byte. Nothing here reads or writes files.
#![forbid(unsafe_code)]

mod content;
mod cut;
pub mod diff;
mod document;
mod encoding;
mod endings;
mod lines;
pub mod patch;
pub mod replace;
mod window;

pub use content::{Content, ImageFormat, SNIFFED_BYTES};
pub use document::{Document, Unencodable};
pub use encoding::Encoding;
pub use lines::{EndingStyle, Line, LineEnding, LineFacts, lines};
pub use window::{
    DEFAULT_CONTEXT, DEFAULT_LINES, MAX_LINE_CHARACTERS, MAX_WINDOW_BYTES, Selection, Window,
    WindowBudget, WindowError,
};
