//! What each ecosystem's project files say. One module for each.

mod cpp;
mod deno;
mod dotnet;
mod go;
mod java;
mod makefile;
mod node;
mod php;
mod python;
mod ruby;
mod rust;

use crate::profile::Profile;
use crate::project_reader::ProjectReader;

/// Looks for a project of one ecosystem in a directory.
type Detector = fn(&ProjectReader<'_>, &str) -> Option<Profile>;

/// In the order in which profiles of one directory are listed.
const DETECTORS: [Detector; 10] = [
    rust::detect,
    node::detect,
    python::detect,
    go::detect,
    java::detect,
    deno::detect,
    ruby::detect,
    php::detect,
    dotnet::detect,
    cpp::detect,
];

/// File names that may make a directory a project, for a walk that lists directories anyway.
const MARKERS: [&str; 24] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "Pipfile",
    "ruff.toml",
    ".ruff.toml",
    "pytest.ini",
    "go.mod",
    "go.work",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    "deno.json",
    "deno.jsonc",
    "Gemfile",
    "composer.json",
    "CMakeLists.txt",
    "Makefile",
    "carrel.toml",
];

/// Endings of names that do the same.
const MARKER_ENDINGS: [&str; 5] = [".sln", ".slnx", ".csproj", ".fsproj", ".gemspec"];

/// Tells whether a file of this name may make its directory a project.
pub(crate) fn is_marker(name: &str) -> bool {
    MARKERS.contains(&name) || MARKER_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Returns the projects of a directory, one for each ecosystem that it holds.
pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Vec<Profile> {
    let mut profiles: Vec<Profile> =
        DETECTORS.iter().filter_map(|detect| detect(reader, directory)).collect();
    if !profiles.is_empty() {
        makefile::add_targets(reader, directory, &mut profiles);
    }
    profiles
}
