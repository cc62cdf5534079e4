//! What becomes of files.
//!
//! - `edits`: replacing text and lines, with the limits and refusals.
//! - `patches`: where hunks are found, and what is said when they are not.
//! - `properties`: arbitrary text, edits and patches.
//! - `scenarios`: folders of files before and after a request, compared as whole trees.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail loudly")]

mod edits;
mod patches;
mod properties;
mod scenarios;
