//! Schema migrations, as both databases report them.

use serde::Serialize;

/// A numbered change of the schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Migration {
    /// The number, from 1 without gaps. The schema's version is the number of its last migration.
    pub number: u32,
    /// A short name.
    pub name: String,
}
