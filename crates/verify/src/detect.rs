//! Finding projects: the nearest one of a file, and all of a workspace.

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
use crate::profile::{EditLimits, Profile};
use crate::project_reader::{FileStamps, ProjectReader};
use crate::settings;

/// The projects that a place belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// The nearest directory that holds a project; `None` when there is none up to the workspace.
    pub directory: Option<String>,
    /// Its projects, one for each ecosystem.
    pub profiles: Vec<Profile>,
}

/// What a file belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileProject {
    /// The nearest project whose ecosystem or tools know the kind of the file.
    pub profile: Option<Profile>,
    /// How large the edits of the file may be. The nearest project may ask for small steps also in
    /// files that none of its tools knows.
    pub edit_limits: EditLimits,
}

/// Finds the project of a file or directory: the nearest marker upwards, and never above
/// the workspace. A path that does not exist belongs to its nearest existing parent.
pub fn detect(root: &Root, from: &Path) -> Detection {
    let reader = ProjectReader::new(root);
    detect_with(&reader, root, from)
}

/// Finds the projects of a place and everything that the answer depends on.
pub(crate) fn detect_stamped(root: &Root, from: &Path) -> (Detection, FileStamps) {
    let reader = ProjectReader::new(root);
    let detection = detect_with(&reader, root, from);
    (detection, reader.into_stamps())
}

fn detect_with(reader: &ProjectReader<'_>, root: &Root, from: &Path) -> Detection {
    let none = Detection { directory: None, profiles: Vec::new() };
    let Some(start) = directory_of(root, from) else { return none };
    paths::upwards(&start)
        .find_map(|directory| {
            let profiles = profiles_at(reader, directory);
            let directory = Some(directory.to_owned());
            (!profiles.is_empty()).then_some(Detection { directory, profiles })
        })
        .unwrap_or(none)
}

/// Finds what a file belongs to.
///
/// In `web/`, a Python script belongs to the Python project above and not to the
/// package.json beside it.
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
        let of_ecosystem = |profile: &&Profile| profile.ecosystem.extensions().contains(&extension);
        profiles
            .iter()
            .find(of_ecosystem)
            .or_else(|| profiles.iter().find(|profile| reads(profile, extension)))
            .cloned()
    });
    let of_profile = profile.as_ref().map(|profile| profile.edit_limits);
    FileProject { edit_limits: of_profile.or(nearest).unwrap_or_default(), profile }
}

/// Returns how large edits may be where no project is the file's own.
fn limits_of(profiles: &[Profile]) -> EditLimits {
    let strict = profiles.iter().any(|profile| profile.edit_limits == EditLimits::Strict);
    if strict { EditLimits::Strict } else { EditLimits::Standard }
}

/// Tells whether one of a project's own tools reads files of a kind.
fn reads(profile: &Profile, extension: &str) -> bool {
    let commands = [&profile.format, &profile.lint];
    commands.into_iter().flatten().any(|command| command.extensions.iter().any(|e| e == extension))
}

/// Returns the projects of exactly one directory.
fn profiles_at(reader: &ProjectReader<'_>, directory: &str) -> Vec<Profile> {
    let mut profiles = ecosystems::detect(reader, directory);
    settings::apply(reader, directory, &mut profiles);
    profiles
}

/// Returns the directory at which the search for a path begins.
pub(crate) fn directory_of(root: &Root, from: &Path) -> Option<String> {
    let path = paths::normal(from)?;
    let kind = |path: &str| root.metadata(Path::new(path)).map(|metadata| metadata.kind);
    let directory =
        paths::upwards(&path).find(|path| matches!(kind(path), Ok(FileKind::Directory)));
    directory.map(str::to_owned)
}
