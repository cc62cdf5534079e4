//! C and C++: `CMake` with or without presets, Meson, and make or the autotools if there are sources
//! beside them.

use serde_json::Value;

use crate::manifest::parse_jsonc;
use crate::paths;
use crate::profile::{
    Ecosystem, PackageManager, Profile, ProfileField, ProjectCommand, args, words,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

use super::makefile;

/// Directories with the sources of a make project.
const SOURCES: [&str; 3] = [".", "src", "lib"];

/// A command of a `CMake` project, without presets and with one.
struct CmakeRule {
    field: ProfileField,
    tool: ProjectTool,
    usual: &'static str,
    /// List of presets, and the command to which the name of one is added.
    kind: &'static str,
    front: &'static str,
}

const CMAKE: [CmakeRule; 3] = [
    CmakeRule {
        field: ProfileField::Install,
        tool: ProjectTool::Installer,
        usual: "cmake -S . -B build",
        kind: "configurePresets",
        front: "cmake",
    },
    CmakeRule {
        field: ProfileField::Test,
        tool: ProjectTool::Ctest,
        usual: "ctest --test-dir build --output-on-failure",
        kind: "testPresets",
        front: "ctest --output-on-failure",
    },
    CmakeRule {
        field: ProfileField::Typecheck,
        tool: ProjectTool::Cmake,
        usual: "cmake --build build",
        kind: "buildPresets",
        front: "cmake --build",
    },
];

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let cmake_lists = reader.first(directory, "CMakeLists.txt");
    let mut profile = match (cmake_lists, reader.first(directory, "meson.build")) {
        (Some(marker), _) => cmake(reader, directory, &marker),
        (None, Some(marker)) if is_top_of_meson(reader, directory) => meson(directory, &marker),
        (None, _) => make(reader, directory)?,
    };
    if let Some(file) = reader.nearest(directory, ".clang-format") {
        let format = |argv| {
            // Without files clang-format reads standard input.
            ProjectCommand::new(ProjectTool::ClangFormat, directory, Vec::new())
                .per_file(words(argv), Ecosystem::Cpp.extensions())
        };
        profile.set(ProfileField::Format, format("clang-format -i"), &file);
        profile.set(ProfileField::FormatCheck, format("clang-format --dry-run --Werror"), &file);
    }
    Some(profile)
}

fn cmake(reader: &ProjectReader<'_>, directory: &str, marker: &str) -> Profile {
    let mut profile = Profile::new(Ecosystem::Cpp, directory, marker);
    profile.set_manager(PackageManager::Cmake, marker);
    let presets = Presets::read(reader, directory, &mut profile);
    for CmakeRule { field, tool, usual, kind, front } in CMAKE {
        let preset = presets.as_ref().and_then(|all| Some((all.usual(kind)?, &all.file)));
        let (argv, file) = match preset {
            Some((name, file)) => ([words(front), args(&["--preset", &name])].concat(), &**file),
            None => (words(usual), marker),
        };
        profile.set(field, ProjectCommand::new(tool, directory, argv), file);
    }
    profile
}

/// The presets of a `CMake` project.
struct Presets {
    file: String,
    value: Value,
}

impl Presets {
    fn read(reader: &ProjectReader<'_>, directory: &str, profile: &mut Profile) -> Option<Self> {
        let file = reader.first(directory, "CMakePresets.json")?;
        let value = profile.accept(reader.document(&file, parse_jsonc))?;
        Some(Self { file, value })
    }

    /// Returns the preset named `default`, or else the first that is not hidden.
    fn usual(&self, kind: &str) -> Option<String> {
        let shown = self.value[kind].as_array()?.iter().filter(|one| one["hidden"] != true);
        let names: Vec<&str> = shown.filter_map(|one| one["name"].as_str()).collect();
        let usual = names.iter().find(|name| **name == "default").or(names.first())?;
        Some((*usual).to_owned())
    }
}

/// Returns true unless the directory is a part of a Meson project above it.
fn is_top_of_meson(reader: &ProjectReader<'_>, directory: &str) -> bool {
    let above = paths::parent(directory).map(|above| paths::join(above, "meson.build"));
    above.is_none_or(|file| !reader.has(&file))
}

fn meson(directory: &str, marker: &str) -> Profile {
    let mut profile = Profile::new(Ecosystem::Cpp, directory, marker);
    profile.set_manager(PackageManager::Meson, marker);
    profile.set_install(directory, "meson setup build", marker);
    let mut set = |field, tool, argv| {
        profile.set(field, ProjectCommand::new(tool, directory, words(argv)), marker);
    };
    set(ProfileField::Typecheck, ProjectTool::Meson, "meson compile -C build");
    set(ProfileField::Test, ProjectTool::MesonTest, "meson test -C build --print-errorlogs");
    profile
}

/// Requires C or C++ sources, because a Makefile alone may belong to any ecosystem.
fn make(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let build = makefile::Build::find(reader, directory)?;
    let suffixes = &[".c", ".cc", ".cpp", ".cxx"];
    let has_sources = |name: &str| {
        let sources = paths::resolve(directory, name);
        sources.is_some_and(|sources| !reader.files(&sources, suffixes).is_empty())
    };
    if !SOURCES.into_iter().any(has_sources) {
        return None;
    }
    let mut profile = Profile::new(Ecosystem::Cpp, directory, &build.file);
    let compile = ProjectCommand::new(ProjectTool::Make, directory, words("make"));
    profile.set(ProfileField::Typecheck, compile, &build.file);
    build.describe(&mut profile);
    Some(profile)
}
