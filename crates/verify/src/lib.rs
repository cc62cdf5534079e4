//! What a project is, how its tests, linters and formatters are run, and what they said.
//!
//! Three steps, and no process is started in any of them:
//!
//! 1. [`detect`] and [`detect_all`] read project files through [`carrel_fsroot::Root`] and
//!    say which commands a project has, and which file says so ([`Profile`]).
//! 2. [`plan`] points one of these commands at a file, a package, a test or the whole
//!    project, and asks the tool for a machine-readable report ([`plan::Invocation`]).
//! 3. [`parse`] turns what the finished command left behind into a report that is
//!    never green by accident: `passed`, `failed` or `could_not_run`.
#![forbid(unsafe_code)]

mod detect;
mod ecosystems;
mod manifest;
pub mod parse;
mod paths;
pub mod plan;
mod profile;
mod profile_cache;
mod project_choice;
mod project_reader;
mod settings;
mod tool;

pub use detect::{
    Detection, FileProject, MAX_DEPTH, MAX_DIRECTORIES, MAX_PROJECTS, WorkspaceProjects, detect,
    detect_all, detect_for_file,
};
pub use profile::{
    CargoPackage, Ecosystem, EditLimits, Evidence, Granularity, Membership, OptionPassing,
    PackageManager, Profile, ProfileField, ProfileProblem, ProjectCommand, ProjectScript,
};
pub use profile_cache::{CacheStatus, ProfileCache};
pub use project_choice::{ChoiceError, choose_projects};
pub use settings::SETTINGS_FILE;
pub use tool::ProjectTool;
