//! What a terminal shows: a [`Snapshot`] drawn into so many lines and columns.
//!
//! Drawing is a pure function; a [`Painter`] then writes only the lines that changed. Nothing that comes
//! from outside reaches the terminal but as text.

mod frame;
mod painter;
mod sections;
mod terminal_text;

pub use frame::{Frame, Style, StyledLine, StyledSpan};
pub use painter::Painter;
pub use terminal_text::{strip_control, web_link};

use crate::snapshot::Snapshot;

/// The narrowest terminal that is drawn for.
const MIN_WIDTH: usize = 40;

/// Draws what there is to see. Every line fits into the width, and all of them into the height.
pub fn render(snapshot: &Snapshot, width: usize, height: usize) -> Frame {
    let width = width.max(MIN_WIDTH);
    let head = sections::head(snapshot);
    let mut sections = sections::all(snapshot);
    let body_height = height.saturating_sub(head.len());
    sections::fit_height(&mut sections, body_height);
    let lines = head.into_iter().chain(sections.into_iter().flat_map(sections::Section::draw));
    Frame { lines: lines.take(height).map(|line| line.fit(width)).collect() }
}
