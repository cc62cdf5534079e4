//! Project detection, planned commands and their reports: the engine of Test, Lint, Typecheck,
//! Format and Run script.
//!
//! The crate works in three steps and starts no process in any of them:
//!
//! 1. [`detect`] and [`detect_all`] read project files through [`carrel_fsroot::Root`] and return a
//!    [`Profile`]: the commands of a project, each with the file that is the evidence for it.
//! 2. [`plan`] narrows one of these commands to a file, a package or a test, and adds the options
//!    that make the tool write a machine-readable report ([`plan::Invocation`]).
//! 3. [`parse`] reads the output and the reports of the finished command and returns a verdict:
//!    `passed`, `failed` or `could_not_run`.
//!
//! Running the command between steps 2 and 3, in a sandbox, is the caller's job. A verdict is
//! `passed` only if the command succeeded and its report proves that something was checked; see
//! [`parse`] for the rules.
#![forbid(unsafe_code)]

pub mod coverage;
mod detect;
mod ecosystems;
mod manifest;
mod named;
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
