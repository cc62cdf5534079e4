//! The six tools of the workspace service, and the tool behind the task step `create_directory`.
//!
//! Clients of the service know these names and schemas. They differ from the tools for
//! coding agents in three ways: files that usually hold credentials are not visible to them, a write needs
//! no read before it, and command lines are checked against the preset `allowlist`.
//!
//! The types are public because task steps call these tools with
//! [`Registry::call_typed`](crate::Registry::call_typed).

mod commands;
mod file_type;
mod files;

pub use commands::{ExecCommand, ExecFacts, ExecInput, RunGit, RunGitInput};
pub use files::{
    CreateDirectory, CreateDirectoryInput, DirectoryFacts, FileFacts, ListDirectory,
    ListDirectoryInput, ListFacts, ReadFile, ReadFileInput, WriteFile, WriteFileInput,
};

use crate::registry::Catalogue;

pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add::<ReadFile>();
    catalogue.add::<WriteFile>();
    catalogue.add::<ListDirectory>();
    catalogue.add::<files::GrepFiles>();
    catalogue.add::<ExecCommand>();
    catalogue.add::<RunGit>();
}
