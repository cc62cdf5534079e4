//! Tools that read, write, search, move, delete and render files, and uploads.

mod apply_patch;
mod change_set;
mod edit;
mod move_and_delete;
mod read;
mod refused_edit;
mod render;
mod search_tools;
mod trash;
mod upload;
mod workspace_files;
mod write;

pub(crate) use change_set::{After, Before, ChangeSet, NewFile};
pub(crate) use refused_edit::RefusedEdit;
pub(crate) use search_tools::{run_cancellable, run_search};
pub use upload::{Upload, UploadedFile};
pub(crate) use workspace_files::{
    ChangeFacts, LoadedFile, MAX_FILE_BYTES, WorkspaceFiles, check_given, check_is_text, diff_text,
    required_path, show_hash, shown,
};

use crate::registry::Catalogue;

pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add::<read::Read>();
    catalogue.add::<write::Write>();
    catalogue.add::<edit::Edit>();
    catalogue.add::<edit::MultiEdit>();
    catalogue.add::<apply_patch::ApplyPatch>();
    catalogue.add::<search_tools::Ls>();
    catalogue.add::<search_tools::Glob>();
    catalogue.add::<search_tools::Grep>();
    catalogue.add::<move_and_delete::Move>();
    catalogue.add::<move_and_delete::Delete>();
    catalogue.add::<render::RenderMermaid>();
    catalogue.add::<render::RenderDot>();
}
