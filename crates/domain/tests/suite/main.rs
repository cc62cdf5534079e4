//! What the domain says outside its own code.
//!
//! - `error_pages`: the pages of `docs/errors/` are those the codes describe.

mod error_pages;
