//! Tools for files.

mod common;
mod delete;
mod edit;
mod moving;
mod patch;
mod read;
mod searching;
mod trash;
mod write;

pub(crate) use common::{Desk, check_name, compared, path_of, shown};
pub(crate) use searching::searching;

use crate::registry::Registry;

/// Adds the tools of this module.
pub(crate) fn register(registry: &mut Registry) {
    registry.add(read::Read);
    registry.add(write::Write);
    registry.add(edit::Edit);
    registry.add(edit::MultiEdit);
    registry.add(patch::ApplyPatch);
    registry.add(searching::Ls);
    registry.add(searching::Glob);
    registry.add(searching::Grep);
    registry.add(moving::Move);
    registry.add(delete::Delete);
}
