//! Edits and patches of whole files.
//!
//! - `edits`: replacing text and lines, with limits and errors.
//! - `patches`: the positions of hunks, and the errors of those that do not match.
//! - `properties`: arbitrary text, edits and patches.
//! - `scenarios`: folders of files before and after a request, compared as whole trees.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail loudly")]

mod edits;
mod patches;
mod properties;
mod scenarios;
