//! The subset of YAML that a workflow file may use, parsed to a tree of values with positions.
//!
//! One document, unique keys, bounded depth and size. Aliases, merge keys and tags are errors: settings
//! are plain data, and an alias lets a small file stand for a huge tree.

mod parse;
mod scalar;

pub(crate) use parse::parse;
