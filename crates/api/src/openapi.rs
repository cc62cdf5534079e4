//! The `OpenAPI` 3.1 document (`/openapi.json`) and the reference page (`docs/api.md`).
//!
//! Both are generated from the table of routes that also builds the router, and from the types that requests
//! are parsed into and replies are serialised from. A route cannot exist without its description, and a
//! description cannot outlive its route.

mod codes;
mod document;
mod markdown;
mod responses;
mod route;
mod schemas;

pub(crate) use codes::{
    COMMANDS, FILES, FORKS, SEARCH, SNAPSHOTS, STORE, TOOLS, TRIES, WORKSPACES,
};
pub use document::document;
pub use markdown::markdown;
pub(crate) use route::{Access, Header, Route};
