//! Breadth-first search for all projects of a workspace, bounded in depth and number.

use std::collections::VecDeque;

use carrel_fsroot::{FileKind, Root};

use crate::ecosystems::is_marker;
use crate::paths;
use crate::profile::{Profile, has_word};
use crate::project_choice::is_stray;
use crate::project_reader::{FileStamps, ProjectReader};

use super::gitignore::GitignoreRules;
use super::{bare_profile, profiles_at};

/// Bounds the depth of the search. Deeper projects are still found from their files.
pub const MAX_DEPTH: usize = 6;

/// Bounds the number of profiles.
pub const MAX_PROJECTS: usize = 200;

/// Bounds the number of listed directories.
pub const MAX_DIRECTORIES: usize = 5_000;

/// Directories of dependencies and build results, which contain foreign projects.
const SKIPPED: &str = "node_modules target vendor venv __pycache__ site-packages bower_components";

/// All projects of a workspace, as far as the bounds of the search allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceProjects {
    /// Profiles, nearest to the workspace's root first.
    pub profiles: Vec<Profile>,
    /// True if a bound was reached, so that there may be more projects.
    pub truncated: bool,
}

/// Finds all projects of a workspace, except in directories that are hidden, ignored by git, or
/// known to contain dependencies and build results.
pub fn detect_all(root: &Root) -> WorkspaceProjects {
    detect_all_stamped(root).0
}

pub(crate) fn detect_all_stamped(root: &Root) -> (WorkspaceProjects, FileStamps) {
    let reader = ProjectReader::new(root);
    let found = survey(&reader);
    (found, reader.into_stamps())
}

fn survey(reader: &ProjectReader<'_>) -> WorkspaceProjects {
    let mut found = WorkspaceProjects { profiles: Vec::new(), truncated: false };
    let mut waiting = VecDeque::from([(paths::TOP.to_owned(), 0_usize, GitignoreRules::default())]);
    let mut listed = 0;
    while let Some((directory, depth, ignored)) = waiting.pop_front() {
        if listed == MAX_DIRECTORIES || found.profiles.len() >= MAX_PROJECTS {
            found.truncated = true;
            break;
        }
        listed += 1;
        let entries = reader.list(&directory);
        // The workspace's own root may also have the files of a build tool without a language.
        let is_candidate = directory == paths::TOP
            || entries.iter().any(|(name, kind)| *kind != FileKind::Directory && is_marker(name));
        if is_candidate {
            found.profiles.extend(profiles_at(reader, &directory));
        }
        let ignored = ignored.within(reader, &directory);
        let below = entries.into_iter().filter(|(_, kind)| *kind == FileKind::Directory);
        for (name, _) in below.filter(|(name, _)| !is_skipped(name)) {
            let path = paths::join(&directory, &name);
            if ignored.covers(&path) {
                continue;
            }
            if depth == MAX_DEPTH {
                found.truncated = true;
            } else {
                waiting.push_back((path, depth + 1, ignored.clone()));
            }
        }
    }
    if found.profiles.iter().all(|profile| is_stray(&profile.root)) {
        let bare = bare_profile(reader);
        found.profiles.splice(0..0, bare);
    }
    found
}

fn is_skipped(name: &str) -> bool {
    name.starts_with('.') || has_word(SKIPPED, name)
}
