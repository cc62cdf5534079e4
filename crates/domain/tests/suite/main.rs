//! The documentation that follows this crate.
//!
//! - `error_pages`: the pages of `docs/errors/` say what the table of codes says.

mod error_pages;
