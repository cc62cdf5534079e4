//! Search for files and text in a workspace: the engine of Glob, Grep and LS.
//!
//! The tree is walked on all cores through descriptors of [`carrel_fsroot`], never by path strings,
//! and matching is ripgrep's, linked in. The result does not depend on threads: it is in path
//! order, component by component, and a page boundary is the same in every run over the same files.
//!
//! A walk sees these files:
//!
//! - `.gitignore`, `.ignore` and `.rgignore` apply in every directory from the workspace's root
//!   down, with or without a repository, and so does `.git/info/exclude`. Ignore files above the
//!   workspace and the user's global excludes never apply. A nested repository is subject to its
//!   own `.gitignore` files only, as in git.
//! - `node_modules` is skipped and no rule includes it; [`Scope::ignored`] does.
//! - Names that begin with a dot are skipped, as in ripgrep, unless [`Scope::hidden`] or a `!` rule
//!   of an ignore file includes them.
//! - `.git` is entered only if the scope's path leads into it. Temporary files of unfinished writes
//!   are never seen.
//! - Links are not followed and mount points are not crossed. A link that is the scope's path is
//!   followed as long as it stays inside the workspace.
//! - The scope's path itself is searched even if a rule would skip it.
//!
//! Paths in reports are relative to the workspace's root and free of links. Memory is bounded by
//! named constants. Files that cannot be read are part of the report and never end a search.
#![forbid(unsafe_code)]

mod budget;
mod error;
mod file_filter;
mod file_search;
mod glob;
mod glob_pattern;
mod grep;
mod ignore_rules;
mod line;
mod line_sink;
mod list;
mod matcher;
mod node;
mod page;
mod queue;
mod read_failure;
mod render;
mod report;
mod request;
mod scope;
mod source_files;
mod tree_watch;
mod visitor;
mod walk;

pub use budget::Cancel;
pub use error::Error;
pub use glob::{DEFAULT_GLOB_LIMIT, GlobMatch, GlobReport, GlobRequest, Order, glob};
pub use glob_pattern::{MAX_GLOB_BYTES, MAX_GLOBS};
pub use grep::grep;
pub use ignore_rules::{PresentRuleFiles, Rules as IgnoreRules, is_rule_file};
pub use line::{Line, LineKind, MAX_SPANS};
pub use list::{
    DEFAULT_LIST_LIMIT, Detail, EntryMetadata, LinkTarget, ListEntry, ListReport, ListRequest,
    MAX_LIST_DEPTH, list,
};
pub use read_failure::{MAX_READ_FAILURES, ReadFailure, ReadFailures};
pub use report::{FileMatches, GrepReport, Totals, Truncation, TruncationReason};
pub use request::{
    Case, DEFAULT_LINE_BYTES, DEFAULT_OUTPUT_BYTES, DEFAULT_TIME, GrepRequest, MAX_CONTEXT_LINES,
    Mode, Syntax,
};
pub use scope::{ALWAYS_IGNORED, Scope, Sensitive};
pub use source_files::{FileList, MAX_SOURCE_FILES, SourceFile, source_files};
pub use tree_watch::{FileChanges, TreeCursor, TreeWatch};
