//! The tests of this crate that use its public interface.
//!
//! - `symbols`: the symbols of a source in every language
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod symbols;
