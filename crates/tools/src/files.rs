//! Tools for files.

mod common;
mod delete;
mod edit;
mod moving;
mod patch;
mod read;
mod searching;
mod trash;
mod upload;
mod write;

pub(crate) use common::{MAX_FILE_BYTES, WorkspaceFiles, compared, path_of, shown};
pub(crate) use searching::searching;
pub use upload::{Upload, UploadedFile};

use crate::registry::Catalogue;

/// Adds the tools of this module.
pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add(read::Read);
    catalogue.add(write::Write);
    catalogue.add(edit::Edit);
    catalogue.add(edit::MultiEdit);
    catalogue.add(patch::ApplyPatch);
    catalogue.add(searching::Ls);
    catalogue.add(searching::Glob);
    catalogue.add(searching::Grep);
    catalogue.add(moving::Move);
    catalogue.add(delete::Delete);
}
