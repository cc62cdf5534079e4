//! Finding files and text in a workspace: the engine behind Glob, Grep and LS.
//!
//! The tree is walked through descriptors of [`carrel_fsroot`], never by path strings, on all
//! cores, and the answer has one order whatever the threads do: the order of paths, component by
//! component. Matching is ripgrep's, linked in.
//!
//! What a walk sees:
//!
//! - `.gitignore`, `.ignore` and `.rgignore` count in every directory from the workspace's root
//!   down, with or without a repository, and so does `.git/info/exclude`. Ignore files above the
//!   workspace and the user's own excludes never count. A nested repository is judged by its own
//!   `.gitignore` files, as git does.
//! - `node_modules` is left out and no rule brings it back; [`Scope::ignored`] does.
//! - Names that begin with a dot are left out, as ripgrep does; [`Scope::hidden`] shows them, and
//!   so does a `!` rule of an ignore file.
//! - `.git` is entered only when the path itself leads into it. Unfinished writes are never seen.
//! - Links are not followed and mount points are not crossed. A link that the caller names is
//!   followed as far as it stays inside.
//! - What a caller names is searched even if a rule would hide it.
//!
//! Paths in reports are relative to the workspace's root and free of links. Memory is bounded by
//! named constants; what could not be read is part of the report and never ends a search.
#![forbid(unsafe_code)]

mod cancel;
mod error;
mod file;
mod filter;
mod glob;
mod glob_pattern;
mod grep;
mod hits;
mod json;
mod line;
mod list;
mod matcher;
mod near;
mod node;
mod page;
mod queue;
mod render;
mod report;
mod request;
mod rules;
mod scope;
mod unreadable;
mod visit;
mod walk;

pub use cancel::Cancel;
pub use error::Error;
pub use glob::{DEFAULT_GLOB_LIMIT, GlobMatch, GlobReport, GlobRequest, Order, glob};
pub use glob_pattern::{MAX_GLOB_BYTES, MAX_GLOBS};
pub use grep::grep;
pub use line::{Line, LineKind, MAX_SPANS};
pub use list::{
    DEFAULT_LIST_LIMIT, Detail, EntryMetadata, LinkTarget, ListEntry, ListReport, ListRequest,
    MAX_LIST_DEPTH, list,
};
pub use report::{FileMatches, GrepReport, Totals, Truncation, TruncationReason};
pub use request::{
    Case, DEFAULT_LINE_BYTES, DEFAULT_OUTPUT_BYTES, DEFAULT_TIME, GrepRequest, MAX_CONTEXT_LINES,
    Mode, Syntax,
};
pub use scope::{Scope, Sensitive};
pub use unreadable::{MAX_READ_FAILURES, ReadFailure, ReadFailures};
