//! Project detection: the nearest project of a file, and all projects of a workspace.
//!
//! A project is a directory with a marker file such as `Cargo.toml`. Detection climbs from a file
//! to the nearest directory with a marker, never above the workspace. A directory may contain
//! several projects, one for each ecosystem. Nothing is executed and no tool is asked: profiles
//! follow from files alone, so detection is safe in an untrusted workspace.
//!
//! All reads go through a [`ProjectReader`], which records what the result depends on. The
//! `_stamped` variants return that record for the cache.

mod gitignore;
mod workspace_projects;

pub(crate) use workspace_projects::detect_all_stamped;
pub use workspace_projects::{
    MAX_DEPTH, MAX_DIRECTORIES, MAX_PROJECTS, WorkspaceProjects, detect_all,
};

use std::path::Path;

use carrel_fsroot::{FileKind, Root};

use crate::ecosystems;
use crate::paths;
use crate::profile::{EditLimits, Profile, ProfileField, has_word};
use crate::project_reader::{FileStamps, ProjectReader};
use crate::settings;

/// The nearest projects of a path, at most one for each ecosystem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detection {
    /// Nearest directory with a project; `None` if there is none up to the workspace.
    pub directory: Option<String>,
    /// Its projects, at most one for each ecosystem.
    pub profiles: Vec<Profile>,
}

/// The project of a file and its limits on edits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileProject {
    /// Nearest project whose ecosystem or tools handle the extension of the file.
    pub profile: Option<Profile>,
    /// Limits of `profile`, or else of the nearest project of any ecosystem: strict limits also
    /// apply to files that no tool handles.
    pub edit_limits: EditLimits,
}

/// Returns the projects of the nearest directory with a marker. A path that does not exist belongs
/// to its nearest existing parent.
pub fn detect(root: &Root, from: &Path) -> Detection {
    detect_stamped(root, from).0
}

/// Also returns the stamps of everything that the result depends on.
pub(crate) fn detect_stamped(root: &Root, from: &Path) -> (Detection, FileStamps) {
    let reader = ProjectReader::new(root);
    let at = |directory: &str| {
        let profiles = profiles_at(&reader, directory);
        let directory = Some(directory.to_owned());
        (!profiles.is_empty()).then_some(Detection { directory, profiles })
    };
    let start = directory_of(root, from);
    let found = start.and_then(|start| paths::upwards(&start).find_map(at));
    let found = found.or_else(|| {
        let profiles = vec![bare_profile(&reader)?];
        Some(Detection { directory: Some(paths::TOP.to_owned()), profiles })
    });
    (found.unwrap_or_default(), reader.into_stamps())
}

/// Returns the project that handles a file.
///
/// A Python script in `web/` belongs to the Python project above it rather than to the package.json
/// beside it.
pub fn detect_for_file(root: &Root, file: &Path) -> FileProject {
    paths::normal(file)
        .map_or_else(FileProject::default, |path| detect_for_file_stamped(root, &path).0)
}

pub(crate) fn detect_for_file_stamped(root: &Root, path: &str) -> (FileProject, FileStamps) {
    let reader = ProjectReader::new(root);
    let owner = owner(&reader, path);
    (owner, reader.into_stamps())
}

fn owner(reader: &ProjectReader<'_>, path: &str) -> FileProject {
    let Some(parent) = paths::parent(path) else { return FileProject::default() };
    let extension = paths::extension(path);
    let mut nearest = None;
    let profile = paths::upwards(parent).find_map(|directory| {
        let profiles = profiles_at(reader, directory);
        if nearest.is_none() && !profiles.is_empty() {
            nearest = Some(limits_of(&profiles));
        }
        let of_ecosystem = |profile: &&Profile| has_word(profile.ecosystem.extensions(), extension);
        profiles
            .iter()
            .find(of_ecosystem)
            .or_else(|| profiles.iter().find(|profile| reads(profile, extension)))
            .cloned()
    });
    let bare =
        || bare_profile(reader).filter(|bare| has_word(bare.ecosystem.extensions(), extension));
    let profile = profile.or_else(|| if nearest.is_none() { bare() } else { None });
    let of_profile = profile.as_ref().map(|profile| profile.edit_limits);
    FileProject { edit_limits: of_profile.or(nearest).unwrap_or_default(), profile }
}

/// Returns the project of a workspace that has tests and no manifest.
fn bare_profile(reader: &ProjectReader<'_>) -> Option<Profile> {
    let mut profiles = vec![ecosystems::detect_bare(reader)?];
    settings::apply(reader, paths::TOP, &mut profiles);
    profiles.pop()
}

/// Returns the limits for a file that no project handles; strict limits win.
fn limits_of(profiles: &[Profile]) -> EditLimits {
    let strict = profiles.iter().any(|profile| profile.edit_limits == EditLimits::Strict);
    if strict { EditLimits::Strict } else { EditLimits::Standard }
}

/// Returns true if the formatter or linter of a project handles an extension.
fn reads(profile: &Profile, extension: &str) -> bool {
    let commands = [ProfileField::Format, ProfileField::Lint].map(|field| profile.command(field));
    commands.into_iter().flatten().any(|command| command.extensions.iter().any(|e| e == extension))
}

/// Returns the projects of exactly one directory, with the settings of `carrel.toml` applied.
fn profiles_at(reader: &ProjectReader<'_>, directory: &str) -> Vec<Profile> {
    let mut profiles = ecosystems::detect(reader, directory);
    settings::apply(reader, directory, &mut profiles);
    profiles
}

/// Returns the nearest existing directory of a path.
pub(crate) fn directory_of(root: &Root, from: &Path) -> Option<String> {
    let path = paths::normal(from)?;
    let kind = |path: &str| root.metadata(Path::new(path)).map(|metadata| metadata.kind);
    let directory =
        paths::upwards(&path).find(|path| matches!(kind(path), Ok(FileKind::Directory)));
    directory.map(str::to_owned)
}
