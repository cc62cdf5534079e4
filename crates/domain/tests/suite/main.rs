//! The documentation that is generated from this crate.
//!
//! - `error_pages`: the pages of `docs/errors/` are up to date.

mod error_pages;
