//! YAML as far as a workflow file needs it: a tree of values that know where they stand.
//!
//! One document, unique keys, bounded depth and size. Aliases, merge keys and
//! tags are refused: settings are plain data, and an alias can make a small file
//! stand for a huge tree.

mod load;
mod node;
mod scalar;

pub(crate) use load::parse;
pub(crate) use node::{Entry, Map, Node, Value};
