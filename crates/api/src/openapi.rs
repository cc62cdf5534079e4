//! The API as a document for programs, `OpenAPI` 3.1, and as a page for people.
//!
//! Everything is made from the table of routes that the router is made from, and from the types that
//! requests are read into and answers are written from.

mod codes;
mod document;
mod markdown;
mod responses;
mod route;
mod schemas;

pub(crate) use codes::{COMMANDS, FILES, SEARCH, STORE, TOOLS, WORKSPACES};
pub use document::document;
pub use markdown::markdown;
pub(crate) use route::{Example, Header, Route};
