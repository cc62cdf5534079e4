//! The terminal dashboard: a [`Snapshot`] rendered into lines of styled text.
//!
//! [`render`] is a pure function from snapshot and size to a [`Frame`]; a [`Painter`] turns frames into
//! escape sequences and writes only the lines that changed. Texts of trackers and agents are stripped of
//! control characters before they enter a frame, so that they cannot move the cursor or forge links.

mod frame;
mod painter;
mod sections;
mod terminal_text;

pub use frame::{Frame, Style, StyledLine, StyledSpan};
pub use painter::Painter;

use crate::snapshot::Snapshot;

/// The narrowest width that is rendered; narrower terminals cut lines off.
const MIN_WIDTH: usize = 40;

/// Renders a snapshot. Every line fits into the width, and all of them into the height; sections that are
/// too long lose rows, the longest first.
pub fn render(snapshot: &Snapshot, width: usize, height: usize) -> Frame {
    let width = width.max(MIN_WIDTH);
    let head = sections::head(snapshot);
    let mut sections = sections::all(snapshot);
    let body_height = height.saturating_sub(head.len());
    sections::fit_height(&mut sections, body_height);
    let lines = head.into_iter().chain(sections.into_iter().flat_map(sections::Section::draw));
    Frame { lines: lines.take(height).map(|line| line.fit(width)).collect() }
}
