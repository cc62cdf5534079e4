//! Detection of one ecosystem in one directory, one module for each ecosystem.
//!
//! A detector returns a profile if it finds its marker files. It only sets commands that something
//! in the project speaks for: a settings file, a dependency, an installed program. Commands that
//! are merely usual for an ecosystem are marked as assumed, and are never run without a request.
//! Programs come from the project itself if they are installed there; launchers such as `npx` are
//! used in a form that downloads nothing.

mod cpp;
mod custom;
mod declared;
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

use serde_json::Value;

use crate::paths;
use crate::profile::{Membership, PackageManager, Profile, has_word};
use crate::project_reader::ProjectReader;

/// Returns the profile of one ecosystem in a directory, if it has a marker.
type Detector = fn(&ProjectReader<'_>, &str) -> Option<Profile>;

/// All detectors, in the order of profiles in a reply.
const DETECTORS: [Detector; 9] = [
    rust::detect,
    node::detect,
    python::detect,
    go::detect,
    java::detect,
    deno::detect,
    ruby::detect,
    php::detect,
    dotnet::detect,
];

/// Names of marker files, to skip other directories without running the detectors.
const MARKERS: &str = "Cargo.toml package.json pyproject.toml setup.py setup.cfg requirements.txt \
    Pipfile ruff.toml .ruff.toml pytest.ini uv.lock tox.ini tox.toml noxfile.py go.mod go.work pom.xml build.gradle build.gradle.kts \
    settings.gradle settings.gradle.kts deno.json deno.jsonc Gemfile composer.json CMakeLists.txt \
    meson.build GNUmakefile makefile Makefile configure.ac configure.in configure mix.exs build.zig \
    Package.swift pubspec.yaml build.sbt dune-project stack.yaml cabal.project carrel.toml";

/// Suffixes of marker files with variable names.
const MARKER_SUFFIXES: [&str; 7] =
    [".sln", ".slnx", ".csproj", ".fsproj", ".vbproj", ".gemspec", ".cabal"];

/// Returns true if a file of this name may be a marker.
pub(crate) fn is_marker(name: &str) -> bool {
    has_word(MARKERS, name) || MARKER_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// A package manager and the file that is the evidence for it.
#[derive(Debug)]
struct DetectedManager {
    kind: PackageManager,
    file: String,
}

/// Returns the manager of the first lock file in a directory.
fn manager_by_lock(
    reader: &ProjectReader<'_>,
    directory: &str,
    locks: &[(&str, PackageManager)],
) -> Option<DetectedManager> {
    locks.iter().find_map(|(name, kind)| {
        let file = paths::join(directory, name);
        reader.has(&file).then_some(DetectedManager { kind: *kind, file })
    })
}

/// Returns the directory in which the dependencies of a project are installed.
fn install_directory(profile: &Profile) -> String {
    match &profile.membership {
        Some(Membership::Member { of }) => of.clone(),
        Some(Membership::Root { .. }) | None => profile.root.clone(),
    }
}

/// Adds `./` to a bare name, which would be looked up in `PATH`.
fn dotted(path: String) -> String {
    if path.contains('/') { path } else { format!("./{path}") }
}

/// Returns the strings of a JSON list.
fn strings(list: &[Value]) -> Vec<String> {
    list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// Returns the projects of a directory, at most one for each ecosystem.
pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Vec<Profile> {
    let mut profiles: Vec<Profile> =
        DETECTORS.iter().filter_map(|detect| detect(reader, directory)).collect();
    // Makefiles and C sources beside another manifest belong to its project.
    let has_cmake = reader.has(&paths::join(directory, "CMakeLists.txt"));
    if profiles.is_empty() || has_cmake {
        profiles.extend(cpp::detect(reader, directory));
    }
    profiles.extend(declared::detect(reader, directory));
    if profiles.is_empty() && directory == paths::TOP {
        profiles.extend(custom::detect(reader, directory));
    }
    if !profiles.is_empty() {
        makefile::add_targets(reader, directory, &mut profiles);
        custom::add_recipes(reader, directory, &mut profiles);
    }
    profiles
}

/// Returns the project of a workspace that has tests and no manifest, if nothing else was found.
pub(crate) fn detect_bare(reader: &ProjectReader<'_>) -> Option<Profile> {
    python::detect_bare(reader)
}
